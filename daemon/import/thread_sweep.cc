#include "daemon/import/thread_sweep.h"

#include <algorithm>

namespace lull::imports {

void ThreadSweep::Enter(const Record& record, const Whereabouts& inside) {
  Open& open = open_.emplace_back(Open{record, now_});
  if (open_.size() > 1) {
    open.record.end_ns =
        std::min(open.record.end_ns, open_[open_.size() - 2].record.end_ns);
  }
  now_ = inside;
}

void ThreadSweep::LeaveUntil(uint64_t time_ns, OnAnnotation on_annotation,
                             OnStay on_stay) {
  while (!open_.empty() && open_.back().record.end_ns <= time_ns) {
    const Open& open = open_.back();
    if (open.before.doing != now_.doing) TellStay(open.record.end_ns, on_stay);
    if (open.record.kind == Kind::kAnnotation) on_annotation(open.record, now_);
    now_ = open.before;
    open_.pop_back();
  }
}

void ThreadSweep::TellStay(uint64_t time_ns, OnStay on_stay) {
  if (begun_ && time_ns > since_ns_) on_stay(now_.doing, since_ns_, time_ns);
  since_ns_ = begun_ ? std::max(since_ns_, time_ns) : time_ns;
  begun_ = true;
}

}  // namespace lull::imports
