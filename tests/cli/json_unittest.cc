// The JSON contract: keys, their order and their types.
#include "cli/render/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/render/doctor.h"
#include "tests/cli/fixed_replies.h"
#include "tests/cli/parsed_json.h"

namespace lull {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using testing::Keys;
using testing::Parsed;

TEST(JsonReport, OfBackwardWorkNamesItsNodeItsCallerAndWhoMadeIt) {
  v1::ReportReply reply = testing::FixedSyncs();
  v1::Site* site = reply.mutable_syncs()->mutable_sync_points(0)->mutable_site();
  site->set_function("GeluBackward0");
  site->mutable_backward_of()->set_function("train");
  site->mutable_forward_site()->set_line(44);
  Json json = Parsed(SyncsJson(reply))["sync_points"][0]["site"];
  EXPECT_THAT(Keys(json), ElementsAre("file", "line", "function", "node", "backward_of",
                                      "forward_site"));
  EXPECT_EQ(json["node"], "GeluBackward0");
  EXPECT_EQ(json["backward_of"]["function"], "train");
  EXPECT_EQ(json["forward_site"]["line"], 44);
  site->set_function("(backward)");
  site->clear_forward_site();
  json = Parsed(SyncsJson(reply))["sync_points"][0]["site"];
  EXPECT_TRUE(json["node"].is_null());
  EXPECT_TRUE(json["forward_site"].is_null());
}

TEST(JsonReport, OfSyncsHasTheAgreedKeysInOrder) {
  Json json = Parsed(SyncsJson(testing::FixedSyncs()));
  EXPECT_THAT(Keys(json),
              ElementsAre("job", "gpu", "sync_points", "total_blocked_ms",
                          "total_calls", "phase", "setup_ms", "losses", "overhead"));
  EXPECT_THAT(Keys(json["job"]),
              ElementsAre("id", "name", "command", "host", "started_at", "duration_ms",
                          "exit_status", "ended", "attached", "events", "processes",
                          "working_processes", "armed", "recorded", "recorded_ms",
                          "steps_sampled", "since_step_ms", "step_ms", "end_seen",
                          "complete_until_ms", "batches_set_aside", "unreachable_ms",
                          "tags", "pinned"));
  EXPECT_TRUE(json["job"]["since_step_ms"].is_null());
  EXPECT_THAT(Keys(json["sync_points"][0]),
              ElementsAre("api", "calls", "blocked_ms", "max_ms", "bytes",
                          "judged_calls", "judged_blocked_ms", "needed_ms", "wasted_ms",
                          "site", "stack", "native_stack"));
  EXPECT_THAT(Keys(json["sync_points"][0]["site"]),
              ElementsAre("file", "line", "function"));
  EXPECT_THAT(Keys(json["sync_points"][0]["stack"][0]),
              ElementsAre("function", "file", "line"));
  EXPECT_THAT(Keys(json["sync_points"][0]["native_stack"][0]),
              ElementsAre("function", "file", "line", "module"));
  EXPECT_THAT(Keys(json["overhead"]), ElementsAre("self_ms", "percent", "relay_cpu_ms",
                                                  "budget_percent", "step_cost"));
  EXPECT_THAT(
      Keys(json["losses"]),
      ElementsAre("events_committed", "events_stored", "events_lost", "lost_ring_full",
                  "lost_no_ring", "lost_relay", "stacks_rejected", "reentered",
                  "corrupt_segments", "thinning", "short_waits", "short_waits_ms",
                  "thinned_launches", "processes_without_memory",
                  "processes_threads_unseen", "unrecorded_processes", "scopes_thinned",
                  "processes_with_seccomp_filter", "processes_unread",
                  "processes_end_unseen", "modules_unread"));
}

// A relay tells what it took when it ends: until then nobody knows.
TEST(JsonReport, WhatTheRelayTookIsNotKnownBeforeItsEnd) {
  v1::ReportReply reply = testing::FixedSyncs();
  EXPECT_TRUE(Parsed(SyncsJson(reply))["overhead"]["relay_cpu_ms"].is_number_float());
  reply.mutable_overhead()->clear_relay_cpu_ns();
  EXPECT_TRUE(Parsed(SyncsJson(reply))["overhead"]["relay_cpu_ms"].is_null());
  EXPECT_TRUE(Parsed(SyncsJson(reply))["overhead"]["self_ms"].is_number_float());
}

TEST(JsonReport, GivesDurationsAsMillisecondNumbers) {
  Json json = Parsed(SyncsJson(testing::FixedSyncs()));
  EXPECT_TRUE(json["sync_points"][0]["blocked_ms"].is_number_float());
  EXPECT_THAT(json["sync_points"][0]["blocked_ms"].get<double>(), DoubleEq(8120));
  EXPECT_THAT(json["sync_points"][0]["max_ms"].get<double>(), DoubleEq(9.3));
  EXPECT_THAT(json["total_blocked_ms"].get<double>(), DoubleEq(12400));
  EXPECT_THAT(json["job"]["duration_ms"].get<double>(), DoubleEq(62400));
  EXPECT_THAT(json["losses"]["short_waits_ms"].get<double>(), DoubleEq(412));
}

TEST(JsonReport, GivesCountsAndBytesAsIntegers) {
  Json json = Parsed(SyncsJson(testing::FixedSyncs()));
  EXPECT_TRUE(json["sync_points"][1]["bytes"].is_number_integer());
  EXPECT_EQ(json["sync_points"][1]["bytes"], 6'144'000'000);
  EXPECT_EQ(json["total_calls"], 4502);
  Json allocs = Parsed(AllocationsJson(testing::FixedAllocations()));
  EXPECT_EQ(allocs["allocation_sites"][0]["bytes"], 3'221'225'472'000);
  EXPECT_EQ(allocs["allocation_sites"][0]["live_bytes"], 419'430'400);
}

TEST(JsonReport, NamesTheStartInUtc) {
  Json json = SyncsJson(testing::FixedSyncs());
  EXPECT_EQ(json["job"]["started_at"], "2024-05-01T12:30:00.250Z");
}

TEST(JsonReport, GivesNullForAnExitStatusThatIsNotKnown) {
  v1::ReportReply reply = testing::FixedSyncs();
  EXPECT_EQ(SyncsJson(reply)["job"]["exit_status"], 0);
  reply.mutable_job()->set_exit_status_known(false);
  EXPECT_TRUE(SyncsJson(reply)["job"]["exit_status"].is_null());
  EXPECT_EQ(SyncsJson(reply)["job"]["attached"], false);
  reply.mutable_job()->set_attached(true);
  EXPECT_EQ(SyncsJson(reply)["job"]["attached"], true);
}

TEST(JsonReport, OfAllocationsHasTheAgreedKeys) {
  Json json = Parsed(AllocationsJson(testing::FixedAllocations()));
  EXPECT_THAT(Keys(json),
              ElementsAre("job", "allocation_sites", "total_bytes", "total_calls",
                          "unknown_frees", "phase", "setup_ms", "losses", "overhead"));
  EXPECT_THAT(Keys(json["allocation_sites"][0]),
              ElementsAre("allocator", "calls", "frees", "bytes", "estimated",
                          "error_bytes", "live_bytes", "peak_bytes", "blocked_ms",
                          "site", "stack", "native_stack"));
}

TEST(JsonReport, OfGcHasTheAgreedKeys) {
  Json json = Parsed(GcJson(testing::FixedGc()));
  EXPECT_THAT(Keys(json), ElementsAre("job", "gc_pauses", "total_ms", "total_count",
                                      "phase", "setup_ms", "losses", "overhead"));
  EXPECT_THAT(Keys(json["gc_pauses"][0]),
              ElementsAre("generation", "count", "total_ms", "max_ms", "collected",
                          "uncollectable", "site", "stack"));
}

TEST(JsonReport, OfWaitsHasTheAgreedKeys) {
  Json json = Parsed(WaitsJson(testing::FixedWaits()));
  EXPECT_THAT(Keys(json), ElementsAre("job", "host_waits", "total_ms", "data_exact",
                                      "phase", "setup_ms", "losses", "overhead"));
  EXPECT_THAT(
      Keys(json["host_waits"][0]),
      ElementsAre("kind", "api", "count", "total_ms", "max_ms", "site", "stack"));
}

TEST(JsonReport, OfAJobHasEveryList) {
  Json json = Parsed(ReportJson(testing::FixedReport()));
  EXPECT_THAT(Keys(json),
              ElementsAre("job", "summary", "gpu", "causes", "gaps", "kernels",
                          "copies", "steps", "step_totals", "non_finite", "devices",
                          "processes", "sync_points", "allocation_sites", "memory",
                          "malloc_retries", "gc_pauses", "host_waits", "data_exact",
                          "sources", "phase", "setup_ms", "losses", "overhead"));
  EXPECT_EQ(json["processes"].size(), 3u);
  EXPECT_EQ(json["processes"][1]["rank"], 1);
  EXPECT_TRUE(json["processes"][2]["rank"].is_null());
  EXPECT_THAT(json["summary"]["data_wait_ms"].get<double>(), DoubleEq(27600));
}

TEST(JsonReport, OfJobsIsAList) {
  Json json = Parsed(JobsJson(testing::FixedJobs()));
  ASSERT_EQ(json["jobs"].size(), 4u);
  EXPECT_FALSE(json["jobs"][0]["ended"].get<bool>());
  EXPECT_EQ(json["jobs"][2]["exit_status"], 137);
  EXPECT_FALSE(json.contains("damaged_jobs"));
  v1::ListJobsReply damaged;
  damaged.add_damaged_jobs("aa");
  EXPECT_EQ(Parsed(JobsJson(damaged))["damaged_jobs"][0], "aa");
}

TEST(JsonReport, ReplacesTextThatIsNotUtf8) {
  Json json = {{"text",
                "a\xff"
                "b"}};
  EXPECT_EQ(Json::parse(JsonText(json))["text"],
            "a\xEF\xBF\xBD"
            "b");
}

TEST(JsonReport, OfDoctorNamesStatusAndAdvice) {
  Json json = Parsed(DoctorJson({{"memfd", Check::Status::kError, "no", "do this"}}));
  EXPECT_THAT(Keys(json["checks"][0]),
              ElementsAre("name", "status", "detail", "advice"));
  EXPECT_EQ(json["checks"][0]["status"], "error");
}

}  // namespace
}  // namespace lull
