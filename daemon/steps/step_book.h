// What a training step was spent on. One book per process: stretches of work and of
// waiting go in as they arrive, and boundaries between steps; each step comes out with
// the time of its parts once nothing can change it.
//
// The parts are exclusive and sum to the step. Where several go on at once the first of
// them in the order of Part counts: a step in which a kernel runs while the host waits
// for data loses nothing by the wait. (The order is that of the step time breakdown of
// PyTorch's profiler plugin for TensorBoard.)
//
// Pure: no clock, no store. Times are CLOCK_MONOTONIC in ns. Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "daemon/base/settled.h"

namespace lull::steps {

enum class Part : uint8_t {
  kKernel = 0,         // on the device
  kMemcpy = 1,         // on the device
  kMemset = 2,         // on the device
  kCommunication = 3,  // collectives on the device
  kRuntime = 4,        // in CUDA calls
  kData = 5,           // waits for data
  kHost = 6,           // other waits, collections, allocations
};
inline constexpr size_t kParts = 7;  // what none of them covers is "other"

struct Span {
  uint64_t start_ns;
  uint64_t end_ns;
};

struct Step {
  uint64_t number = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  std::array<uint64_t, kParts> part_ns = {};
  bool traced = false;     // wholly in traced time: the parts on the device are known
  uint64_t rested_ns = 0;  // of a control step: nothing is known of so much of it
};

class StepBook {
 public:
  struct Options {
    // A step with more than that is left out.
    size_t max_stretches = 200'000;
    // A stretch that reaches beyond a step comes when it ends: steps wait so long for
    // it. If it goes on longer, it is missing from the steps before its end.
    uint64_t patience_ns = 1'000'000'000;
  };
  explicit StepBook(const Options& options) : options_(options) {}
  StepBook() : StepBook(Options()) {}

  void Add(Part part, uint64_t start_ns, uint64_t end_ns);
  // A step [start_ns, end_ns) is over; later ones start no earlier than it ends.
  void AddStep(uint64_t number, uint64_t start_ns, uint64_t end_ns,
               uint64_t rested_ns = 0);
  // Operations come for [Trace, Untrace), and none of them was lost.
  void Trace(uint64_t time_ns);
  void Untrace(uint64_t time_ns);
  void Lost(uint64_t start_ns, uint64_t end_ns);

  // Every stretch of the host that ends before `host_ns`, and of a device before
  // `gpu_ns`, has come. Appends the steps that this completes, in order.
  void Advance(uint64_t host_ns, uint64_t gpu_ns, std::vector<Step>* done);

  size_t pending() const;  // stretches held

 private:
  struct ByStart {
    bool operator()(const Span& a, const Span& b) const {
      return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns < b.end_ns;
    }
  };
  using Stretches = Settled<Span, ByStart>;  // they may overlap
  using Spans = std::vector<Span>;

  void Cut(Step& step);
  Spans StretchesOf(size_t part, const Step& step);
  void DropBefore(uint64_t time_ns);
  bool TouchesTraced(const Span& span) const;
  bool IsTraced(const Span& span) const;

  const Options options_;
  std::array<Stretches, kParts> parts_;
  uint64_t torn_until_ns_ = 0;  // stretches that ended before it were thrown away
  std::deque<Step> steps_;      // not cut yet
  Spans traced_;                // the last may be open: it ends at UINT64_MAX
  Spans lost_;
};

}  // namespace lull::steps
