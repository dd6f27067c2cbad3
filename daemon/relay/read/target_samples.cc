#include "daemon/relay/read/target_samples.h"

#include <algorithm>
#include <utility>

#include "daemon/base/event_views.h"
#include "daemon/relay/samples/rates.h"
#include "daemon/relay/samples/run_delay.h"

namespace lull::relay {
namespace {

// Threads come and go; a window that opens is followed at once.
constexpr uint64_t kThreadsPeriodNs = 200'000'000;

// Totals of an earlier worker and of this one. What tells how it is done is of this
// one.
void AddTo(const v1::HostSampleCounters& earlier, v1::HostSampleCounters* now) {
  now->set_taken(now->taken() + earlier.taken());
  now->set_exact(now->exact() + earlier.exact());
  now->set_held(now->held() + earlier.held());
  now->set_cut(now->cut() + earlier.cut());
  now->set_no_state(now->no_state() + earlier.no_state());
  now->set_failed(now->failed() + earlier.failed());
  now->set_late(now->late() + earlier.late());
  now->set_late_ns(now->late_ns() + earlier.late_ns());
  now->set_skipped(now->skipped() + earlier.skipped());
  now->set_threads(std::max(now->threads(), earlier.threads()));
  now->set_lowered(now->lowered() + earlier.lowered());
  now->set_self_ns(now->self_ns() + earlier.self_ns());
}

abi::Event EventOf(const HostSample& sample) {
  abi::Event event{};
  event.type = kHostSampleType;
  event.start_ns = sample.at_ns;
  SampleView{event}
      .set_weight_ns(sample.weight_ns)
      .set_look(sample.state, sample.quality)
      .set_role(sample.role);
  return event;
}

}  // namespace

TargetSamples::TargetSamples(uint64_t key, pid_t pid, HostSampler* sampler,
                             std::shared_ptr<const UniqueFd> memory)
    : key_(key), pid_(pid), sampler_(sampler), memory_(std::move(memory)) {
  if (sampler_ == nullptr || memory_ == nullptr || !*memory_) return;
  // The sampler says when the memory is nobody's.
  SamplePlan plan;
  plan.pid = pid_;
  plan.memory = memory_;
  sampler_->Follow(key_, std::move(plan));
}

TargetSamples::~TargetSamples() {
  if (sampler_ != nullptr) sampler_->Forget(key_);
}

void TargetSamples::Resume(const v1::HostSampleCounters& earlier,
                           const TargetRing& own) {
  earlier_ = counters_ = earlier;
  // Each stack of samples came with an event of this ring, so that there are fewer of
  // them than events: what an earlier worker defined lies below.
  first_stack_ = kFirstSampleStack + static_cast<uint32_t>(std::min<uint64_t>(
                                         own.next, UINT32_MAX - kFirstSampleStack));
}

bool TargetSamples::IsDue(uint64_t now_ns, bool tracing) const {
  return sampler_ != nullptr &&
         (tracing != tracing_ || now_ns - planned_ns_ >= kThreadsPeriodNs);
}

void TargetSamples::Follow(uint64_t now_ns, bool tracing, bool wanted,
                           SamplePlan plan) {
  if (sampler_ == nullptr) return;
  tracing_ = tracing;
  planned_ns_ = now_ns;
  plan.rate = !wanted ? 0 : tracing ? kDenseRate : kSparseRate;
  plan.pid = pid_;
  plan.memory = memory_;
  if (plan.rate == followed_.rate && plan.threads == followed_.threads &&
      plan.layout.has_value() == followed_.layout.has_value()) {
    return;
  }
  followed_ = plan;
  sampler_->Follow(key_, std::move(plan));
}

// Not before those of the time before have found room.
void TargetSamples::Take() {
  TakenSamples taken = sampler_->Take(key_);
  complete_ns_ = taken.complete_ns;
  if (!taken.news) return;
  image_gone_ = image_gone_ || taken.of_nobody;
  AddTo(earlier_, &taken.counters);
  counters_ = std::move(taken.counters);
  for (v1::StackDef& stack : taken.stacks) {
    const uint32_t ref = first_stack_ + stack.ref();
    stack.set_ref(ref);
    untold_stacks_[ref] = std::move(stack);
  }
  untold_.assign(taken.samples.begin(), taken.samples.end());
}

// A worker that could not read for a while, or whose spool was full, finds thousands of
// samples, each with a stack of kilobytes: more than a batch may hold.
bool TargetSamples::Read(BatchBuilder* batch, TargetRing* own,
                         RunDelaySampler* delays) {
  if (sampler_ == nullptr) {
    complete_ns_ = UINT64_MAX;
    return true;
  }
  if (untold_.empty()) Take();
  while (!untold_.empty()) {
    if (batch->approximate_bytes() >= kMaxBatchBytes) return false;
    const HostSample sample = untold_.front();
    untold_.pop_front();
    abi::Event event = EventOf(sample);
    if (sample.stack != 0) {
      event.py_stack = first_stack_ + sample.stack;
      AddStack(event.py_stack, batch);
    }
    batch->AddEvents(key_, kRelayRing, own->next++, &event, 1, sample.tid);
    if (!sample.lacked) continue;
    if (auto delay = delays->Looked(sample.tid, *sample.lacked)) {
      batch->AddEvents(key_, kRelayRing, own->next++, &*delay, 1, sample.tid);
    }
  }
  return true;
}

void TargetSamples::Drop() {
  for (v1::StackDef& stack : fresh_stacks_) {
    const uint32_t ref = stack.ref();
    untold_stacks_[ref] = std::move(stack);
  }
  fresh_stacks_.clear();
}

// Before or with the first event that names it.
void TargetSamples::AddStack(uint32_t ref, BatchBuilder* batch) {
  auto stack = untold_stacks_.find(ref);
  if (stack == untold_stacks_.end()) return;
  batch->AddStack(key_, stack->second);
  fresh_stacks_.push_back(std::move(stack->second));
  untold_stacks_.erase(stack);
}

}  // namespace lull::relay
