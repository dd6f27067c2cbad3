#include <algorithm>

#include "tests/daemon/blame/story.h"

namespace lull::blame {
namespace {

class Author {
 public:
  explicit Author(uint64_t seed) : random_(seed) {}

  Story Write() {
    ChooseOptions();
    devices_ = 1 + Below(2);
    streams_.resize(devices_ * (1 + Below(3)));
    for (uint32_t i = 0; i < streams_.size(); ++i) {
      streams_[i].device = DeviceId{static_cast<uint32_t>(i % devices_)};
    }
    uint32_t threads = 1 + Below(3);
    std::vector<uint64_t> now(threads);
    for (uint64_t& time : now) time = Below(300);
    int acts = 20 + static_cast<int>(Below(180));
    for (int i = 0; i < acts; ++i) {
      // Mostly in the order of time, as streams are; not always, as clocks are not.
      auto tid = std::min_element(now.begin(), now.end()) - now.begin();
      if (Chance(20)) tid = static_cast<ptrdiff_t>(Below(threads));
      Act(ThreadId{100 + static_cast<uint32_t>(tid)}, &now[static_cast<size_t>(tid)]);
    }
    end_ = *std::max_element(now.begin(), now.end()) + 300;
    AddWindows();
    AddLosses();
    AddDelays(threads);
    return story_;
  }

 private:
  struct Stream {
    DeviceId device{};
    uint64_t free_ns = 0;
  };

  static ContextId ContextOf(const Stream& stream) {
    return ContextId{10 + Number(stream.device)};
  }
  uint64_t Below(uint64_t limit) { return random_() % limit; }
  bool Chance(int percent) { return Below(100) < static_cast<uint64_t>(percent); }
  // Mostly short, in steps of five, sometimes long: so ends and starts meet.
  uint64_t Length() { return 5 * (Chance(10) ? Below(100) : Below(12)); }
  uint32_t Series() { return ++series_; }

  void ChooseOptions() {
    Options& options = story_.options;
    options.launch_bound_ns = 5 * Below(12);
    options.slow_call_ns = 2 * Below(12);
    options.patience_ns = 3000;
    options.queue_ns = 2000 + Below(4000);
    options.longest_gap_ns = Chance(30) ? 200 + Below(2000) : 1'000'000;
    options.coverage_ns = 50 + Below(2000);
    options.clock_tolerance_ns = Below(8);
  }

  void Event(uint64_t start, uint64_t end, ThreadId tid, HostKind kind) {
    story_.host.push_back({start, end, tid, Series(), kind});
  }

  void Act(ThreadId tid, uint64_t* now) {
    *now += Chance(30) ? 0 : Length();
    if (Chance(55)) return Submit(tid, now);
    if (Chance(30)) return Synchronize(tid, now);
    if (Chance(15)) return Tell(tid, now);
    Wait(tid, now, 2);
  }

  // A state of the thread, which may hold others.
  void Wait(ThreadId tid, uint64_t* now, int depth) {
    constexpr HostKind kKinds[] = {HostKind::kAllocator, HostKind::kGc,
                                   HostKind::kDataWait,  HostKind::kDataScope,
                                   HostKind::kGilWait,   HostKind::kHandover,
                                   HostKind::kHostWait,  HostKind::kSync};
    uint64_t start = *now;
    HostKind kind = kKinds[Below(8)];
    *now += Length();
    while (depth > 0 && Chance(30)) {
      Wait(tid, now, depth - 1);
      *now += Length();
    }
    if (depth > 0 && Chance(10)) Submit(tid, now);
    Event(start, *now, tid, kind);
  }

  // The call, the driver's call within, and the hook around it, with clocks that differ
  // a little; some of them were not seen.
  void Call(ThreadId tid, uint64_t start, uint64_t end, CorrelationId correlation,
            HostKind hook) {
    if (Chance(94)) story_.calls.push_back({start, end, tid, correlation, Series()});
    if (Chance(20) && end - start > 4) {
      story_.calls.push_back({start + 1, end - 1, tid, correlation, Series()});
    }
    if (Chance(25)) return;
    uint64_t skew = Below(5);
    Event(start - std::min(start, Below(3)) + skew, end + Below(3) + skew, tid, hook);
  }

