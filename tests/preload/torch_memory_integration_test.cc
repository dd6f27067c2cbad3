// hooks/torch_memory.cc and hooks/torch_scalar.cc preloaded into a program that uses
// the PyTorch of this machine (LULL_TEST_TORCH_PYTHON, else what
// tools/python_with_torch finds).
#include <gtest/gtest.h>
#include <stdlib.h>

#include <regex>

#include "tests/preload/interpreters.h"

namespace lull::testing {
namespace {

std::string find_python() {
  if (const char* named = getenv("LULL_TEST_TORCH_PYTHON")) return named;
  Outcome found =
      run_script("/bin/bash", LULL_PUPPETS "/../../../tools/python_with_torch", {}, {});
  return found.output.substr(0, found.output.find('\n'));
}
const std::string& python() {
  static const std::string found = find_python();
  return found;
}

Outcome run(const char* scenario, bool preloaded) {
  std::vector<std::string> environment = {"PROBE_LATE=1"};
  if (preloaded) {
    environment.push_back("LULL_STACKS_PROBE=" LULL_TORCH_PROBE);
    environment.push_back("LD_PRELOAD=" LULL_TORCH_PROBE);
  } else {
    environment.push_back("LULL_STACKS_PROBE=" LULL_STACKS_PROBE);
  }
  return run_script(python(), LULL_PUPPETS "/torch_memory.py", {scenario}, environment);
}

class TorchMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (python().empty() ||
        run_script(python(), "-c", {"import torch"}, {}).status != 0) {
      GTEST_SKIP() << "no Python here has PyTorch";
    }
  }

  void passes(const char* scenario) {
    Outcome outcome = run(scenario, true);
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    EXPECT_EQ(outcome.output, "ran\n");
  }
};

#define SCENARIO(name, scenario) \
  TEST_F(TorchMemory, name) { passes(scenario); }

SCENARIO(StartsACandidateUnlessModulesAreBeingImported,
         "starts_with_a_tensor_but_not_with_an_import")
SCENARIO(ReportsEachCpuBlockOnceAndItsFree, "allocations_and_frees")
SCENARIO(HasTheLineOfAnAllocation, "the_line_of_an_allocation")
SCENARIO(SeesAllocationsOfTheBackwardPass, "backward_on_a_foreign_thread")
SCENARIO(HasNativeStacksWhereThereIsNoPython, "native_stacks_where_there_is_no_python")
SCENARIO(RecordsWhatTheCudaAllocatorReservesWhenItChanges,
         "what_the_cuda_allocator_reserves")
SCENARIO(DrawsSmallBlocksByTheirBytesFromAllLinesOfALoop,
         "small_blocks_are_drawn_by_their_bytes")
SCENARIO(HasTheStackOfEachLargeBlockAlsoWhenThinned,
         "blocks_of_64_kib_have_their_stacks")
SCENARIO(AddsNoMemoryToAProfileThatDidNotAskForIt, "no_profile_without_memory")

SCENARIO(HasTheFirstNonFiniteScalarAndItsLine, "the_first_non_finite_scalar")
SCENARIO(KnowsInfinitiesOfOtherTypes, "minus_infinity_as_half")
SCENARIO(LetsExceptionsOfTheReadBackThrough, "an_exception_of_the_original")

// glog's and kineto's times, processes and threads.
std::string without_stamps(const std::string& text) {
  return std::regex_replace(
      text, std::regex("W[0-9]+ [0-9:.]+( +[0-9]+)?|[0-9-]+ [0-9:]+ [0-9]+:[0-9]+ "),
      "");
}

TEST_F(TorchMemory, LeavesTorchProfilerAndStderrAsTheyAreWithoutUs) {
  Outcome with = run("profile", true);
  Outcome without = run("profile", false);
  EXPECT_EQ(without.status, 0) << without.errors;
  EXPECT_EQ(with.status, 0) << with.errors;
  EXPECT_NE(without.output.find("[memory]"), std::string::npos);
  EXPECT_EQ(with.output, without.output);
  EXPECT_EQ(without_stamps(with.errors), without_stamps(without.errors));
}

}  // namespace
}  // namespace lull::testing
