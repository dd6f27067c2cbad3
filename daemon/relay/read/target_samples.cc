// Samples of a target's threads (samples/sampler.h): whose, and their way into batches.
#include <algorithm>
#include <utility>

#include "daemon/base/clock.h"
#include "daemon/relay/read/target.h"
#include "daemon/relay/samples/rates.h"

namespace lull::relay {
namespace {

// Threads come and go; a window that opens is followed at once.
constexpr uint64_t kThreadsPeriodNs = 200'000'000;

// Totals of an earlier worker and of this one. What tells how it is done is of this
// one.
void AddTo(const lull::v1::HostSampleCounters& earlier,
           lull::v1::HostSampleCounters* now) {
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
  event.arg0 = sample.weight_ns;
  event.arg1 =
      static_cast<uint64_t>(sample.state) | static_cast<uint64_t>(sample.quality) << 8;
  event.arg2 = static_cast<uint32_t>(sample.role);
  return event;
}

}  // namespace

std::vector<SampledThread> Target::ThreadsToSample() {
  std::vector<SampledThread> threads;
  for (uint32_t i = 0; i < rings_.size(); ++i) {
    const Ring& ring = rings_[i];
    const bool main = ring.tid == info_.pid();
    if (ring.tid == 0 || (!main && !ring.submits && !ring.allocates)) continue;
    std::optional<PythonOfRing> python = segment_.Python(i);
    if (!python || abi::tid_of(python->owner) != ring.tid) continue;
    const v1::HostSampleRole role = worker_of() != 0 ? v1::HOST_SAMPLE_ROLE_LOADER
                                    : main           ? v1::HOST_SAMPLE_ROLE_MAIN
                                                     : v1::HOST_SAMPLE_ROLE_FEEDER;
    threads.push_back({ring.tid, role, python->state, python->thread});
  }
  return threads;
}

void Target::WatchMemory() {
  SamplePlan plan;
  plan.pid = pid();
  plan.memory = memory_;
  sampler_->Follow(key(), std::move(plan));
}

bool Target::IsTracing() const {
  return segment_.header().cupti_state.load(std::memory_order_relaxed) ==
         static_cast<uint32_t>(abi::CuptiState::kTracing);
}

void Target::FollowSamples(uint64_t now_ns, bool tracing) {
  if (sampler_ == nullptr) return;
  if (tracing == samples_tracing_ && now_ns - samples_planned_ns_ < kThreadsPeriodNs) {
    return;
  }
  samples_tracing_ = tracing;
  samples_planned_ns_ = now_ns;
  // In another pid namespace its thread ids are not ours.
  const bool wanted = armed_ && !corrupt_ && !ended_ && info_.pid() != 0 &&
                      segment_.header().pid == info_.pid() &&
                      WhyEnded() == abi::EndedBy{};
  SamplePlan plan;
  plan.rate = !wanted ? 0 : tracing ? kDenseRate : kSparseRate;
  plan.pid = pid();
  plan.memory = memory_;
  if (wanted) {
    plan.layout = segment_.PythonFrames();
    plan.threads = ThreadsToSample();
    plan.others = worker_of() != 0;
  }
  if (plan.rate == samples_.rate && plan.threads == samples_.threads &&
      plan.layout.has_value() == samples_.layout.has_value()) {
    return;
  }
  samples_ = plan;
  sampler_->Follow(key(), std::move(plan));
}

// Not before those of the time before have found room.
void Target::TakeSamples() {
  TakenSamples taken = sampler_->Take(key());
  samples_complete_ns_ = taken.complete_ns;
  if (!taken.news) return;
  image_gone_ = image_gone_ || taken.of_nobody;
  AddTo(earlier_.host_samples(), &taken.counters);
  sample_counters_ = std::move(taken.counters);
  for (lull::v1::StackDef& stack : taken.stacks) {
    const uint32_t ref = first_sample_stack_ + stack.ref();
    stack.set_ref(ref);
    untold_stacks_[ref] = std::move(stack);
  }
  untold_samples_.assign(taken.samples.begin(), taken.samples.end());
}

// A worker that could not read for a while, or whose spool was full, finds thousands of
// samples, each with a stack of kilobytes: more than a batch may hold.
bool Target::ReadSamples(BatchBuilder* batch) {
  if (sampler_ == nullptr) {
    samples_complete_ns_ = UINT64_MAX;
    return true;
  }
  if (untold_samples_.empty()) TakeSamples();
  while (!untold_samples_.empty()) {
    if (batch->approximate_bytes() >= kMaxBatchBytes) return false;
    const HostSample sample = untold_samples_.front();
    untold_samples_.pop_front();
    abi::Event event = EventOf(sample);
    if (sample.stack != 0) {
      event.py_stack = first_sample_stack_ + sample.stack;
      AddSampleStack(event.py_stack, batch);
    }
    batch->AddEvents(key(), kRelayRing, own_ring_.next++, &event, 1, sample.tid);
  }
  return true;
}

// Before or with the first event that names it.
void Target::AddSampleStack(uint32_t ref, BatchBuilder* batch) {
  auto stack = untold_stacks_.find(ref);
  if (stack == untold_stacks_.end()) return;
  batch->AddStack(key(), stack->second);
  fresh_stacks_.push_back(std::move(stack->second));
  untold_stacks_.erase(stack);
}

}  // namespace lull::relay
