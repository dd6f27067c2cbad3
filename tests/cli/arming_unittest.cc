#include "cli/render/arming.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cli/render/gpu_lines.h"
#include "cli/render/human.h"
#include "cli/render/json.h"
#include "daemon/advice/advice.h"
#include "tests/cli/fixed_replies.h"
#include "tests/cli/golden.h"

namespace lull {
namespace {

using namespace testing;  // NOLINT: the fixed replies and the golden files
using ::testing::ElementsAre;
using ::testing::EndsWith;

constexpr uint64_t kS = 1'000'000'000;

// The fixed job, armed twice in its 62.4 s.
v1::Job PartlyRecorded() {
  v1::Job job = FixedJob();
  job.set_partly_recorded(true);
  job.set_stretches(2);
  job.set_recorded_ns(15 * kS);
  for (uint64_t start : {10, 40}) {
    v1::Job::Stretch* stretch = job.add_recorded();
    stretch->set_start_ns(start * kS);
    stretch->set_end_ns((start == 10 ? 20 : 45) * kS);
  }
  return job;
}

v1::ArmReply Reply(bool armed, uint32_t processes, uint64_t for_ns) {
  v1::ArmReply reply;
  *reply.mutable_job() = PartlyRecorded();
  reply.mutable_job()->set_ended(false);
  reply.mutable_job()->set_asleep(!armed);
  reply.set_armed(armed);
  reply.set_processes(processes);
  reply.set_for_ns(for_ns);
  return reply;
}

TEST(ArmReport, SaysWhatTheCommandReached) {
  v1::ArmReply nameless = Reply(true, 1, 0);
  nameless.mutable_job()->clear_name();
  ExpectGolden("arm", ArmedText(Reply(true, 2, 60 * kS)) + ArmedText(nameless) +
                          ArmedText(Reply(true, 0, 60 * kS)) +
                          ArmedText(Reply(false, 2, 0)) +
                          ArmedText(Reply(false, 0, 0)));
}

TEST(ArmReport, HasItAsJson) {
  Json json = ArmedJson(Reply(true, 2, 60 * kS));
  EXPECT_EQ(json["armed"], true);
  EXPECT_EQ(json["processes"], 2);
  EXPECT_EQ(json["for_ms"], 60000.0);
  EXPECT_EQ(json["job"]["name"], kJobName);
  EXPECT_EQ(json["job"]["armed"], true);
  EXPECT_TRUE(ArmedJson(Reply(true, 2, 0))["for_ms"].is_null());
}

TEST(ArmReport, TheHeadSaysHowMuchWasRecorded) {
  v1::ReportReply reply = FixedSyncs();
  *reply.mutable_job() = PartlyRecorded();
  std::string text = SyncsText(reply, v1::GROUP_BY_LINE);
  EXPECT_THAT(text.substr(0, text.find('\n')),
              EndsWith("; recorded 15.0 s of 62.4 s (2 stretches)"));
  Json json = SyncsJson(reply);
  EXPECT_EQ(json["job"]["recorded_ms"], 15000.0);
  ASSERT_EQ(json["job"]["recorded"].size(), 2u);
  EXPECT_EQ(json["job"]["recorded"][1]["start_ms"], 40000.0);
  EXPECT_EQ(json["job"]["recorded"][1]["end_ms"], 45000.0);
  EXPECT_TRUE(json["job"]["armed"].is_null()) << "it has ended";
}

TEST(ArmReport, OfAJobThatWasNeverArmedSaysSo) {
  v1::Job job = FixedJob();
  job.set_partly_recorded(true);
  EXPECT_EQ(RecordedText(job), "recorded 0.0 s of 62.4 s (0 stretches)");
}

TEST(ArmReport, OfAJobThatAlwaysRecordedSaysNothing) {
  EXPECT_EQ(RecordedText(FixedJob()), "");
  Json json = SyncsJson(FixedSyncs());
  ASSERT_EQ(json["job"]["recorded"].size(), 1u);
  EXPECT_EQ(json["job"]["recorded"][0]["end_ms"], 62400.0);
  EXPECT_EQ(json["job"]["recorded_ms"], 62400.0);
}

TEST(ArmReport, SharesAreOfTheTimeThatWasRecorded) {
  v1::ReportReply reply = FixedReport();
  uint64_t before = SharesOf(reply).working_ns();
  for (v1::ProcessRow& row : *reply.mutable_processes()) {
    row.set_recorded_ns(row.duration_ns() / 4);
  }
  EXPECT_EQ(SharesOf(reply).working_ns(), before / 4);
  *reply.mutable_job() = PartlyRecorded();
  EXPECT_NE(CoverageLine(reply.job(), FixedGpu()).find(" of 15.0 s"), std::string::npos)
      << CoverageLine(reply.job(), FixedGpu());
}

TEST(ArmReport, RunningJobsAreAsleepOrArmed) {
  v1::ListJobsReply jobs;
  *jobs.add_jobs() = Reply(true, 2, 0).job();
  *jobs.add_jobs() = Reply(false, 2, 0).job();
  *jobs.add_jobs() = FixedJob();
  jobs.mutable_jobs(2)->set_ended(false);
  ExpectGolden("jobs_armed", JobsText(jobs));
}

}  // namespace
}  // namespace lull
