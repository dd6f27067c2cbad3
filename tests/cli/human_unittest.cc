#include "cli/render/human.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/render/doctor.h"
#include "cli/render/lines.h"
#include "cli/render/summary.h"
#include "tests/cli/fixed_replies.h"
#include "tests/cli/golden.h"

namespace lull {
namespace {

using namespace testing;  // NOLINT: the fixed replies and the golden files

TEST(HumanReport, ListsJobsNewestFirstWithTheirFate) {
  ExpectGolden("jobs", JobsText(FixedJobs()));
}

TEST(HumanReport, SaysHowToStartWhenThereAreNoJobs) {
  ExpectGolden("jobs_none", JobsText({}));
}

TEST(HumanReport, SaysWhichJobsAreDamaged) {
  v1::ListJobsReply reply;
  reply.add_damaged_jobs(std::string(32, 'a'));
  EXPECT_EQ(JobsText(reply),
            "Not listed: 1 job whose rows in the database are damaged: aaaaaaaa\n");
  reply = FixedJobs();
  const std::string sound = JobsText(reply);
  reply.add_damaged_jobs(std::string(32, 'a'));
  reply.add_damaged_jobs(std::string(32, 'b'));
  EXPECT_EQ(JobsText(reply),
            sound +
                "Not listed: 2 jobs whose rows in the database are damaged: "
                "aaaaaaaa, bbbbbbbb\n");
}

TEST(HumanReport, ShowsSyncPointsByLine) {
  ExpectGolden("syncs", SyncsText(FixedSyncs(), v1::GROUP_BY_LINE));
}

TEST(HumanReport, LeavesTheLineOutWhenGroupedByFunction) {
  ExpectGolden("syncs_by_function", SyncsText(FixedSyncs(), v1::GROUP_BY_FUNCTION));
}

TEST(HumanReport, ShowsFramesUnderEachRowWhenGroupedByStack) {
  ExpectGolden("syncs_by_stack", SyncsText(FixedSyncs(), v1::GROUP_BY_STACK));
}

TEST(HumanReport, ShowsAllocationsByLine) {
  ExpectGolden("allocs", AllocationsText(FixedAllocations(), v1::GROUP_BY_LINE));
}

TEST(HumanReport, ShowsGarbageCollectionsWithTheLineThatSetThemOff) {
  ExpectGolden("gc", GcText(FixedGc(), v1::GROUP_BY_LINE));
}

TEST(HumanReport, ShowsHostWaitsByLine) {
  ExpectGolden("waits", WaitsText(FixedWaits(), v1::GROUP_BY_LINE));
}

TEST(HumanReport, ShowsEverythingOnOnePage) {
  ExpectGolden("report", ReportText(FixedReport(), v1::GROUP_BY_LINE));
}

TEST(HumanReport, SaysSoWhenNothingWasSeen) {
  v1::ReportReply empty;
  *empty.mutable_job() = FixedJob();
  Conclude(&empty);
  ExpectGolden("report_empty", ReportText(empty, v1::GROUP_BY_LINE));
}

TEST(HumanReport, SaysWhatIsMissingFromAnAnswer) {
  v1::ReportReply reply = FixedSyncs();
  v1::Losses* losses = reply.mutable_losses();
  losses->set_events_lost(1'530);
  losses->set_lost_ring_full(1'000);
  losses->set_lost_no_ring(500);
  losses->set_lost_relay(30);
  losses->set_stacks_rejected(12);
  losses->set_corrupt_segments(1);
  losses->set_thinning(3);
  losses->set_thinned_launches(40'000);
  ExpectGolden("syncs_with_losses", SyncsText(reply, v1::GROUP_BY_LINE));
}

v1::Job EndedJob() {
  v1::Job job;
  job.set_ended(true);
  return job;
}

TEST(HumanReport, CallsOnlyAJobCompleteWhoseEndWasSeen) {
  v1::Losses losses;
  losses.set_events_committed(2'000);
  losses.set_events_stored(2'000);
  v1::Job job;
  EXPECT_EQ(LossesLine(job, losses), "Nothing lost so far: 2,000 events.");
  job.set_end_unseen(true);
  job.set_complete_until_ns(2'030'000'000);
  EXPECT_EQ(LossesLine(job, losses),
            "Stored: 2,000 events; the end of the job was not seen: complete until "
            "2.03 s after its start.");
  EXPECT_NE(JobLine(job).find(", end not seen"), std::string::npos);
  EXPECT_EQ(JobLine(job).find("still running"), std::string::npos);
  job = EndedJob();
  job.set_batches_set_aside(2);
  EXPECT_EQ(LossesLine(job, losses),
            "Stored: 2,000 events; 2 batches were refused by the collector; kept on "
            "the job's host, in the folder `refused` beside the spools.");
  job = EndedJob();
  job.set_unreachable_ns(35'000'000'000);
  EXPECT_EQ(LossesLine(job, losses),
            "Stored: 2,000 events; for 35.0 s no new process could be recorded, "
            "because the runtime folder was gone.");
  EXPECT_EQ(LossesLine(EndedJob(), losses), "Nothing lost: 2,000 events.");
}

TEST(HumanReport, DoesNotCallAJobCompleteWhoseEventsAreOnTheirWay) {
  const v1::Job job = EndedJob();
  v1::Losses losses;
  losses.set_events_committed(2'000);
  losses.set_events_stored(1'500);
  EXPECT_EQ(LossesLine(job, losses), "Stored so far: 1,500 of 2,000 events.");
}

TEST(HumanReport, DoesNotCallAJobCompleteThatEndedForWantOfMemory) {
  const v1::Job job = EndedJob();
  v1::Losses losses;
  losses.set_events_committed(2'000);
  losses.set_events_stored(2'000);
  EXPECT_EQ(LossesLine(job, losses), "Nothing lost: 2,000 events.");
  losses.set_processes_without_memory(2);
  EXPECT_EQ(LossesLine(job, losses),
            "Stored: 2,000 events; processes that the system gave no memory for "
            "recording, which ended there: 2.");
  losses.set_processes_without_memory(0);
  losses.set_processes_unread(1);
  EXPECT_EQ(LossesLine(job, losses),
            "Stored: 2,000 events; processes of which lull read nothing for a minute, "
            "and recorded nothing from then until it did: 1.");
}

TEST(HumanReport, DoesNotCallAJobCompleteInWhichCallsWereNotRecorded) {
  v1::Losses losses;
  losses.set_events_committed(2'000);
  losses.set_events_stored(2'000);
  losses.set_reentered(8);
  EXPECT_EQ(LossesLine(EndedJob(), losses),
            "Stored: 2,000 events; up to 8 calls not recorded (after jumps out of CUDA "
            "calls, or in signal handlers).");
}

TEST(HumanReport, DoesNotCallAJobCompleteWithAProcessThatWasNotRecorded) {
  v1::Losses losses;
  losses.set_events_committed(2'000);
  losses.set_events_stored(2'000);
  losses.set_unrecorded_processes(1);
  EXPECT_EQ(
      LossesLine(EndedJob(), losses),
      "Stored: 2,000 events; processes that could not be recorded at all (no memory "
      "or descriptor to share, no answer from lull in time, or another lull's): 1.");
}

TEST(HumanReport, DoesNotCallAJobCompleteThatEndedForASeccompFilter) {
  v1::Losses losses;
  losses.set_events_committed(2'000);
  losses.set_events_stored(2'000);
  losses.set_processes_with_seccomp_filter(1);
  EXPECT_EQ(LossesLine(EndedJob(), losses),
            "Stored: 2,000 events; processes whose own seccomp filter might kill them, "
            "so that recording ended there: 1.");
}

TEST(HumanReport, DoesNotCallAJobCompleteWithAProcessThatOutlivedIt) {
  v1::Losses losses;
  losses.set_events_committed(2'000);
  losses.set_events_stored(2'000);
  losses.set_processes_end_unseen(1);
  EXPECT_EQ(LossesLine(EndedJob(), losses),
            "Stored: 2,000 events; processes that went on after the job's end, until "
            "which they are recorded, or whose end could not be seen: 1.");
}

TEST(HumanReport, NamesTheSignalOfAnExitStatus) {
  v1::Job job = EndedJob();
  job.set_exit_status_known(true);
  const std::pair<int, const char*> known[] = {{137, "exit status 137 (SIGKILL)"},
                                               {139, "exit status 139 (SIGSEGV)"},
                                               {128, "exit status 128"},
                                               {255, "exit status 255"},
                                               {1, "exit status 1"}};
  for (auto [status, text] : known) {
    job.set_exit_status(status);
    EXPECT_THAT(JobLine(job), ::testing::EndsWith(text));
  }
}

// An older collector knows only that it was asked for.
TEST(HumanReport, SaysThatStepsWereSampledHoweverThatIsTold) {
  const char* words = "; steps sampled, totals are of the recorded ones";
  EXPECT_THAT(JobLine(EndedJob()), ::testing::Not(::testing::HasSubstr("sampled")));
  v1::Job told = EndedJob();
  told.set_steps_sampled(true);
  EXPECT_THAT(JobLine(told), ::testing::EndsWith(words));
  v1::Job asked_for = EndedJob();
  asked_for.mutable_settings()->set_sample_steps(true);
  EXPECT_THAT(JobLine(asked_for), ::testing::EndsWith(words));
}

TEST(HumanReport, SaysWhyRingsRanOutWithoutProc) {
  const v1::Job job = EndedJob();
  v1::Losses losses;
  losses.set_events_committed(2'000);
  losses.set_events_stored(2'000);
  losses.set_processes_threads_unseen(1);
  EXPECT_EQ(LossesLine(job, losses), "Nothing lost: 2,000 events.");
  losses.set_events_lost(3);
  losses.set_lost_no_ring(3);
  EXPECT_EQ(
      LossesLine(job, losses),
      "LOST 3 of 2,003 events (3 from threads without a ring); without /proc lull "
      "cannot see which threads are gone, so their rings were not given to others.");
}

TEST(HumanReport, SaysWhyFunctionsHaveNoNames) {
  v1::Losses losses;
  losses.set_events_committed(2'000);
  losses.set_events_stored(2'000);
  losses.set_modules_unread(1);
  EXPECT_EQ(LossesLine(EndedJob(), losses),
            "Nothing lost: 2,000 events; functions without names, for reading the "
            "symbols of their libraries failed: in 1 library.");
}

TEST(HumanReport, HasNoExitStatusOfAJobThatWasAttachedTo) {
  v1::ListJobsReply reply;
  v1::Job& job = *reply.add_jobs();
  job = FixedJob();
  job.set_attached(true);
  job.set_exit_status_known(false);
  job.set_exit_status(0);
  EXPECT_TRUE(JobLine(job).ends_with(", watched by lull attach")) << JobLine(job);
  EXPECT_NE(JobsText(reply).find("attached"), std::string::npos) << JobsText(reply);
  job.set_ended(false);
  EXPECT_TRUE(JobLine(job).ends_with(", still watched")) << JobLine(job);
}

TEST(HumanReport, SaysThatAJobThatRunsHasEndedNoStepForLong) {
  v1::ListJobsReply reply;
  v1::Job& job = *reply.add_jobs();
  job = FixedJob();
  job.set_ended(false);
  job.set_since_step_ns(725'000'000'000);
  job.set_step_ns(102'000'000);
  EXPECT_TRUE(JobLine(job).ends_with(
      ", still running (no step has ended for 12 min 05 s; one takes 102 ms)"))
      << JobLine(job);
  EXPECT_NE(JobsText(reply).find("  no step for 12 min 05 s  "), std::string::npos)
      << JobsText(reply);
  job.set_since_step_ns(4'900'000'000);
  EXPECT_TRUE(JobLine(job).ends_with(", still running")) << JobLine(job);
  EXPECT_NE(JobsText(reply).find("  running  "), std::string::npos) << JobsText(reply);
}

TEST(HumanReport, NeverPassesControlCharactersOfTheJobToTheTerminal) {
  v1::ReportReply reply = FixedSyncs();
  reply.mutable_job()->set_name("a\x1b[2Jb");
  reply.mutable_job()->set_command("c\x1b]0;d\x07");
  reply.mutable_syncs()->mutable_sync_points(0)->mutable_site()->set_function(
      "e\x1b[31mf\n");
  reply.mutable_syncs()->mutable_sync_points(0)->mutable_site()->set_file("g\rh");
  std::string text = SyncsText(reply, v1::GROUP_BY_LINE);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\x07'), std::string::npos);
  EXPECT_EQ(text.find('\r'), std::string::npos);
}

TEST(Summary, AnswersInAboutTenLines) {
  std::string text = SummaryText(FixedReport(), false);
  ExpectGolden("summary", text);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 15);
}

TEST(Summary, SaysThatNothingStandsOutWhenNothingDoes) {
  v1::ReportReply reply = FixedReport();
  reply.mutable_syncs()->Clear();
  reply.mutable_waits()->Clear();
  reply.mutable_gc()->Clear();
  reply.mutable_allocations()->Clear();
  for (v1::ProcessRow& row : *reply.mutable_processes()) {
    row.set_data_wait_ns(0);
    row.set_blocked_ns(0);
  }
  Conclude(&reply);
  ExpectGolden("summary_quiet", SummaryText(reply, false));
}

TEST(Summary, UsesColourOnlyWhenAsked) {
  EXPECT_EQ(SummaryText(FixedReport(), false).find('\x1b'), std::string::npos);
  EXPECT_NE(SummaryText(FixedReport(), true).find("\x1b[1m"), std::string::npos);
}

TEST(Doctor, ShowsAdviceUnderWhatIsWrong) {
  std::vector<Check> checks = {
      {"glibc", Check::Status::kOk, "2.36", ""},
      {"libunwind", Check::Status::kWarning, "libunwind.so.8 cannot be loaded",
       "install lull from its wheel or its package"},
      {"memfd", Check::Status::kError, "memfd_create does not work",
       "allow it in the container's seccomp profile"}};
  ExpectGolden("doctor", DoctorText(checks));
}

TEST(HumanReport, SaysWhereOnlyWhatBlockedIsKnownOfDataTime) {
  v1::ReportReply reply = FixedWaits();
  EXPECT_THAT(WaitsText(reply, v1::GROUP_BY_LINE),
              ::testing::Not(::testing::HasSubstr("only what blocked")));
  reply.mutable_waits()->set_data_exact(false);
  EXPECT_THAT(WaitsText(reply, v1::GROUP_BY_LINE),
              ::testing::HasSubstr("only what blocked"));
  reply.mutable_waits()->mutable_host_waits()->DeleteSubrange(0, 1);  // the data
  EXPECT_THAT(WaitsText(reply, v1::GROUP_BY_LINE),
              ::testing::Not(::testing::HasSubstr("only what blocked")));
}

}  // namespace
}  // namespace lull
