// How fast one core of the relay turns rings into serialised batches, beside what
// memcpy of the same bytes costs in the same run. Budget: 2 M events/s a core.
//
//   ns_per_event   reading, checking, filling columns, serialising
//   memcpy_ratio   that, divided by a memcpy of the same events
#include <benchmark/benchmark.h>
#include <string.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "daemon/base/clock.h"
#include "daemon/base/event_views.h"
#include "daemon/base/gpu_event_views.h"
#include "daemon/relay/read/batch_builder.h"
#include "daemon/relay/read/target.h"
#include "tests/daemon/relay/fake_segment.h"

namespace lull::relay {
namespace {

// A launch as a training loop makes it: a tip, a stream, a function, 50 us apart.
std::vector<abi::Event> Launches(FakeSegment* segment) {
  abi::Event event = MakeEvent(abi::EventType::kLaunch, 0x55d0'1000);
  LaunchView{event}.set_function(0x7f12'3456'7890);
  event.api = 1;
  event.py_stack =
      segment->AddPythonStack({{segment->AddCode("train.py", "step", 1), 2}});
  return {event};
}

// The same within a window of GPU tracing: of each launch also the call as CUPTI saw
// it and the kernel, one of 64 that repeat; now and then a copy.
std::vector<abi::Event> TracedLaunches(FakeSegment* segment) {
  abi::Event launch = Launches(segment)[0];
  abi::Ref name = segment->AddText("cudaLaunchKernel_v7000");
  abi::Ref stream = segment->AddGpuStream(0, 1, 7);
  std::vector<abi::Event> events;
  for (uint32_t i = 0; i < 64; ++i) {
    abi::Event call = MakeEvent(abi::EventType::kApiCall, 4711);
    call.py_stack = name;
    call.api = abi::kRuntimeCallBase + 211;
    abi::Event kernel = MakeEvent(abi::EventType::kGpuKernel, 0);
    kernel.py_stack = segment->AddKernel(segment->AddText("_Z4gemmPf"), i + 1);
    kernel.native_stack = stream;
    ApiCallView{call}.set_correlation(CorrelationId{100'000 + i});
    OperationView{kernel}.set_correlation(CorrelationId{100'000 + i});
    events.insert(events.end(), {launch, call, kernel});
    if (i % 16 != 0) continue;
    abi::Event copy = MakeEvent(abi::EventType::kGpuCopy, 1 << 20);
    copy.native_stack = stream;
    events.push_back(copy);
  }
  return events;
}

constexpr size_t kEvents = 8'192;  // read at a time

void Refill(FakeSegment* segment, const std::vector<abi::Event>& events,
            uint64_t* clock) {
  for (size_t i = 0; i < kEvents; ++i) {
    abi::Event event = events[i % events.size()];
    event.start_ns = *clock += 50'000;
    event.duration_ns = 4'000 + *clock % 3'000;
    if (!segment->Commit(0, event)) abort();
  }
}

using Mix = std::vector<abi::Event> (*)(FakeSegment*);

void RingToBatch(benchmark::State& state, Mix mix) {
  FakeSegment segment;
  std::vector<abi::Event> events_of_loop = mix(&segment);
  SpoolState spool_state;
  lull::v1::ProcessInfo info;
  info.set_key(1);
  auto target =
      Target::Open(info, UniqueFd(dup(segment.memfd())), UniqueFd(), {}, &spool_state);
  BatchBuilder batch;
  uint64_t clock = 1;
  uint64_t relay_ns = 0;
  uint64_t memcpy_ns = 0;
  uint64_t bytes = 0;
  std::string wire;
  std::vector<abi::Event> plain(kEvents), copy(kEvents);
  for (auto _ : state) {
    Refill(&segment, events_of_loop, &clock);
    uint64_t before = MonotonicNs();
    (*target)->Read(&batch);
    batch.batch()->SerializeToString(&wire);
    batch.Reset();
    (*target)->Commit();
    uint64_t read = MonotonicNs();
    memcpy(copy.data(), plain.data(), kEvents * sizeof(abi::Event));
    benchmark::DoNotOptimize(copy.data());
    memcpy_ns += MonotonicNs() - read;
    relay_ns += read - before;
    bytes += wire.size();
    state.SetIterationTime(static_cast<double>(read - before) * 1e-9);
  }
  double events = static_cast<double>(state.iterations()) * kEvents;
  state.counters["events/s"] = events * 1e9 / static_cast<double>(relay_ns);
  state.counters["ns_per_event"] = static_cast<double>(relay_ns) / events;
  state.counters["bytes_per_event"] = static_cast<double>(bytes) / events;
  state.counters["memcpy_ratio"] =
      static_cast<double>(relay_ns) / static_cast<double>(memcpy_ns);
}
BENCHMARK_CAPTURE(RingToBatch, launches, Launches)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(RingToBatch, traced_launches, TracedLaunches)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace lull::relay

BENCHMARK_MAIN();
