#include "tests/daemon/query/gpu_job.h"

#include <algorithm>

#include "daemon/base/event_views.h"
#include "daemon/base/gpu_event_views.h"
#include "tests/daemon/units.h"

namespace lull::test {
namespace {

constexpr uint32_t kCuptiRing = 1;
constexpr uint32_t kRelayRing = 65535;
constexpr uint32_t kOff = 0, kWarmUp = 1, kActive = 2;

class Maker {
 public:
  Maker(uint64_t process, const GpuJobOptions& options, std::mt19937_64& random)
      : process_(process), options_(options), random_(random) {}

  std::vector<GpuEvent> Make() {
    const uint64_t end = now_ + options_.span_ns;
    while (now_ < end) {
      Window();
      Act();
      Sample();
      now_ += Below(2 * options_.mean_pause_ns);
      if (now_ > next_mark_) Mark();
    }
    if (state_ != kOff) SetState(kOff);
    Mark();
    std::stable_sort(events_.begin(), events_.end(), [](const auto& a, const auto& b) {
      return a.commit_ns < b.commit_ns;
    });
    return std::move(events_);
  }

 private:
  uint64_t Below(uint64_t limit) { return limit == 0 ? 0 : random_() % limit; }
  uint32_t AnyStack() { return 1 + static_cast<uint32_t>(Below(kPythonStacks)); }

  void Put(uint32_t ring, uint64_t commit_ns, const TestEvent& event) {
    events_.push_back({commit_ns, process_, ring, event});
  }

  // A stretch of the host thread, from now on; it goes on when it is over.
  TestEvent Host(uint32_t type, uint64_t duration_ns) {
    TestEvent event;
    event.type = type;
    event.start_ns = now_;
    event.duration_ns = duration_ns;
    event.python = AnyStack();
    event.tid = kTid;
    return event;
  }
  void Spend(const TestEvent& event) {
    now_ += event.duration_ns;
    Put(0, now_, event);
  }

  void SetState(uint32_t state) {
    state_ = state;
    TestEvent event;
    event.type = v1::EVENT_TYPE_GPU_TRACING;
    event.start_ns = now_;
    TracingView{event}.set_state(state);
    event.tid = kTid;
    Put(kCuptiRing, now_, event);
    if (state == kOff) next_mark_ = 0;
  }

  void Window() {
    if (!options_.windows) {
      if (state_ == kOff && now_ > kJobStartNs + kSecond) SetState(kActive);
      return;
    }
    if (now_ < next_state_) return;
    next_state_ = now_ + 200 * kMs + Below(4 * kSecond);
    SetState((state_ + 1) % 3);
  }

  void Mark() {
    next_mark_ = now_ + 100 * kMs + Below(500 * kMs);
    TestEvent event;
    event.type = v1::EVENT_TYPE_GPU_MARK;
    event.start_ns = now_ > kFlushNs ? now_ - kFlushNs : 0;
    event.tid = kTid;
    Put(kCuptiRing, now_ + 1, event);
  }

