#include "daemon/collector/ingest/landmarks.h"

#include <algorithm>

#include "daemon/aggregate/event_views.h"
#include "daemon/base/status.h"

namespace lull::collector {

using aggregate::Event;
using aggregate::EventType;
using storage::TracingRow;

namespace {

bool ByTime(const TracingRow& a, const TracingRow& b) {
  return a.start_ns < b.start_ns;
}

}  // namespace

absl::Status Landmarks::Load(storage::StoreReader& reader, int64_t process) {
  LULL_ASSIGN_OR_RETURN(tracing_, reader.catalogue().All<storage::TracingRow>(process));
  stored_tracing_ = tracing_.size();
  LULL_ASSIGN_OR_RETURN(auto non_finite,
                        reader.catalogue().All<storage::NonFiniteRow>(process));
  if (!non_finite.empty()) non_finite_ = non_finite.front();
  return absl::OkStatus();
}

void Landmarks::Add(EventType type, const Event& event) {
  switch (type) {
    case EventType::kNonFinite:
      return AddNonFinite(event);
    case EventType::kStep:
      if (StepView{event}.source() == v1::STEP_SOURCE_NONE) return;  // a rest alone
      step_ = {StepView{event}.number(), event.start_ns, StepView{event}.end_ns()};
      return;
    default:
      return;
  }
}

void Landmarks::AddTracing(const TracingRow& row) {
  if (tracing_.size() >= 2 * kMaxTracing) {
    tracing_.erase(tracing_.begin(),
                   tracing_.begin() + static_cast<ptrdiff_t>(kMaxTracing));
  }
  tracing_.insert(std::upper_bound(tracing_.begin(), tracing_.end(), row, ByTime), row);
  if (stored_tracing_ >= kMaxTracing) return;
  ++stored_tracing_;
  new_tracing_.push_back(row);
}

void Landmarks::AddNonFinite(const Event& event) {
  if (non_finite_ && non_finite_->time_ns <= event.start_ns) return;
  non_finite_ = {event.start_ns, NonFiniteView{event}.bits(), event.series, false, 0};
  new_non_finite_ = true;
  if (!step_ || event.start_ns < step_->start_ns) return;
  non_finite_->step_known = true;
  // A step is told when it ends: what comes after the latest lies in the next.
  non_finite_->step =
      event.start_ns < step_->end_ns ? step_->number : step_->number + 1;
}

bool Landmarks::TracedAt(uint64_t time_ns) const {
  auto after = std::upper_bound(tracing_.begin(), tracing_.end(),
                                TracingRow{.start_ns = time_ns}, ByTime);
  return after != tracing_.begin() &&
         std::prev(after)->state == lull::v1::TRACING_STATE_ACTIVE;
}

absl::Status Landmarks::Flush(storage::StoreWriter& writer, int64_t process) {
  LULL_RETURN_IF_ERROR(writer.catalogue().PutAll(process, new_tracing_));
  if (new_non_finite_) {
    LULL_RETURN_IF_ERROR(writer.catalogue().Put(process, *non_finite_));
  }
  new_non_finite_ = false;
  return absl::OkStatus();
}

}  // namespace lull::collector
