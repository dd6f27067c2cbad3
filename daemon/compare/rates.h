// What else differs per step: causes of idle time, kernels, host waits, functions,
// memory.
#pragma once

#include "daemon/compare/comparison.h"
#include "daemon/compare/run.h"

namespace lull::compare {

// Each list: the largest difference first.
std::vector<CauseChange> CompareCauses(const Runs& a, const Runs& b);
std::vector<KernelChange> CompareKernels(const Runs& a, const Runs& b);
std::vector<HostChange> CompareHost(const Runs& a, const Runs& b);
// Empty unless all runs have samples of main threads.
std::vector<FunctionChange> CompareFunctions(const Runs& a, const Runs& b);
std::vector<MemoryChange> CompareMemory(const Runs& a, const Runs& b);

}  // namespace lull::compare
