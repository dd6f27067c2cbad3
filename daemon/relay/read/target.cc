#include "daemon/relay/read/target.h"

#include <errno.h>
#include <poll.h>
#include <sys/mman.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/base/clock.h"
#include "daemon/base/logging.h"
#include "daemon/base/status.h"
#include "daemon/base/text.h"

namespace lull::relay {
namespace {

constexpr uint32_t kChunk = 512;  // events copied at a time: 24 KiB, stays in cache
constexpr uint64_t kCountersPeriodNs = 500'000'000;

// A store of another processor may take its time to be seen.
constexpr uint64_t kStoreDelayNs = 1'000;

bool IsPossible(const abi::Event& event) {
  uint8_t type = static_cast<uint8_t>(event.type);
  return type != 0 && type < abi::kEventTypeCount && event.start_ns <= kMaxWireTotal &&
         event.duration_ns <= kMaxWireTotal - event.start_ns;
}

// Whatever the target writes there: readers of an enum expect values that they do not
// know.
template <typename Enum>
Enum Word(const std::atomic<uint32_t>& word) {
  return static_cast<Enum>(word.load(std::memory_order_relaxed));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Target>> Target::Open(lull::v1::ProcessInfo info,
                                                     UniqueFd memfd, UniqueFd pidfd,
                                                     const TargetOptions& options,
                                                     ModuleCache* modules,
                                                     SpoolState* state) {
  void* base = mmap(nullptr, abi::kSegmentSize, PROT_READ | PROT_WRITE, MAP_SHARED,
                    memfd.get(), 0);
  if (base == MAP_FAILED) return ErrnoStatus(errno, "cannot map a segment");
  std::unique_ptr<Target> target(new Target(std::move(info), std::move(pidfd),
                                            static_cast<char*>(base), options, state));
  if (!options.snapshot_path.empty()) {
    target->symbolizer_ = std::make_unique<NativeSymbolizer>(
        static_cast<pid_t>(target->info_.pid()), options.snapshot_path, modules,
        options.memory);
    target->symbolizer_->Refresh();
    target->definitions_.UseSymbolizer(target->symbolizer_.get());
  }
  target->Resume();
  return target;
}

Target::Target(lull::v1::ProcessInfo info, UniqueFd pidfd, char* base,
               const TargetOptions& options, SpoolState* state)
    : info_(std::move(info)),
      pidfd_(std::move(pidfd)),
      base_(base),
      segment_(base),
      state_(state),
      governor_(OverheadBudgetPercent(options.settings)),
      gpu_clock_(options.gpu_clock != nullptr ? options.gpu_clock
                                              : std::make_shared<GpuClock>()),
      gpu_schedule_(std::in_place, options.gpu, gpu_clock_.get()),
      run_delay_(static_cast<pid_t>(info_.pid())),
      sampler_(options.sampler),
      memory_(options.memory),
      definitions_(info_.key(), &segment_, kMaxBatchBytes),
      buffer_(kChunk) {
  info_.set_start_ns(std::min(segment_.header().created_ns, kMaxWireTotal));
  if (sampler_ != nullptr && memory_ != nullptr && *memory_) WatchMemory();
  InitControl(options);
}

Target::~Target() {
  if (sampler_ != nullptr) sampler_->Forget(key());
  munmap(base_, abi::kSegmentSize);
}

void Target::Resume() {
  auto found = state_->found.find(key());
  if (found != state_->found.end()) earlier_ = found->second;
  sample_counters_ = earlier_.host_samples();
  FollowRings();
  ResumeOwnRing();
  if (corrupt_ || earlier_.corrupt()) GiveUp();
}

void Target::FollowRings() {
  uint32_t used = segment_.RingsUsed();
  while (rings_.size() < used) {
    rings_.emplace_back();
    ResumeRing(static_cast<uint32_t>(rings_.size() - 1));
  }
}

void Target::ResumeRing(uint32_t index) {
  Ring& ring = rings_[index];
  RingView view = segment_.Ring(index);
  uint64_t tail = segment_.Tail(index);
  ring.tid = abi::tid_of(segment_.Owner(index));
  auto known = state_->rings.find({key(), index});
  uint64_t end = 0;
  if (known != state_->rings.end()) {
    end = known->second.end;
    ring.lost_relay = known->second.lost_relay;
    if (known->second.tid != 0) ring.tid = known->second.tid;
  }
  // A tail beyond the spool's end: a predecessor dropped these for want of room,
  // and died before it could write that down.
  if (tail > end) ring.lost_relay += tail - end;
  ring.next = std::max(tail, end);
  ring.released = tail;
  bool possible = ring.next <= view.head && view.head - tail <= abi::kRingEvents &&
                  view.head <= kMaxWireTotal;
  if (!possible) {  // how many there were is not known, and not guessed
    ring.next = ring.released = end;
    if (tail > end) ring.lost_relay -= tail - end;
    corrupt_ = true;
  }
}

void Target::ResumeOwnRing() {
  auto known = state_->rings.find({key(), kRelayRing});
  if (known != state_->rings.end()) {
    own_ring_.next = own_ring_.released = known->second.end;
    own_ring_.lost_relay = known->second.lost_relay;
  }
  // Each stack of samples came with an event of this ring, so that there are fewer of
  // them than events: what an earlier worker defined lies below.
  first_sample_stack_ =
      kFirstSampleStack + static_cast<uint32_t>(std::min<uint64_t>(
                              own_ring_.next, UINT32_MAX - kFirstSampleStack));
}

bool Target::HasExited() const {
  pollfd gone{pidfd_.get(), POLLIN, 0};
  return pidfd_ && poll(&gone, 1, 0) == 1;
}

bool Target::CheckEnded(bool ask) {
  // No Hello tells of a program that is not recorded.
  ended_ = ended_ || (ask && HasExited()) || image_gone_;
  return ended_;
}

bool Target::Read(BatchBuilder* batch) {
  AddIdentity(batch);
  // The clock before the heads: what was committed by then is below them.
  uint64_t begin_ns = MonotonicNs() - kStoreDelayNs;
  FollowRings();
  if (corrupt_) {
    GiveUp();
  } else {
    // All heads before the first event: what is read of one ring must not be later than
    // what is read of another by the time that it takes to resolve symbols. Threads
    // free what others allocated.
    heads_.resize(rings_.size());
    for (uint32_t i = 0; i < rings_.size(); ++i) {
      // Against `released`, not `next`: that is what the writer may count on.
      std::optional<uint64_t> head = segment_.CommittedHead(i, rings_[i].released);
      if (!head || *head < rings_[i].next) {
        GiveUp();
        break;
      }
      heads_[i] = *head;
    }
  }
  for (uint32_t i = 0; i < rings_.size() && !corrupt_; ++i) {
    if (!ReadRing(i, heads_[i], batch)) return false;
  }
  if (!ReadSamples(batch)) return false;
  complete_as_of_ns_ = std::min(begin_ns, samples_complete_ns_);
  return true;
}

bool Target::ReadRing(uint32_t index, uint64_t head, BatchBuilder* batch) {
  Ring& ring = rings_[index];
  while (ring.next < head) {
    uint32_t count =
        static_cast<uint32_t>(std::min<uint64_t>(head - ring.next, kChunk));
    if (!segment_.CopyEvents(index, ring.next, count, buffer_.data())) {
      GiveUp();
      return true;
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
        ++ring.lost_relay;
        ++events_lost_;
        ++done;
      }
    }
  }
  return true;
}

size_t Target::TakeRun(Ring* ring, abi::Event* events, size_t count,
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

void Target::Notice(const abi::Event& event, Ring* ring) {
  switch (event.type) {
    case abi::EventType::kThreadStart:
      ring->tid = static_cast<uint32_t>(event.arg0);
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
      if (event.duration_ns != 0) gpu_schedule_->StepSeen(event.duration_ns);
      return;
    default:
      return;
  }
}

void Target::GiveUp() {
  LogWarning(absl::StrCat("the segment of process ", info_.pid(), " is corrupt"));
  corrupt_ = true;
  Disarm(MonotonicNs());
  for (uint32_t i = 0; i < rings_.size(); ++i) {
    Ring& ring = rings_[i];
    uint64_t head = segment_.Ring(i).head;
    if (head > ring.next && head - ring.next <= abi::kRingEvents) {
      ring.lost_relay += head - ring.next;
      events_lost_ += head - ring.next;
      ring.next = head;
    }
  }
}

void Target::AddIdentity(BatchBuilder* batch) {
  uint32_t version = segment_.header().python_version.load(std::memory_order_relaxed);
  if (version != 0) {
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
  const abi::SegmentHeader& header = segment_.header();
  constexpr auto kRelaxed = std::memory_order_relaxed;
  lull::v1::ProcessCounters counters;
  counters.set_process_key(key());
  counters.set_lost_no_ring(Total(header.lost_no_ring));
  counters.set_stacks_rejected(Total(header.arena_rejected));
  counters.set_reentered(Total(header.reentered));
  counters.set_gpu_calls(segment_.GpuCalls());
  counters.set_torch_allocations(Total(header.torch_allocations));
  counters.set_native_stacks(Word<lull::v1::NativeStackState>(header.native_stacks));
  counters.set_gc_hook(Word<lull::v1::GcHookState>(header.gc_hook));
  counters.set_cupti_state(Word<lull::v1::CuptiState>(header.cupti_state));
  counters.set_cupti_version(header.cupti_version.load(kRelaxed));
  counters.set_cupti_result(header.cupti_result.load(kRelaxed));
  counters.set_step_hook(Word<lull::v1::StepHookState>(header.step_hook));
  counters.set_scope_hook(Word<lull::v1::ScopeHookState>(header.scope_hook));
  counters.set_scopes_unnamed(Total(header.scopes_unnamed));
  counters.set_scopes_unopened(Total(header.scopes_unopened));
  counters.set_scopes_thinned(Total(header.scopes_thinned));
  counters.set_cupti_dropped(Total(header.cupti_dropped));
  counters.set_gpu_records_lost(Total(header.gpu_records_lost));
  counters.set_gpu_records_bad(Total(header.gpu_records_bad));
  counters.set_gpu_self_ns(Total(header.gpu_self_ns));
  counters.set_thinning(std::max(governor_.highest(), earlier_.thinning()));
  counters.set_corrupt(corrupt_);
  const abi::EndedBy ended = WhyEnded();
  counters.set_no_memory(ended == abi::EndedBy::kNoMemory);
  counters.set_seccomp_filter(ended == abi::EndedBy::kFilter);
  counters.set_unanswered(ended == abi::EndedBy::kUnanswered);
  counters.set_unread(ended == abi::EndedBy::kUnread);
  counters.set_threads_unseen(threads_unseen_);
  if (symbolizer_ != nullptr) {
    counters.set_modules_unread(
        std::max(symbolizer_->modules_unread(), earlier_.modules_unread()));
  }
  if (sample_counters_.taken() + sample_counters_.skipped() > 0) {
    *counters.mutable_host_samples() = sample_counters_;
  }
  if (own_ring_.next > 0) {
    lull::v1::RingCounters* own = counters.add_rings();
    own->set_ring(kRelayRing);
    own->set_committed(own_ring_.next);
    own->set_lost_relay(own_ring_.lost_relay);
  }
  for (uint32_t i = 0; i < rings_.size(); ++i) {
    RingView view = segment_.Ring(i);
    const Ring& ring = rings_[i];
    if (view.head == 0 && view.lost == 0 && view.short_waits == 0 &&
        ring.lost_relay == 0) {
      continue;
    }
    lull::v1::RingCounters* out = counters.add_rings();
    out->set_ring(i);
    // A head beyond that is corrupt, as the next reading will find.
    uint64_t most = ring.next + (corrupt_ ? 0 : abi::kRingEvents);
    out->set_committed(std::min({view.head, most, kMaxWireTotal}));
    out->set_lost_full(view.lost);
    out->set_lost_relay(std::min(ring.lost_relay, kMaxWireTotal));
    out->set_self_ns(view.self_ns);
    out->set_short_waits(view.short_waits);
    out->set_short_waits_ns(view.short_waits_ns);
    out->set_thinned_launches(view.thinned_launches);
  }
  return counters;
}

void Target::AddCounters(BatchBuilder* batch, uint64_t now_ns, bool final) {
  // In the middle of the first reading they are as of no time, and the collector would
  // not take them; the same ones are not sent twice.
  if (complete_as_of_ns_ == 0) return;
  if (!final && now_ns - counters_at_ns_ < kCountersPeriodNs) return;
  counters_at_ns_ = now_ns;
  lull::v1::ProcessCounters counters = Counters();
  std::string bytes = counters.SerializeAsString();
  if (bytes == counters_sent_) return;
  counters_sent_ = std::move(bytes);
  counters.set_as_of_ns(complete_as_of_ns_);
  batch->AddCounters(std::move(counters));
}

void Target::AddEnd(BatchBuilder* batch, uint64_t now_ns) {
  if (end_sent_) return;
  AddCounters(batch, now_ns, /*final=*/true);
  batch->AddProcessEnd(key(), now_ns);
  end_sent_ = true;
}

void Target::RememberProgress(uint32_t number, Ring* ring) {
  if (ring->next == 0 && ring->lost_relay == 0) return;
  RingProgress& progress = state_->rings[{key(), number}];
  // Batches alone do not tell a successor of a gap behind their last event.
  if (progress.end != ring->next) state_->needs_checkpoint = true;
  progress = {ring->next, ring->lost_relay, ring->tid};
  if (ring->next == ring->released) return;
  if (number != kRelayRing) segment_.Release(number, ring->next);
  ring->released = ring->next;
}

void Target::Commit() {
  for (uint32_t i = 0; i < rings_.size(); ++i) RememberProgress(i, &rings_[i]);
  RememberProgress(kRelayRing, &own_ring_);
  definitions_.Commit();
  fresh_stacks_.clear();
  info_committed_ = info_sent_;
  counters_committed_ = counters_sent_;
  end_spooled_ = end_sent_;
}

void Target::DropUnspooled(uint32_t number, Ring* ring) {
  auto known = state_->rings.find({key(), number});
  uint64_t end = known == state_->rings.end() ? 0 : known->second.end;
  uint64_t already = known == state_->rings.end() ? 0 : known->second.lost_relay;
  // All between what is in the spool (or was dropped before) and what was read, of
  // which the slots that could not be are counted by now.
  uint64_t pending = ring->next - end;
  uint64_t counted = ring->lost_relay - std::min(already, ring->lost_relay);
  if (pending > counted) {
    ring->lost_relay += pending - counted;
    events_lost_ += pending - counted;
  }
  RememberProgress(number, ring);
}

void Target::Drop() {
  for (uint32_t i = 0; i < rings_.size(); ++i) DropUnspooled(i, &rings_[i]);
  DropUnspooled(kRelayRing, &own_ring_);
  definitions_.Drop();
  for (lull::v1::StackDef& stack : fresh_stacks_) {
    const uint32_t ref = stack.ref();
    untold_stacks_[ref] = std::move(stack);
  }
  fresh_stacks_.clear();
  info_sent_ = info_committed_;
  counters_sent_ = counters_committed_;
  counters_at_ns_ = 0;
  end_sent_ = end_spooled_;
}

uint64_t Target::Backlog() const {
  uint64_t most = 0;
  for (uint32_t i = 0; i < rings_.size() && !corrupt_; ++i) {
    most = std::max(most, segment_.Head(i) - rings_[i].released);
  }
  return most;
}

}  // namespace lull::relay
