// One device's time in bins of one length: traced, busy, and idle by cause. Pure. Times
// are ns after the start of the job.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/aggregate/gpu_curve.h"
#include "query.pb.h"

namespace lull::query {

class TimelineBins {
 public:
  // `count` bins from start_ns on; what lies outside of them is left out.
  TimelineBins(uint64_t start_ns, uint64_t bin_ns, size_t count);

  void AddIdle(uint64_t begin_ns, uint64_t end_ns, size_t cause);
  // Busy and kernel time count in proportion.
  void AddTraced(uint64_t begin_ns, uint64_t end_ns, uint64_t busy_ns,
                 uint64_t kernel_ns);
  // Sums of the bin in which `at_ns` lies.
  void AddSums(uint64_t at_ns, size_t cause, uint64_t idle_ns);
  void AddTracedSums(uint64_t at_ns, uint64_t traced_ns, uint64_t busy_ns,
                     uint64_t kernel_ns);

  // Busy is what of traced time is not idle: exact in each bin, as idle time is. How
  // much of it kernels ran is known of longer stretches alone.
  void Fill(lull::v1::TimelineBand* band) const;

 private:
  struct Bin {
    uint64_t traced_ns = 0;
    double busy_ns = 0, kernel_ns = 0;
    std::array<uint64_t, aggregate::kGapCauses> idle_ns = {};
  };
  // visit(bin, ns) with what of [begin, end) lies in each bin.
  template <typename Visitor>
  void ForEach(uint64_t begin_ns, uint64_t end_ns, Visitor&& visit);
  Bin* At(uint64_t at_ns);

  const uint64_t start_ns_, bin_ns_;
  std::vector<Bin> bins_;
};

}  // namespace lull::query
