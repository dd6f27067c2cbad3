#include "daemon/query/recorded.h"

#include <algorithm>

#include "daemon/aggregate/buckets.h"
#include "daemon/base/status.h"

namespace lull::query {
namespace {

constexpr size_t kMaxStretches = 1000;

uint64_t EndOfStretch(const storage::StretchRow& stretch, uint64_t latest_ns) {
  return stretch.end_ns == 0 ? latest_ns : std::min(stretch.end_ns, latest_ns);
}

}  // namespace

absl::StatusOr<Recorded> Recorded::Load(storage::StoreReader& reader,
                                        const storage::JobRow& job) {
  Recorded recorded;
  LULL_ASSIGN_OR_RETURN(recorded.stretches_,
                        reader.catalogue().All<storage::StretchRow>(job.id));
  const auto& stretches = recorded.stretches_;
  bool from_the_start =
      stretches.empty() || stretches.front().start_ns <= job.info.start_ns();
  bool to_the_end =
      stretches.empty() || (stretches.size() == 1 && stretches.front().end_ns == 0);
  recorded.always_ = !job.info.dormant() && from_the_start && to_the_end;
  return recorded;
}

uint64_t Recorded::Within(uint64_t begin_ns, uint64_t end_ns) const {
  if (begin_ns >= end_ns) return 0;
  if (always_) return end_ns - begin_ns;
  uint64_t total = 0;
  for (const storage::StretchRow& stretch : stretches_) {
    uint64_t from = std::max(stretch.start_ns, begin_ns);
    uint64_t to = EndOfStretch(stretch, end_ns);
    if (from < to) total += to - from;
  }
  return total;
}

void Recorded::Fill(const storage::JobRow& job, uint64_t end_ns,
                    lull::v1::Job* out) const {
  bool armed = always_ || (!stretches_.empty() && stretches_.back().end_ns == 0);
  out->set_asleep(!job.ended && !armed);
  if (always_) return;
  out->set_partly_recorded(true);
  out->set_stretches(static_cast<uint32_t>(stretches_.size()));
  out->set_recorded_ns(
      Within(job.info.start_ns(), std::max(end_ns, job.info.start_ns())));
  size_t first = stretches_.size() - std::min(stretches_.size(), kMaxStretches);
  for (size_t i = first; i < stretches_.size(); ++i) {
    const storage::StretchRow& stretch = stretches_[i];
    lull::v1::Job::Stretch* span = out->add_recorded();
    span->set_start_ns(aggregate::AfterStart(stretch.start_ns, job.info.start_ns()));
    uint64_t end = std::max(EndOfStretch(stretch, end_ns), stretch.start_ns);
    span->set_end_ns(aggregate::AfterStart(end, job.info.start_ns()));
  }
}

}  // namespace lull::query