  void Act() {
    switch (Below(12)) {
      case 0:
        return Sync();
      case 1:
        return Spend(Host(7, 10 * kUs + Below(3 * kMs)));  // collection
      case 2:
        return Wait();
      case 3: {
        TestEvent event = Host(5, 5 * kUs + Below(2 * kMs));  // cudaMalloc
        event.api = kApiMalloc;
        MemoryView{event}.set_address(4096 * (1 + Below(10'000))).set_bytes(512);
        return Spend(event);
      }
      case 4: {
        TestEvent event = Host(6, Below(2) == 0 ? 0 : Below(60 * kUs));  // a tensor
        event.api = kApiTorch;
        MemoryView{event}.set_address(4096 * (1 + Below(10'000))).set_bytes(512);
        return Spend(event);
      }
      case 5:
        return RunDelay();
      default:
        return Launch();
    }
  }

  void Sync() {
    uint64_t until = std::max(device_free_, now_) + Below(60 * kUs);
    if (Below(30) == 0) until += Below(3 * kSecond);
    TestEvent event = Host(3, until - now_);
    event.api = kApiSync;
    event.native = kPythonStacks + 1;
    Spend(event);
  }

  void Wait() {
    TestEvent event = Host(8, 50 * kUs + Below(4 * kMs));
    if (Below(40) == 0) event.duration_ns += Below(5 * kSecond);
    event.python = Below(2) == 0 ? kDataStack : 1;
    event.api = Below(2) == 0 ? kApiPoll : kApiTimedWait;
    event.flags = event.api == kApiTimedWait && Below(2) == 0 ? 32 : 0;
    Spend(event);
  }

  void RunDelay() {
    TestEvent event;
    event.type = v1::EVENT_TYPE_RUN_DELAY;
    event.start_ns = now_ - Below(2 * kMs);
    event.duration_ns = 10 * kMs;
    RunDelayView{event}.set_delay_ns(Below(8 * kMs));
    RunDelayView{event}.set_preemptions(static_cast<uint32_t>(Below(3)));
    event.tid = kTid;
    Put(kRelayRing, event.start_ns + event.duration_ns + kMs, event);
  }

  // Of any moment around now. The relay is quick, or late by seconds.
  void Sample() {
    TestEvent event;
    event.type = v1::EVENT_TYPE_HOST_SAMPLE;
    event.start_ns = now_ + Below(2 * options_.mean_pause_ns);
    const SampleView sample{event};
    const uint64_t state = Below(3);
    sample.set_weight_ns(5 * kMs).set_look(state, Below(3));
    event.python = AnyStack();
    if (Below(10) == 0) {
      // No Python, or a read that failed.
      sample.set_look(v1::HOST_SAMPLE_STATE_BLOCKED, 3 + Below(2));
      event.python = 0;
    }
    event.tid = Below(5) == 0 ? kTid + 7 : kTid;
    Put(kRelayRing, event.start_ns + Below(Below(8) == 0 ? 9 * kSecond : 50 * kMs),
        event);
  }

  void Launch() {
    bool hooked = Below(8) != 0;  // cuBLAS's static runtime is not
    TestEvent launch = Host(2, 3 * kUs + Below(5 * kUs));
    launch.api = kApiLaunch;
    if (Below(3) == 0) launch.native = kPythonStacks + 2;
    const CorrelationId correlation{++correlation_};
    bool recorded = state_ != kOff;
    uint64_t called = now_ + 500, returned = now_ + launch.duration_ns - 500;
    if (hooked) {
      Spend(launch);
    } else {
      now_ += launch.duration_ns;
    }
    if (recorded) {
      TestEvent call;
      call.type = v1::EVENT_TYPE_API_CALL;
      call.api = kApiCudaLaunch;
      call.start_ns = called;
      call.duration_ns = returned - called;
      ApiCallView{call}.set_caller(ThreadId{kTid}).set_correlation(correlation);
      call.tid = kCuptiTid;
      PutRecord(call);
    }
    Operation(returned, correlation, recorded);
  }

  void Operation(uint64_t ready, CorrelationId correlation, bool recorded) {
    TestEvent event;
    uint64_t start = std::max(device_free_, ready + kUs + Below(20 * kUs));
    event.start_ns = start;
    event.duration_ns = 2 * kUs + Below(Below(5) == 0 ? 3 * kMs : 200 * kUs);
    event.native = 1 + static_cast<uint32_t>(Below(kStreamRefs));
    OperationView{event}.set_correlation(correlation);
    event.tid = kCuptiTid;
    device_free_ = start + event.duration_ns;
    switch (Below(8)) {
      case 0:
        event.type = v1::EVENT_TYPE_GPU_COPY;
        GpuCopyView{event}.set_bytes(1 + Below(1 << 20));
        GpuCopyView{event}.set_shape(
            Below(2) == 0 ? CopyShape::Of(v1::GPU_COPY_KIND_HOST_TO_DEVICE,
                                          v1::GPU_MEMORY_KIND_PAGEABLE,
                                          v1::GPU_MEMORY_KIND_DEVICE)
                          : CopyShape::Of(v1::GPU_COPY_KIND_DEVICE_TO_HOST,
                                          v1::GPU_MEMORY_KIND_DEVICE,
                                          v1::GPU_MEMORY_KIND_PINNED));
        break;
      case 1:
        event.type = v1::EVENT_TYPE_GPU_MEMSET;
        GpuCopyView{event}.set_bytes(256);
        break;
      case 2:
        event.type = v1::EVENT_TYPE_GPU_GRAPH;
        OperationView{event}.set_graph(77);
        break;
      default:
        event.type = v1::EVENT_TYPE_GPU_KERNEL;
        event.python = 1 + static_cast<uint32_t>(Below(kKernelRefs));
    }
    if (recorded) PutRecord(event);
  }

  void PutRecord(const TestEvent& event) {
    // In its ring a while after its end, and before any mark that covers it.
    Put(kCuptiRing, event.start_ns + event.duration_ns + Below(kFlushNs), event);
  }

  static constexpr uint32_t kTid = 4000, kCuptiTid = 4001;
  static constexpr uint64_t kFlushNs = 300 * kMs;

  const uint64_t process_;
  const GpuJobOptions& options_;
  std::mt19937_64& random_;
  std::vector<GpuEvent> events_;
  uint64_t now_ = kJobStartNs + 10 * kMs;
  uint64_t device_free_ = 0;
  uint64_t next_state_ = 0;
  uint64_t next_mark_ = 0;
  uint32_t state_ = kOff;
  uint32_t correlation_ = 0;
};

}  // namespace

std::vector<GpuEvent> MakeGpuJob(uint64_t process, const GpuJobOptions& options,
                                 std::mt19937_64& random) {
  return Maker(process, options, random).Make();
}

}  // namespace lull::test
