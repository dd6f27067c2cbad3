// Which steps are compared.
#pragma once

#include <vector>

#include "daemon/compare/run.h"

namespace lull::compare {

// Fewer are not compared.
inline constexpr size_t kLeastSteps = 20;
// Of one run; ranks do the same work, and each is asked about by itself.
inline constexpr size_t kMostProcesses = 16;

// The steady steps of each process of a run: without those at the beginning until a
// running median has come near to that of the second half, and in any case without the
// first ten (or a quarter of few steps). Processes with too few steps have none.
std::vector<ProcessSteps> SteadySteps(const v1::ReportReply& whole);

// What ChooseSteps() had to leave out.
struct ChosenSteps {
  bool same_numbers = true;       // all runs are compared by the same steps
  size_t processes_left_out = 0;  // of the run that has most
};
// Fills `processes` of all runs: their steady steps, and of these the ones that all
// runs have, if that leaves enough.
ChosenSteps ChooseSteps(const std::vector<Run*>& runs);
// Each run by itself: its processes' steady steps, whatever steps other runs have.
ChosenSteps ChooseOwnSteps(const std::vector<Run*>& runs);
// As ChooseSteps() where one side was asked about already, and only `runs` can still be
// chosen for: the steps of that side, if they have all of these.
ChosenSteps ChooseStepsLike(const std::vector<Run>& asked,
                            const std::vector<Run*>& runs);

}  // namespace lull::compare
