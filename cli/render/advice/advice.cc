#include "cli/render/advice.h"

#include <algorithm>

#include "cli/render/advice/evidence.h"
#include "cli/render/advice/rules.h"
#include "cli/render/arming.h"

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
                              IdleForProcessor,
                              IdleForGil,
                              IdleForHostWait,
                              IdleForHostCode,
                              Dependencies,
                              TensorCoresUnused,
                              GradientsFilledWithZero,
                              CommunicationNotHidden};
constexpr Rule kMemoryRules[] = {FragmentedCache, GrowingMemory};

}  // namespace

Shares SharesOf(const v1::ReportReply& reply) {
  auto works = [](const v1::ProcessRow& row) { return row.gpu() || row.torch(); };
  bool any = std::any_of(reply.processes().begin(), reply.processes().end(), works);
  Shares shares;
  for (const v1::ProcessRow& row : reply.processes()) {
    if (any && !works(row)) continue;
    shares.working_ns += RecordedNs(row);
    shares.blocked_ns += row.blocked_ns();
    shares.data_wait_ns += row.data_wait_ns();
    shares.gc_ns += row.gc_ns();
    ++shares.working_processes;
  }
  return shares;
}

std::vector<Advice> WhatToChangeFirst(const v1::ReportReply& reply) {
  Evidence evidence(reply);
  std::vector<Advice> found;
  if (evidence.gpu_truth()) {
    for (Rule rule : kGpuRules) rule(evidence, found);
  } else {
    for (Rule rule : kHostRules) rule(evidence, found);
  }
  for (Rule rule : kMemoryRules) rule(evidence, found);
  std::stable_sort(found.begin(), found.end(), [](const Advice& a, const Advice& b) {
    return a.rank_ns > b.rank_ns;
  });
  return found;
}

}  // namespace lull
