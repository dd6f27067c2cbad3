#include <algorithm>

#include "daemon/blame/engine_impl.h"
#include "daemon/blame/instant.h"

namespace lull::blame {

Engine::Impl::Impl(Options options, Sink& sink)
    : options_(options),
      sink_(sink),
      calls_({options.queue_ns, options.patience_ns, options.clock_tolerance_ns}),
      streams_(options.queue_ns) {}

ThreadTimeline& Engine::Impl::ThreadOf(ThreadId tid) {
  if (last_thread_ == nullptr || tid != last_tid_) {
    last_thread_ = &threads_[tid];
    last_tid_ = tid;
  }
  return *last_thread_;
}

void Engine::Impl::Add(const Operation& operation) {
  operations_.Add(Sound(operation));
}

void Engine::Impl::Add(const HostEvent& event) {
  HostEvent sound = Sound(event);
  if (!ThreadOf(event.tid).Add(sound)) ++counters_.late_host_events;
  if (event.kind == HostKind::kSync) syncs_.Add(sound);
}

void Engine::Impl::Add(const RunDelay& delay) {
  RunDelay sound = Sound(delay);
  // A longer one says next to nothing, and would come too late.
  if (sound.end_ns - sound.start_ns <= options_.patience_ns) delays_.Add(sound);
}

void Engine::Impl::Mark(uint64_t time_ns, bool on) {
  traced_.Add({std::max(std::min(time_ns, kLastInstant), passed_ns_), on});
}

void Engine::Impl::Settle() {
  operations_.Settle();
  streams_.Settle();
  syncs_.Settle();
  delays_.Settle();
  traced_.Settle();
  for (auto& [tid, thread] : threads_) thread.Settle();
}

void Engine::Impl::Advance(uint64_t host_ns, uint64_t gpu_ns) {
  host_ns_ = std::max(host_ns_, host_ns);
  gpu_ns_ = std::max(gpu_ns_, gpu_ns);
  Settle();
  Sweep(Minus(std::min(host_ns_, gpu_ns_), options_.patience_ns));
  TellAll(false);
  Prune();
  for (size_t held = pending(); held > options_.max_pending;) {
    Overflow();
    if (pending() >= held) break;  // what is left is needed for any answer
    held = pending();
  }
}

void Engine::Impl::Finish() {
  host_ns_ = gpu_ns_ = kNever;
  Settle();
  Sweep(kNever);
  if (traced_.on()) {
    uint64_t end = std::max(busy_reach_ns_, traced_.since_ns());
    for (const auto& [id, device] : devices_) end = std::max(end, device.floor_ns);
    traced_.End(end);
    EndGaps(end);
  }
  TellAll(true);
}

size_t Engine::Impl::pending() const {
  size_t held = operations_.size() + calls_.size() + streams_.size() + syncs_.size() +
                delays_.size() + traced_.size() + lost_.size() + busy_.size();
  for (const auto& [tid, thread] : threads_) held += thread.size();
  for (const auto& [id, device] : devices_) held += device.size();
  return held;
}

Engine::Engine(Options options, Sink& sink)
    : impl_(std::make_unique<Impl>(options, sink)) {}
Engine::~Engine() = default;

void Engine::Add(const Operation& operation) { impl_->Add(operation); }
void Engine::Add(const ApiCall& call) { impl_->Add(call); }
void Engine::Add(const StreamWait& wait) { impl_->Add(wait); }
void Engine::Add(const HostEvent& event) { impl_->Add(event); }
void Engine::Add(const RunDelay& delay) { impl_->Add(delay); }
void Engine::Trace(uint64_t time_ns) { impl_->Mark(time_ns, true); }
void Engine::Untrace(uint64_t time_ns) { impl_->Mark(time_ns, false); }
void Engine::Lost(uint64_t start_ns, uint64_t end_ns) { impl_->Lost(start_ns, end_ns); }
void Engine::Advance(uint64_t host_ns, uint64_t gpu_ns) {
  impl_->Advance(host_ns, gpu_ns);
}
void Engine::Finish() { impl_->Finish(); }
const Counters& Engine::counters() const { return impl_->counters(); }
size_t Engine::pending() const { return impl_->pending(); }

}  // namespace lull::blame
