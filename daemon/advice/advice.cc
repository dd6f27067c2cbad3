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
                               HostSyncs};
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
                              CommunicationNotHidden};
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
};

bool IsOf(const std::string& verdict, const v1::Finding& finding) {
  return std::any_of(std::begin(kBounds), std::end(kBounds), [&](const Bound& bound) {
    return finding.rule() == bound.rule && verdict == bound.verdict;
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
  const std::string& verdict = report.gpu().verdict();
  std::stable_sort(found.begin(), found.end(),
                   [&](const v1::Finding& a, const v1::Finding& b) {
                     bool first = IsOf(verdict, a), second = IsOf(verdict, b);
                     return first != second ? first : a.win_ns() > b.win_ns();
                   });
  v1::Advice advice;
  for (v1::Finding& finding : found) *advice.add_findings() = std::move(finding);
  return advice;
}

}  // namespace lull