  uint64_t Run(Stream& stream, uint32_t index, uint64_t from, CorrelationId correlation,
               OperationKind kind) {
    uint64_t start = std::max(from, stream.free_ns);
    uint64_t end = start + (Chance(4) ? 0 : 5 + Length());
    stream.free_ns = end;
    if (Chance(97)) {
      story_.operations.push_back({start, end, correlation, stream.device,
                                   ContextOf(stream), StreamId{index}, Series(), kind});
    }
    return end;
  }

  void Submit(ThreadId tid, uint64_t* now) {
    uint32_t index = Below(streams_.size());
    Stream& stream = streams_[index];
    const CorrelationId correlation = NextId();
    uint64_t start = *now;
    uint64_t ready = start + 1 + Below(3) * 5;
    bool blocks = false;
    if (Chance(15)) {  // it loads a module before it submits
      const uint64_t own = Length();
      ready += own;
      *now += own;
    }
    if (Chance(12)) {  // a graph, its nodes told one by one
      for (int nodes = 1 + static_cast<int>(Below(4)); nodes > 0; --nodes) {
        Run(stream, index, ready, correlation, OperationKind::kKernel);
        ready = stream.free_ns + (Chance(50) ? 0 : Length());
      }
    } else {
      constexpr OperationKind kKinds[] = {
          OperationKind::kKernel, OperationKind::kKernel, OperationKind::kCopy,
          OperationKind::kMemset, OperationKind::kGraph};
      OperationKind kind = kKinds[Below(5)];
      uint64_t end = Run(stream, index, ready, correlation, kind);
      blocks = kind == OperationKind::kCopy && Chance(40);
      if (blocks) *now = std::max(*now, end);
    }
    *now += 1 + Below(10);
    Call(tid, start, *now, correlation, blocks ? HostKind::kSync : HostKind::kLaunch);
  }

  void Synchronize(ThreadId tid, uint64_t* now) {
    uint64_t start = *now;
    const Stream& stream = streams_[Below(streams_.size())];
    *now = std::max(*now, stream.free_ns) + Below(20);
    Call(tid, start, *now, NextId(), HostKind::kSync);
  }

  // One stream is told to wait for another.
  void Tell(ThreadId tid, uint64_t* now) {
    uint32_t index = Below(streams_.size());
    Stream& stream = streams_[index];
    uint64_t start = *now;
    *now += 1 + Below(4);
    const CorrelationId correlation = NextId();
    story_.waits.push_back({start, ContextOf(stream), StreamId{index}, correlation});
    Call(tid, start, *now, correlation, HostKind::kLaunch);
    const Stream& other = streams_[Below(streams_.size())];
    stream.free_ns = std::max(stream.free_ns, other.free_ns);
  }

  void AddWindows() {
    if (Chance(40)) {
      story_.marks.push_back({Chance(50) ? 0 : Below(end_), true});
      if (Chance(60)) story_.marks.push_back({end_ - Below(end_ / 2), false});
      return;
    }
    for (int i = 1 + static_cast<int>(Below(5)); i > 0; --i) {
      story_.marks.push_back({Below(end_), true});
      if (Chance(80)) story_.marks.push_back({Below(end_), false});
    }
  }

  void AddLosses() {
    while (Chance(25)) {
      uint64_t start = Below(end_);
      story_.lost.push_back({start, start + Below(200)});
    }
  }

  void AddDelays(uint32_t threads) {
    uint64_t period = 50 + Below(600);
    for (uint32_t tid = 0; tid < threads; ++tid) {
      if (Chance(40)) continue;
      for (uint64_t at = Below(period); at < end_; at += period) {
        if (Chance(50)) continue;
        uint64_t length = Chance(90) ? period : Below(2 * period);  // some overlap
        story_.delays.push_back(
            {at, at + length, ThreadId{100 + tid}, Below(length + 1)});
      }
    }
  }

  CorrelationId NextId() { return CorrelationId{++correlation_}; }

  std::mt19937_64 random_;
  Story story_;
  uint64_t end_ = 0;
  uint64_t devices_ = 1;
  std::vector<Stream> streams_;
  uint32_t series_ = 0;
  uint32_t correlation_ = 0;
};

}  // namespace

Story RandomStory(uint64_t seed) { return Author(seed).Write(); }

}  // namespace lull::blame
