#include "daemon/advice/advice.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "daemon/advice/evidence.h"
#include "daemon/advice/rules.h"

namespace lull {
namespace {

constexpr Rule kHostRules[] = {HostDataWaits, HostOldCollections, HostDeviceMemory,
                               HostSyncs, LateRanks};
constexpr Rule kGpuRules[] = {IdleForData,
                              WastefulSyncs,
                              IdleForGc,
                              IdleForAllocator,
                              LaunchBound,
                              LaunchLatency,
                              IdleForLaunchCall,
                              IdleForProcessor,
                              IdleForGil,
                              IdleForHostWait,
                              IdleForHostCode,
                              Dependencies,
                              TensorCoresUnused,
                              GradientsFilledWithZero,
                              CommunicationNotHidden,
                              LateRanks};
constexpr Rule kMemoryRules[] = {FragmentedCache, GrowingMemory};

// What a verdict calls the findings of a rule; those of memory fit any.
struct Bound {
  const char* rule;
  const char* verdict;
};
constexpr Bound kBounds[] = {
    {"data_wait", "data"},
    {"sync", "sync"},
    {"gc", "host"},
    {"allocator", "host"},
    {"run_queue", "host"},
    {"gil_wait", "host"},
    {"host_wait", "host"},
    {"host_code", "host"},
    {"launch_bound", "launch"},
    {"launch_latency", "launch"},
    {"launch_call", "host"},
    {"tensor_cores", "compute"},
    {"zero_grad", "compute"},
    {"communication", "communication"},
    {"late_rank", "communication"},
};

bool IsOf(const std::string& verdict, const v1::Finding& finding) {
  return std::any_of(std::begin(kBounds), std::end(kBounds), [&](const Bound& bound) {
    return finding.rule() == bound.rule && verdict == bound.verdict;
  });
}

// What wins most of the verdict's cause comes first, and what else of it is not small
// beside the rest: a cause that has many places ("host") also has some that nobody
// should look at before data that the device waits for half of its time.
void Order(const std::string& verdict, Findings& found) {
  std::stable_sort(found.begin(), found.end(),
                   [](const v1::Finding& a, const v1::Finding& b) {
                     return a.win_ns() > b.win_ns();
                   });
  uint64_t most_of_verdict = 0;
  uint64_t most_of_others = 0;
  for (const v1::Finding& finding : found) {
    uint64_t& most = IsOf(verdict, finding) ? most_of_verdict : most_of_others;
    most = std::max(most, finding.win_ns());
  }
  const uint64_t least = std::min(most_of_verdict, most_of_others / 2);
  std::stable_partition(found.begin(), found.end(), [&](const v1::Finding& finding) {
    return IsOf(verdict, finding) && finding.win_ns() >= least;
  });
}

}  // namespace

v1::Advice WhatToChangeFirst(const v1::ReportReply& report) {
  Evidence evidence(report);
  Findings found;
  if (evidence.gpu_truth()) {
    for (Rule rule : kGpuRules) rule(evidence, found);
  } else {
    for (Rule rule : kHostRules) rule(evidence, found);
  }
  for (Rule rule : kMemoryRules) rule(evidence, found);
  Order(report.gpu().verdict(), found);
  v1::Advice advice;
  for (v1::Finding& finding : found) *advice.add_findings() = std::move(finding);
  return advice;
}

}  // namespace lull
