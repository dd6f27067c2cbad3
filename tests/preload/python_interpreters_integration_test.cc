// The puppets python_stacks.py, gc_pauses.py, steps.py and record_function.py in every
// CPython of this machine. They hold the checks; Python's own view of its stack is the
// reference.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tests/preload/interpreters.h"

namespace lull::testing {
namespace {

const std::string kProbe = "LULL_STACKS_PROBE=" LULL_STACKS_PROBE;
// The probe that has the wrappers of PyTorch's functions, where they come first.
const std::vector<std::string> kPreloaded = {"LULL_STACKS_PROBE=" LULL_TORCH_PROBE,
                                             "LD_PRELOAD=" LULL_TORCH_PROBE};

// Runs one scenario everywhere; its standard error must stay empty.
void run_everywhere(const char* script, const char* scenario,
                    const std::vector<std::string>& environment = {kProbe}) {
  ASSERT_FALSE(interpreters().empty()) << "no python3.8 to python3.15 in the PATH";
  for (const Interpreter& python : interpreters()) {
    Outcome outcome = run_script(python.path, std::string(LULL_PUPPETS "/") + script,
                                 {scenario}, environment);
    EXPECT_EQ(outcome.status, 0) << python.version << "\n" << outcome.errors;
    EXPECT_EQ(outcome.output, "ran\n") << python.version;
    EXPECT_EQ(outcome.errors, "") << python.version;
  }
}

#define STACKS(name, scenario) \
  TEST(PythonStack, name) { run_everywhere("python_stacks.py", scenario); }
#define PAUSES(name, scenario) \
  TEST(GcPauses, name) { run_everywhere("gc_pauses.py", scenario); }

#define STEPS(name, scenario) \
  TEST(Steps, name) { run_everywhere("steps.py", scenario); }
#define SCOPES(name, scenario) \
  TEST(Scopes, name) { run_everywhere("record_function.py", scenario); }
#define WRAPPED(name, scenario)                                 \
  TEST(WrappedScopes, name) {                                   \
    run_everywhere("record_function.py", scenario, kPreloaded); \
  }

STACKS(HasFunctionAndLineOfNestedCalls, "nested_calls")
STACKS(IsRightInGenerators, "generators")
STACKS(IsRightInComprehensions, "comprehensions")
STACKS(IsRightInCallbacksFromC, "callbacks_from_c")
STACKS(IsRightInHandlersAndLoops, "control_flow")
STACKS(IsRightInClassBodiesAndDecorators, "class_bodies")
STACKS(IsRightInCoroutines, "coroutines")
STACKS(IsCutAtTheCapAndSaysSo, "recursion_beyond_the_cap")
STACKS(IsRightOfFunctionsThatCallEachOther, "functions_that_call_each_other")
STACKS(HasNoLineOfCodeWithoutALineTable, "no_line_table")
STACKS(IsRightWhileThreadsContendForTheGil, "threads")
STACKS(KeepsNamesBeyondAscii, "names_beyond_ascii")
STACKS(KeepsPathsThatAreNotUnicode, "a_lone_surrogate_in_a_path")
STACKS(IsNotFooledByCodeAtAReusedAddress, "reused_addresses")
STACKS(HasOneFrameAsATip, "tips")
STACKS(TellsWhetherAFileIsInIt, "contains")
STACKS(StartsAfreshInAForkChild, "fork")
STACKS(KnowsTheVersionOfTheInterpreter, "version")

PAUSES(AreThoseThatPythonCounts, "every_collection")
PAUSES(HaveTheLineThatTriggeredThem, "the_triggering_line")
PAUSES(ComeFromOneListEntryHoweverOftenItIsInstalled, "no_second_entry")
PAUSES(EndWhenTheProgramClearsTheCallbacks, "cleared_by_the_program")
PAUSES(SurviveAProgramThatCallsTheCallbackItself, "called_by_the_program")
PAUSES(LeaveAnExceptionInFlightAlone, "an_exception_that_is_already_set")
PAUSES(AreRecordedOnlyWhileArmed, "only_while_armed")
PAUSES(GoOnInAForkChildWithoutReinstalling, "after_a_fork")
PAUSES(AreNotAskedForByAThreadThatMayNot, "asked_for_only_where_it_may_be")
PAUSES(MayBeAskedForWhileTheInterpreterEnds, "asked_for_at_the_very_end")
PAUSES(DoNotEndInAForkChildOfTheCollection, "a_fork_within_a_collection")

STEPS(AreHookedByTheFirstCollectionAfterTheImport, "installed_by_a_collection")
STEPS(AreHookedByAPendingCallWhereNothingIsCollected, "installed_by_a_pending_call")
STEPS(AreNotLookedForAllTheTime, "not_asked_for_twice_in_a_moment")
STEPS(AreUnavailableBeforePyTorch2, "unavailable_before_torch_2")
STEPS(GoFromOneOptimizerStepToTheNext, "a_step_from_boundary_to_boundary")
STEPS(AreNotDoubledByASecondOptimizer, "two_optimizers_make_one_step")
STEPS(AreGivenUpWhenPyTorchRefusesTheHook, "a_hook_that_fails_to_register")
STEPS(SurviveAProgramThatCallsTheHookItself, "called_by_the_program")
STEPS(BeginAnewInAForkChild, "a_fork_child_begins_anew")

STEPS(AreNotTakenFromNvtxUnlessARangeIsNamed,
      "ranges_are_regions_and_no_steps_unless_one_is_named")
STEPS(AreThoseOfScopesWherePyTorchHasNoHooks, "of_scopes_where_pytorch_has_no_hooks")
STEPS(AreNotCountedTwice, "not_of_scopes_where_pytorch_has_hooks")
STEPS(EndWhereTheNamedNvtxRangeEnds, "the_range_that_the_user_named")
STEPS(KnowNvtxRangesInAllTheirForms, "ranges_with_attributes_and_of_two_threads")
STEPS(AreTheNamedRangeAndNotTheOptimizer, "a_named_range_instead_of_the_optimizer")

SCOPES(AreAskedForOnceWhenPyTorchIsThere, "installed_once_pytorch_is_imported")
SCOPES(AreAskedForOfKnownVersionsAlone, "versions")
SCOPES(AreNotAskedForWhereTheVersionIsNoText, "a_version_that_is_no_text")
SCOPES(AreNotAskedForWithoutTheFunctions, "no_such_functions")
SCOPES(AreNotAskedForInASleep, "not_while_asleep")
SCOPES(HaveTheNamesOfThoseAroundThem, "nested")
SCOPES(AreUnknownWhereTheyBeganBefore, "begun_before_there_was_a_callback")
SCOPES(EndQuietlyInASleep, "slept_through")
SCOPES(OfLoadersAreKnownByTheirThread, "loaders")
SCOPES(MayEndOnAnotherThread, "ended_by_another_thread")
SCOPES(OfAParentAreNotTheChilds, "forked_in_one")
SCOPES(DoNotFillTheArena, "too_many_names")
SCOPES(MayHaveNoName, "without_a_name")

WRAPPED(NeedNoCallbackOnceItHasBeenSeen,
        "the_callback_is_taken_out_once_it_has_been_seen")
WRAPPED(AreNotDoubledWhereAThreadHasACopy, "threads_that_have_a_copy_of_the_callback")
WRAPPED(HaveTheCallbackBackWhereThereIsNoRoom, "beside_callbacks_of_others")
WRAPPED(KeepTheCallbackWhereListsHaveAnotherForm, "lists_of_another_form")
WRAPPED(AreLeftAloneWhereTheProgramHasSwitchedThemOff,
        "where_the_program_has_switched_them_off")
WRAPPED(WarnOfNothingWhereTheProgramHasClearedAll, "cleared_by_the_program")
WRAPPED(KeepTheCallbackWhereSomebodyElseAsks, "asked_by_somebody_else")
WRAPPED(OfForksAndThreadsAreAllThere, "a_fork_and_two_threads")
WRAPPED(EndQuietlyInASleep, "slept_through")
WRAPPED(AreUnknownWhereTheyBeganBefore, "begun_before_there_was_a_callback")
WRAPPED(MayEndOnAnotherThread, "ended_by_another_thread")

TEST(GcPauses, AreNotRecordedWhileTheInterpreterEnds) {
  ASSERT_FALSE(interpreters().empty());
  for (const Interpreter& python : interpreters()) {
    std::string report =
        ::testing::TempDir() + "/gc_report_" + std::to_string(getpid());
    Outcome outcome =
        run_script(python.path, LULL_PUPPETS "/gc_pauses.py", {"nothing_at_the_end"},
                   {kProbe, "PROBE_REPORT=" + report});
    EXPECT_EQ(outcome.status, 0) << python.version << "\n" << outcome.errors;
    uint64_t expected = 0;
    uint64_t found = 0;
    std::ifstream(report + ".expected") >> expected;
    std::ifstream(report) >> found;
    EXPECT_GT(expected, 0u) << python.version;
    EXPECT_EQ(found, expected) << python.version;
    unlink(report.c_str());
    unlink((report + ".expected").c_str());
  }
}

}  // namespace
}  // namespace lull::testing
