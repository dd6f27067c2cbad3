// A program on the simulated device under liblull.so, with a relay that keeps every
// event, and what really happened.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "preload/abi/segment.h"
#include "tests/preload/support/fake_relay.h"
#include "tests/sim/engine/truth_format.h"

namespace lull {

struct GpuRun {
  int status = -1;  // as waitpid() has it
  std::string output;
  // Of the program itself (not of its children), ring by ring.
  std::vector<abi::Event> events;
  std::vector<char> segment;  // a copy, for the arena and the header
  std::vector<sim::TruthRecord> truth;

  abi::SegmentView view() const {
    return abi::SegmentView(const_cast<char*>(segment.data()));
  }
  const abi::SegmentHeader& header() const { return view().header(); }
  std::vector<abi::Event> of(abi::EventType type) const;
  std::vector<sim::TruthRecord> ops(uint16_t kind) const;
  std::string text(abi::Ref ref) const;
  // The name of a GpuKernel.
  std::string kernel_name(const abi::Event& event) const;
  // "warm-up", "active:schedule" ... of all GpuTracing events, in the order of time.
  std::vector<std::string> tracing() const;
  // Sum over all GpuLost.
  uint64_t lost() const;
};

using Environment = std::map<std::string, std::string>;

// While the program runs, once per millisecond: what the relay does to it.
using Watch = std::function<void(const FakeRelay::Target&, double seconds)>;

struct GpuRunOptions {
  FakeRelay::Configure configure;
  Environment environment = {};
  bool drain = true;  // false: the relay does not read until the program has ended
  Watch watch = {};
};

GpuRun run_on_gpu(std::vector<std::string> words, const GpuRunOptions& options);

// --gpu continuous, and windows by the clock.
void trace_continuously(abi::ControlBlock& control);
void trace_by_clock(abi::ControlBlock& control);

}  // namespace lull
