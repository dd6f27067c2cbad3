#include "daemon/relay/read/target.h"

#include <errno.h>
#include <poll.h>
#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/clock.h"
#include "daemon/base/event_views.h"
#include "daemon/base/gpu_event_views.h"
#include "daemon/base/logging.h"
#include "daemon/base/status.h"
#include "daemon/base/text.h"

namespace lull::relay {
namespace {

constexpr uint32_t kChunk = 512;  // events copied at a time: 24 KiB, stays in cache

// A store of another processor may take its time to be seen, and the clocks of two
// processors may differ. Of a virtual machine on a busy host one event was seen more
// than one microsecond late.
constexpr uint64_t kStoreDelayNs = 10'000;

bool IsPossible(const abi::Event& event) {
  uint8_t type = static_cast<uint8_t>(event.type);
  return type != 0 && type < abi::kEventTypeCount && event.start_ns <= kMaxWireTotal &&
         event.duration_ns <= kMaxWireTotal - event.start_ns;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Target>> Target::Open(lull::v1::ProcessInfo info,
                                                     UniqueFd memfd, UniqueFd pidfd,
                                                     const TargetOptions& options,
                                                     SpoolState* state) {
  void* mapping = mmap(nullptr, abi::kSegmentSize, PROT_READ | PROT_WRITE, MAP_SHARED,
                       memfd.get(), 0);
  if (mapping == MAP_FAILED) return ErrnoStatus(errno, "cannot map a segment");
  std::shared_ptr<char> base(static_cast<char*>(mapping),
                             [](char* at) { munmap(at, abi::kSegmentSize); });
  std::unique_ptr<Target> target(
      new Target(std::move(info), std::move(pidfd), std::move(base), options, state));
  target->Resume();
  return target;
}

Target::Target(lull::v1::ProcessInfo info, UniqueFd pidfd, std::shared_ptr<char> base,
               const TargetOptions& options, SpoolState* state)
    : info_(std::move(info)),
      pidfd_(std::move(pidfd)),
      base_(std::move(base)),
      segment_(base_.get()),
      state_(state),
      symbols_(options.symbols),
      control_(segment_, options.settings, options.gpu, options.gpu_clock, info_.pid(),
               options.attached),
      run_delay_(pid()),
      host_use_(pid()),
      samples_(key(), pid(), options.sampler, options.memory),
      rings_(key(), segment_, state),
      definitions_(info_.key(), &segment_, symbols_, kMaxBatchBytes),
      buffer_(kChunk) {
  info_.set_start_ns(std::min(segment_.header().created_ns, kMaxWireTotal));
  if (options.armed) {
    Arm(options.gpu, MonotonicNs());
  } else {
    Disarm(MonotonicNs());
  }
}

Target::~Target() = default;

void Target::Resume() {
  auto found = state_->found.find(key());
  if (found != state_->found.end()) earlier_ = found->second;
  corrupt_ = !rings_.Follow();
  samples_.Resume(earlier_.host_samples(), rings_.own());
  host_use_.Resume(earlier_.host_use());
  if (corrupt_ || earlier_.corrupt()) GiveUp();
}

bool Target::HasExited() const {
  pollfd gone{pidfd_.get(), POLLIN, 0};
  return pidfd_ && poll(&gone, 1, 0) == 1;
}

bool Target::CheckEnded(bool ask) {
  // No Hello tells of a program that is not recorded.
  ended_ = ended_ || (ask && HasExited()) || samples_.image_gone();
  return ended_;
}

bool Target::Read(BatchBuilder* batch) {
  AddIdentity(batch);
  AddRests(batch);
  // The clock before the heads: what was committed by then is below them.
  uint64_t begin_ns = MonotonicNs() - kStoreDelayNs;
  corrupt_ = !rings_.Follow() || corrupt_;
  if (corrupt_) {
    GiveUp();
  } else {
    // All heads before the first event: what is read of one ring must not be later than
    // what is read of another by the time that it takes to resolve symbols. Threads
    // free what others allocated.
    heads_.resize(rings_.size());
    for (uint32_t i = 0; i < rings_.size(); ++i) {
      // Against `released`, not `next`: that is what the writer may count on.
      std::optional<uint64_t> head = segment_.CommittedHead(i, rings_.at(i).released);
      if (!head || *head < rings_.at(i).next) {
        GiveUp();
        break;
      }
      heads_[i] = *head;
    }
  }
  for (uint32_t i = 0; i < rings_.size() && !corrupt_; ++i) {
    if (!ReadRing(i, heads_[i], batch)) return false;
  }
  if (!samples_.Read(batch, &rings_.own(), &run_delay_)) return false;
  complete_as_of_ns_ = std::min(begin_ns, samples_.complete_ns());
  return true;
}

bool Target::ReadRing(uint32_t index, uint64_t head, BatchBuilder* batch) {
  TargetRing& ring = rings_.at(index);
  while (ring.next < head) {
    uint32_t count =
        static_cast<uint32_t>(std::min<uint64_t>(head - ring.next, kChunk));
    if (!segment_.CopyEvents(index, ring.next, count, buffer_.data())) {
      GiveUp();
      return true;
    }
    // A ring is in the order of ends, about.
    if (const abi::Event& last = buffer_[count - 1]; IsPossible(last)) {
      last_end_ns_ = std::max(last_end_ns_, last.start_ns + last.duration_ns);
    }
    size_t done = 0;
    while (done < count) {
      size_t run = TakeRun(&ring, &buffer_[done], count - done, batch);
      batch->AddEvents(key(), index, ring.next, &buffer_[done], run, ring.tid);
      ring.next += run;
      done += run;
      events_read_ += run;
      if (corrupt_) {
        GiveUp();
        return true;
      }
      if (batch->approximate_bytes() >= kMaxBatchBytes) return false;
      if (run == 0) {  // one that cannot be or names what is not: it alone is dropped
        ++ring.next;
        rings_.Lose(&ring, 1);
        ++done;
      }
    }
  }
  return true;
}

size_t Target::TakeRun(TargetRing* ring, abi::Event* events, size_t count,
                       BatchBuilder* batch) {
  for (size_t i = 0; i < count; ++i) {
    abi::Event& event = events[i];
    if (!IsPossible(event)) return i;
    if (event.type == abi::EventType::kThreadStart && i > 0) return i;
    Definitions::Result result = definitions_.Define(&event, batch);
    if (result == Definitions::Result::kCorrupt) corrupt_ = true;
    if (result != Definitions::Result::kDone) return i;
    Notice(event, ring);  // once: of a batch that is full it is read again
  }
  return count;
}

void Target::Notice(const abi::Event& event, TargetRing* ring) {
  switch (event.type) {
    case abi::EventType::kThreadStart:
      ring->tid = Number(ThreadStartView{event}.thread());
      ring->submits = ring->allocates = false;
      return;
    case abi::EventType::kLaunch:
    case abi::EventType::kCopyAsync:
    case abi::EventType::kSync:
      ring->submits = true;
      return;
    case abi::EventType::kTorchMemory:
      if ((event.flags & abi::kFlagBefore) == 0) ring->allocates = true;
      return;
    case abi::EventType::kStep:
      if (event.duration_ns == 0) return;
      control_.StepSeen({StepView{event}.number(), event.start_ns,
                         StepView{event}.end_ns(), StepView{event}.rested_ns()});
      return;
    case abi::EventType::kGpuTracing:
      control_.TracingSeen(
          event.start_ns,
          abi::TracingState{static_cast<uint32_t>(TracingView{event}.state())});
      return;
    default:
      return;
  }
}

void Target::GiveUp() {
  LogWarning(absl::StrCat("the segment of process ", info_.pid(), " is corrupt"));
  corrupt_ = true;
  Disarm(MonotonicNs());
  rings_.LoseTheRest();
}

void Target::AddIdentity(BatchBuilder* batch) {
  uint32_t version = segment_.header().python_version.load(std::memory_order_relaxed);
  if (version != python_version_) {  // not there yet, mostly, or known long since
    python_version_ = version;
    std::string text = absl::StrCat((version >> 8) & 0xff, ".", version & 0xff);
    if (text != info_.python_version()) {
      info_.set_python_version(text);
      info_sent_ = false;
    }
  }
  if (info_sent_) return;
  batch->AddProcess(info_);
  info_sent_ = true;
}

lull::v1::ProcessCounters Target::Counters() const {
  lull::v1::ProcessCounters counters = CountersOf(segment_, rings_, corrupt_);
  counters.set_process_key(key());
  counters.set_thinning(std::max(control_.highest_thinning(), earlier_.thinning()));
  counters.set_first_sampled_step(earlier_.first_sampled_step() != 0
                                      ? earlier_.first_sampled_step()
                                      : control_.first_sampled_step());
  if (symbols_ != nullptr) {  // as far as is known; who sends it may know more
    counters.set_modules_unread(
        std::max(symbols_->ModulesUnread(key()), earlier_.modules_unread()));
  }
  if (samples_.counters().taken() + samples_.counters().skipped() > 0) {
    *counters.mutable_host_samples() = samples_.counters();
  }
  if (host_use_.use().ByteSizeLong() > 0) {
    *counters.mutable_host_use() = host_use_.use();
  }
  return counters;
}

void Target::AddCounters(BatchBuilder* batch, uint64_t now_ns, bool final) {
  // In the middle of the first reading they are as of no time, and the collector would
  // not take them; the same ones are not sent twice.
  if (complete_as_of_ns_ == 0) return;
  if (!final && !counters_.IsDue(now_ns)) return;
  if (!control_.armed()) {
    host_use_.SetAsleep();
  } else if (!ended_ && worker_of() == 0) {  // workers are many, and record nothing
    host_use_.Follow(now_ns);
  }
  counters_.Add(Counters(), now_ns, complete_as_of_ns_, batch);
}

void Target::Drive(uint64_t now_ns) {
  control_.DriveGpu(now_ns);
  control_.CutLongControlStep(now_ns);
}

// Before what was recorded after them.
void Target::AddRests(BatchBuilder* batch) {
  for (; rests_added_ < control_.rests().size(); ++rests_added_) {
    batch->AddEvents(key(), kRelayRing, rings_.own().next++,
                     &control_.rests()[rests_added_], 1, info_.pid());
  }
}

void Target::AddEnd(BatchBuilder* batch, uint64_t now_ns) {
  if (end_sent_) return;
  if (!corrupt_) control_.CutControlStep(std::min(now_ns, ended_by_ns_));
  AddRests(batch);
  host_use_.SetEnded();
  AddCounters(batch, now_ns, /*final=*/true);
  // What the target says of its own times is not believed against its events.
  const uint64_t least_ns = std::max(last_end_ns_, info_.start_ns());
  batch->AddProcessEnd(key(), std::min(now_ns, std::max(ended_by_ns_, least_ns)));
  end_sent_ = true;
}

void Target::Commit() {
  rings_.Commit();
  definitions_.Commit();
  samples_.Commit();
  control_.ForgetRests(std::exchange(rests_added_, 0));
  info_committed_ = info_sent_;
  counters_.Commit();
  end_spooled_ = end_sent_;
}

void Target::Drop() {
  rings_.Drop();
  definitions_.Drop();
  samples_.Drop();
  rests_added_ = 0;
  info_sent_ = info_committed_;
  counters_.Drop();
  end_sent_ = end_spooled_;
}

std::vector<SampledThread> Target::ThreadsToSample() {
  std::vector<SampledThread> threads;
  for (uint32_t i = 0; i < rings_.size(); ++i) {
    const TargetRing& ring = rings_.at(i);
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

bool Target::IsTracing() const {
  return !corrupt_ && segment_.header().cupti_state.load(std::memory_order_relaxed) ==
                          static_cast<uint32_t>(abi::CuptiState::kTracing);
}

void Target::FollowSamples(uint64_t now_ns, bool tracing) {
  if (!samples_.IsDue(now_ns, tracing)) return;
  const bool wanted =
      control_.armed() && SeesItsThreads() && WhyEnded(segment_) == abi::EndedBy{};
  SamplePlan plan;
  if (wanted) {
    plan.layout = segment_.PythonFrames();
    plan.threads = ThreadsToSample();
    plan.others = worker_of() != 0;
    plan.armed = {base_, &segment_.control().armed};
  }
  samples_.Follow(now_ns, tracing, wanted, std::move(plan));
}

// In another pid namespace its thread ids are not ours.
bool Target::SeesItsThreads() const {
  return !corrupt_ && !ended_ && info_.pid() != 0 &&
         segment_.header().pid == info_.pid();
}

void Target::FollowRunDelay(BatchBuilder* batch, uint64_t now_ns) {
  // Its events end now, not when this pass began: the counters of what was read
  // meanwhile may be as of a later time than that.
  if (run_delay_.IsDue(now_ns, IsTracing())) SampleRunDelay(batch, MonotonicNs());
}

void Target::SampleRunDelay(BatchBuilder* batch, uint64_t now_ns) {
  if (!control_.armed() || !SeesItsThreads()) return;
  for (uint32_t i = 0; i < rings_.size(); ++i) {
    TargetRing& ring = rings_.at(i);
    if (!ring.submits) continue;
    if (segment_.Owner(i) == abi::kFreeRing) {
      run_delay_.Forget(ring.tid);
      continue;
    }
    std::optional<abi::Event> event = run_delay_.Sample(ring.tid, now_ns);
    if (!event) continue;
    batch->AddEvents(key(), kRelayRing, rings_.own().next++, &*event, 1, ring.tid);
  }
}

void Target::FreeRings() {
  if (corrupt_ || ended_) return;
  rings_.FreeThoseOfGoneThreads(pid(), [this] { return HasExited(); });
}

void Target::Arm(const GpuPlan& gpu, uint64_t now_ns) {
  if (!corrupt_) control_.Arm(gpu, now_ns);
}

void Target::GoOnIfUnread(uint64_t now_ns) {
  if (!corrupt_) control_.GoOnIfUnread(now_ns);
}

void Target::Disarm(uint64_t now_ns) {
  control_.Disarm(now_ns);
  for (uint32_t i = 0; i < rings_.size(); ++i) run_delay_.Forget(rings_.at(i).tid);
  samples_.MakeDue();
  FollowSamples(now_ns, false);
}

void Target::Govern(uint64_t now_ns) {
  uint64_t hooks_ns = 0;
  for (uint32_t i = 0; i < rings_.size(); ++i) hooks_ns += segment_.Ring(i).self_ns;
  control_.Govern(now_ns, hooks_ns);
}

}  // namespace lull::relay
