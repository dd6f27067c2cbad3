#include "daemon/collector/ingest/judged_time.h"

#include <algorithm>
#include <limits>

namespace lull::collector {

using aggregate::EventType;

void JudgedTime::AddRestored(EventType type, DeviceId device, uint64_t end_ns) {
  uint64_t& until =
      type == EventType::kIdle ? restored_idle_[device] : restored_[device];
  until = std::max(until, end_ns);
  if (type != EventType::kIdle) Told(device, end_ns);
}

uint64_t JudgedTime::RestoredUntil(DeviceId device) const {
  auto it = restored_.find(device);
  return it == restored_.end() ? restored_ns_ : std::max(it->second, restored_ns_);
}

uint64_t JudgedTime::RestoredUntil(EventType type, DeviceId device) const {
  const uint64_t until = RestoredUntil(device);
  if (type != EventType::kIdle) return until;
  auto it = restored_idle_.find(device);
  return it == restored_idle_.end() ? until : std::max(until, it->second);
}

void JudgedTime::Told(DeviceId device, uint64_t until_ns) {
  uint64_t& told = told_[device];
  told = std::max(told, until_ns);
}

void JudgedTime::Advance(const TracingMarks& marks, uint64_t as_of_ns) {
  uint64_t least = marks.traced() ? marks.changed_ns() : as_of_ns;
  bool first = true;
  for (const auto& [device, until] : told_) {
    least = first ? until : std::min(least, until);
    first = false;
  }
  // Tracing is off and all of it has been told: nothing will be until it is on again.
  if (!marks.traced() && (first || least >= marks.changed_ns())) {
    least = as_of_ns > kCommitSlackNs ? as_of_ns - kCommitSlackNs : 0;
  }
  judged_ns_ = std::max(judged_ns_, std::min(least, as_of_ns));
}

void JudgedTime::Finish() { judged_ns_ = std::numeric_limits<int64_t>::max(); }

}  // namespace lull::collector
