#include "daemon/advice/verdict.h"

#include <algorithm>

namespace lull {
namespace {

// Busy for so much of the time, kernels run back to back: no gap is worth a look.
constexpr double kComputeBusy = 0.90;
// What takes less of the time than this is no verdict.
constexpr double kLeastShare = 0.05;
// Without a cause that stands out, this much busy time still says compute.
constexpr double kMostlyBusy = 0.50;

struct Group {
  const char* name;
  uint64_t ns;
};

}  // namespace

std::string Verdict(const TimeShares& shares) {
  using namespace v1;  // NOLINT: the causes
  if (shares.traced_ns == 0) return "";
  auto idle = [&](std::initializer_list<GapCause> causes) {
    uint64_t sum = 0;
    for (GapCause cause : causes) sum += shares.idle_ns[static_cast<size_t>(cause)];
    return sum;
  };
  // NCCL's kernels wait for each other on the device: their time is not computation.
  const uint64_t kernels = std::min(shares.kernel_ns, shares.busy_ns);
  const uint64_t communication = std::min(shares.communication_ns, kernels);
  const uint64_t computing = kernels - communication;
  // Copies and fills beside which nothing computes.
  const uint64_t copying = shares.busy_ns - kernels;
  const Group groups[] = {
      {"communication", communication},
      {"launch", idle({GAP_CAUSE_LAUNCH_BOUND})},
      {"sync", idle({GAP_CAUSE_SYNC})},
      {"data", idle({GAP_CAUSE_DATA_WAIT})},
      {"host",
       idle({GAP_CAUSE_GC, GAP_CAUSE_ALLOCATOR, GAP_CAUSE_GIL_WAIT, GAP_CAUSE_HOST_WAIT,
             GAP_CAUSE_RUN_QUEUE, GAP_CAUSE_HOST_CODE, GAP_CAUSE_LAUNCH_CALL})},
      {"copy", copying}};
  auto share = [&](uint64_t ns) {
    return static_cast<double>(ns) / static_cast<double>(shares.traced_ns);
  };
  if (share(computing) >= kComputeBusy) return "compute";
  const Group& largest =
      *std::max_element(std::begin(groups), std::end(groups),
                        [](const Group& a, const Group& b) { return a.ns < b.ns; });
  if (share(largest.ns) >= kLeastShare) return largest.name;
  // The host had done its part: it counts only where nothing else does.
  if (share(idle({GAP_CAUSE_LAUNCH_LATENCY})) >= kLeastShare) return "launch";
  return share(computing) >= kMostlyBusy ? "compute" : "";
}

}  // namespace lull
