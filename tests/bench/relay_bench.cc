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
#include "daemon/relay/batch_builder.h"
#include "daemon/relay/target.h"
#include "tests/daemon/relay/fake_segment.h"

namespace lull::relay {
namespace {

// A launch as a training loop makes it: a tip, a stream, a function, 50 us apart.
void Refill(FakeSegment* segment, abi::Ref tip, uint64_t* clock) {
  abi::Event event = MakeEvent(abi::EventType::kLaunch, 0x55d0'1000);
  event.arg1 = 0x7f12'3456'7890;
  event.api = 1;
  event.py_stack = tip;
  do {
    event.start_ns = *clock += 50'000;
    event.duration_ns = 4'000 + *clock % 3'000;
  } while (segment->Commit(0, event));
}

void RingToBatch(benchmark::State& state) {
  FakeSegment segment;
  abi::Ref code = segment.AddCode("train.py", "step", 1);
  abi::Ref tip = segment.AddPythonStack({{code, 2}});
  SpoolState spool_state;
  ModuleCache modules;
  lull::v1::ProcessInfo info;
  info.set_key(1);
  auto target = Target::Open(info, UniqueFd(dup(segment.memfd())), UniqueFd(), {},
                             &modules, &spool_state);
  BatchBuilder batch;
  uint64_t clock = 1;
  uint64_t relay_ns = 0;
  uint64_t memcpy_ns = 0;
  uint64_t bytes = 0;
  std::string wire;
  std::vector<abi::Event> copy(abi::kRingSlots);
  for (auto _ : state) {
    Refill(&segment, tip, &clock);
    uint64_t before = MonotonicNs();
    (*target)->Read(&batch);
    batch.batch()->SerializeToString(&wire);
    batch.Reset();
    (*target)->Commit();
    uint64_t read = MonotonicNs();
    memcpy(copy.data(), segment.view().slots(0), abi::kRingBytes);
    benchmark::DoNotOptimize(copy.data());
    memcpy_ns += MonotonicNs() - read;
    relay_ns += read - before;
    bytes += wire.size();
    state.SetIterationTime(static_cast<double>(read - before) * 1e-9);
  }
  double events = static_cast<double>(state.iterations()) * abi::kRingSlots;
  state.counters["events/s"] = events * 1e9 / static_cast<double>(relay_ns);
  state.counters["ns_per_event"] = static_cast<double>(relay_ns) / events;
  state.counters["bytes_per_event"] = static_cast<double>(bytes) / events;
  state.counters["memcpy_ratio"] =
      static_cast<double>(relay_ns) / static_cast<double>(memcpy_ns);
}
BENCHMARK(RingToBatch)->UseManualTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace lull::relay

BENCHMARK_MAIN();
