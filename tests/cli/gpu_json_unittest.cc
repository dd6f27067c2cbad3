// The JSON contract of GPU truth: keys, their order and types, and null for what is
// not known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/render/json.h"
#include "tests/cli/fixed_replies.h"
#include "tests/cli/parsed_json.h"

namespace lull {
namespace {

using ::testing::DoubleEq;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using testing::Keys;
using testing::Parsed;

TEST(GpuJson, OfGapsHasTheAgreedKeysInOrder) {
  Json json = Parsed(GapsJson(testing::FixedGaps()));
  EXPECT_THAT(Keys(json),
              ElementsAre("job", "gpu", "devices", "region", "causes", "gaps", "phase",
                          "setup_ms", "losses", "overhead"));
  EXPECT_THAT(
      Keys(json["gpu"]),
      ElementsAre("mode", "schedule", "devices", "windows", "traced_ms", "busy_ms",
                  "kernel_ms", "idle_ms", "unknown_ms", "explained_percent",
                  "utilization_percent", "verdict", "missing", "kernels", "copies",
                  "memsets", "graphs", "cupti_dropped", "records_lost", "records_bad",
                  "late_operations", "yielded_ms", "spans"));
  EXPECT_THAT(Keys(json["gpu"]["spans"][0]),
              ElementsAre("pid", "start_ms", "duration_ms", "state", "reason"));
  EXPECT_THAT(Keys(json["causes"][0]),
              ElementsAre("cause", "count", "total_ms", "max_ms", "share_percent"));
  EXPECT_THAT(Keys(json["gaps"][0]),
              ElementsAre("cause", "before", "after", "culprit", "api", "count",
                          "total_ms", "max_ms", "share_percent", "samples", "doing",
                          "regions", "stack", "native_stack"));
  EXPECT_THAT(Keys(json["gaps"][1]["regions"][0]),
              ElementsAre("name", "path", "total_ms", "share_percent"));
  EXPECT_DOUBLE_EQ(json["gaps"][4]["regions"][0]["share_percent"].get<double>(), 70);
}

TEST(GpuJson, HasCausesThatSumToTheIdleTime) {
  Json json = Parsed(GapsJson(testing::FixedGaps()));
  double total = 0;
  double share = 0;
  for (const Json& cause : json["causes"]) {
    total += cause["total_ms"].get<double>();
    share += cause["share_percent"].get<double>();
  }
  EXPECT_THAT(total, DoubleNear(json["gpu"]["idle_ms"].get<double>(), 1e-6));
  EXPECT_THAT(share, DoubleNear(100, 1e-6));
}

TEST(GpuJson, HasRegionsAndNullForWhatWasNotTraced) {
  v1::ReportReply reply;
  v1::RegionRow* row = reply.mutable_regions()->add_regions();
  row->set_name("forward");
  row->add_path("step");
  row->set_count(7);
  row->set_total_ns(2'000'000);
  Json region = Parsed(RegionsJson(reply))["regions"][0];
  EXPECT_EQ(region["name"], "forward");
  EXPECT_EQ(region["path"], Json({"step"}));
  EXPECT_EQ(region["count"], 7);
  EXPECT_EQ(region["total_ms"], 2.0);
  EXPECT_TRUE(region["gpu_busy_ms"].is_null() && region["causes"].is_null());
  row->set_traced_ns(2'000'000);
  row->set_gpu_busy_ns(500'000);
  v1::CauseRow* cause = row->add_causes();
  cause->set_cause(v1::GAP_CAUSE_DATA_WAIT);
  cause->set_total_ns(1'500'000);
  region = Parsed(RegionsJson(reply))["regions"][0];
  EXPECT_EQ(region["gpu_busy_ms"], 0.5);
  EXPECT_EQ(region["causes"][0]["cause"], "data");
  EXPECT_EQ(region["causes"][0]["total_ms"], 1.5);
}

TEST(GpuJson, HasOperatorsWithoutCallsThatNobodyCounted) {
  v1::ReportReply reply = testing::FixedOperators();
  Json json = Parsed(OperatorsJson(reply));
  ASSERT_EQ(json["ops"].size(), 4u);
  const Json addmm = json["ops"][0];
  EXPECT_EQ(addmm["name"], "aten::addmm");
  EXPECT_EQ(addmm["pass"], "forward");
  EXPECT_TRUE(addmm["calls"].is_null());
  EXPECT_EQ(addmm["launches"], 1200);
  EXPECT_EQ(addmm["own_gpu_ms"], 2400.0);
  EXPECT_EQ(addmm["own_gpu_percent"], 48.0);
  EXPECT_EQ(addmm["allocated_bytes"], 3ULL << 30);
  EXPECT_TRUE(addmm["own_allocated_bytes"].is_null());
  EXPECT_EQ(addmm["site"]["line"], 47);
  const Json node = json["ops"][3];
  EXPECT_EQ(node["pass"], "backward");
  EXPECT_EQ(node["own_gpu_ms"], 0.0);
  EXPECT_EQ(node["gpu_ms"], 2000.0);
  EXPECT_TRUE(node["allocated_bytes"].is_null());
  EXPECT_EQ(json["unknown_launches"], 100);
  EXPECT_EQ(json["unknown_gpu_ms"], 200.0);
  reply.mutable_operators()->set_allocated_bytes(reply.operators().known_bytes());
  EXPECT_EQ(Parsed(OperatorsJson(reply))["ops"][3]["allocated_bytes"], 0);
  reply.mutable_gpu()->Clear();
  EXPECT_TRUE(Parsed(OperatorsJson(reply))["ops"][0]["gpu_ms"].is_null());
}

TEST(GpuJson, NamesCausesModesAndStates) {
  Json json = Parsed(GapsJson(testing::FixedGaps()));
  EXPECT_EQ(json["causes"][0]["cause"], "data");
  EXPECT_EQ(json["gaps"][1]["api"], "cudaStreamSynchronize");
  EXPECT_TRUE(json["gaps"][2]["api"].is_null());
  EXPECT_EQ(json["gpu"]["mode"], "window");
  EXPECT_EQ(json["gpu"]["windows"], 18);
  EXPECT_EQ(json["gpu"]["spans"][18]["state"], "yielded");
  EXPECT_EQ(json["gpu"]["spans"][18]["reason"], "other_user");
  EXPECT_EQ(json["gpu"]["verdict"], "data");
  EXPECT_THAT(json["gpu"]["utilization_percent"].get<double>(),
              DoubleNear(100.0 * 10.1 / 24.6, 1e-9));
}

TEST(GpuJson, GivesNullAndNeverZeroForWhatWasNotTraced) {
  v1::ReportReply reply;
  reply.mutable_gpu()->set_missing(testing::kMissing);
  Json gpu = Parsed(GapsJson(reply))["gpu"];
  for (const char* key :
       {"busy_ms", "kernel_ms", "idle_ms", "unknown_ms", "explained_percent",
        "utilization_percent", "verdict", "schedule"}) {
    EXPECT_TRUE(gpu[key].is_null()) << key;
  }
  EXPECT_EQ(gpu["traced_ms"], 0);  // that much is known
  EXPECT_EQ(gpu["missing"], testing::kMissing);
}

TEST(GpuJson, OfKernelsHasTheAgreedKeysAndUnits) {
  Json json = Parsed(KernelsJson(testing::FixedKernels()));
  EXPECT_THAT(Keys(json),
              ElementsAre("job", "gpu", "kernels", "copies", "total_ms", "total_calls",
                          "phase", "setup_ms", "losses", "overhead"));
  EXPECT_THAT(Keys(json["kernels"][0]),
              ElementsAre("name", "calls", "total_ms", "avg_ms", "min_ms", "max_ms",
                          "share_percent", "tensor_core", "blocks_per_sm",
                          "occupancy_percent", "site", "operator", "stack"));
  EXPECT_THAT(json["kernels"][0]["avg_ms"].get<double>(), DoubleEq(0.2));
  EXPECT_EQ(json["kernels"][0]["operator"], "aten::addmm");
  EXPECT_TRUE(json["kernels"][2]["tensor_core"].get<bool>());
  EXPECT_THAT(Keys(json["copies"][0]), ElementsAre("direction", "memory", "count",
                                                   "bytes", "total_ms", "gb_per_s"));
  EXPECT_THAT(json["copies"][0]["gb_per_s"].get<double>(), DoubleNear(4.726, 1e-3));
}

TEST(GpuJson, GivesNullForFiguresOfAKernelThatAreNotKnown) {
  Json json = Parsed(KernelsJson(testing::FixedKernels()));
  EXPECT_TRUE(json["kernels"][1]["blocks_per_sm"].is_null());
  EXPECT_TRUE(json["kernels"][1]["occupancy_percent"].is_null());
  EXPECT_TRUE(json["kernels"][2]["operator"].is_null());
  EXPECT_TRUE(json["copies"][2]["memory"].is_null());
}

TEST(GpuJson, OfPhasesHasSharesOfWhatWasSampled) {
  Json phases = Parsed(StepsJson(testing::FixedSteps()))["phases"];
  EXPECT_THAT(Keys(phases[0]), ElementsAre("phase", "part", "time_ms", "share_percent",
                                           "low_percent", "high_percent", "samples"));
  EXPECT_EQ(phases[1]["part"], "model_to_device");
  EXPECT_EQ(phases[2]["phase"], "setup");
  EXPECT_TRUE(phases[2]["share_percent"].is_null()) << "exact";
  EXPECT_TRUE(phases[2]["samples"].is_null());
  EXPECT_EQ(phases[3]["phase"], "steady");
}

TEST(GpuJson, OfStepsHasTheAgreedKeys) {
  Json json = Parsed(StepsJson(testing::FixedSteps()));
  EXPECT_THAT(Keys(json),
              ElementsAre("job", "gpu", "steps", "source", "count", "median",
                          "gpu_utilization_percent", "sm_efficiency_percent",
                          "occupancy_percent", "tensor_core_percent", "phases", "phase",
                          "setup_ms", "losses", "overhead"));
  EXPECT_THAT(Keys(json["steps"][0]),
              ElementsAre("pid", "rank", "number", "start_ms", "duration_ms", "traced",
                          "kernel_ms", "memcpy_ms", "memset_ms", "communication_ms",
                          "runtime_ms", "data_ms", "host_ms", "other_ms"));
  EXPECT_THAT(
      Keys(json["median"]),
      ElementsAre("duration_ms", "traced", "kernel_ms", "memcpy_ms", "memset_ms",
                  "communication_ms", "runtime_ms", "data_ms", "host_ms", "other_ms"));
}

TEST(GpuJson, GivesNullForTheDevicesPartsOfStepsThatWereNotTraced) {
  v1::ReportReply reply = testing::FixedSteps();
  Json json = Parsed(StepsJson(reply));
  EXPECT_TRUE(json["steps"][2]["kernel_ms"].is_null());
  EXPECT_THAT(json["steps"][2]["data_ms"].get<double>(), DoubleEq(24));
  EXPECT_THAT(json["steps"][0]["kernel_ms"].get<double>(), DoubleEq(31));

  reply.mutable_steps()->mutable_median()->set_traced(false);
  reply.mutable_steps()->mutable_steps()->DeleteSubrange(0, 2);
  json = Parsed(StepsJson(reply));
  EXPECT_TRUE(json["median"]["kernel_ms"].is_null());
  EXPECT_TRUE(json["gpu_utilization_percent"].is_null());
  EXPECT_TRUE(json["tensor_core_percent"].is_null());

  json = Parsed(StepsJson({}));
  EXPECT_TRUE(json["median"].is_null());
  EXPECT_TRUE(json["source"].is_null());
  EXPECT_EQ(json["count"], 0);
}

TEST(GpuJson, OfStepsTellsWhatTracingCostThem) {
  Json cost = Parsed(StepsJson(testing::FixedSteps()))["overhead"]["step_cost"];
  EXPECT_THAT(
      Keys(cost),
      ElementsAre("pid", "rank", "windows", "traced_steps", "untraced_steps",
                  "control_steps", "control_one_in", "sampled", "rested_steps",
                  "recorded_steps", "sampled_from_step", "traced_longer", "paid",
                  "between_longer", "recorded_longer", "recording_paid"));
  EXPECT_THAT(Keys(cost["paid"]),
              ElementsAre("percent", "low_percent", "high_percent"));
  EXPECT_DOUBLE_EQ(cost["paid"]["high_percent"].get<double>(), 2.31);
  EXPECT_TRUE(cost["sampled_from_step"].is_null());
  v1::ReportReply reply = testing::FixedSteps();
  reply.mutable_overhead()->mutable_step_cost()->clear_paid();
  EXPECT_TRUE(Parsed(StepsJson(reply))["overhead"]["step_cost"]["paid"].is_null());
  reply.mutable_overhead()->clear_step_cost();
  EXPECT_TRUE(Parsed(StepsJson(reply))["overhead"]["step_cost"].is_null());
}

TEST(GpuJson, OfSyncsHasWastedTimeOnlyWhereCallsWereJudged) {
  Json rows = Parsed(SyncsJson(testing::FixedGpuSyncs()))["sync_points"];
  EXPECT_THAT(rows[0]["wasted_ms"].get<double>(), DoubleEq(3200));
  EXPECT_THAT(rows[0]["needed_ms"].get<double>(), DoubleEq(1690));
  EXPECT_EQ(rows[0]["judged_calls"], 640);
  EXPECT_THAT(rows[0]["judged_blocked_ms"].get<double>(), DoubleEq(1730));
  const char* const kKeys[] = {"judged_calls", "judged_blocked_ms", "needed_ms",
                               "wasted_ms"};
  for (const char* key : kKeys) EXPECT_TRUE(rows[2][key].is_null()) << key;
  rows = Parsed(SyncsJson(testing::FixedSyncs()))["sync_points"];
  for (const char* key : kKeys) EXPECT_TRUE(rows[0][key].is_null()) << key;
}

TEST(GpuJson, OfAReportHasTheWholeOfGpuTruth) {
  Json json = Parsed(ReportJson(testing::FixedGpuReport()));
  EXPECT_EQ(json["gpu"]["verdict"], "data");
  EXPECT_EQ(json["causes"].size(), 7u);
  EXPECT_EQ(json["gaps"].size(), 6u);
  EXPECT_EQ(json["kernels"].size(), 3u);
  EXPECT_EQ(json["steps"].size(), 3u);
  EXPECT_EQ(json["step_totals"]["count"], 1460);
  EXPECT_EQ(json["non_finite"][0]["step"], 812);
  EXPECT_EQ(json["non_finite"][0]["value"], "nan");
  EXPECT_THAT(json["devices"][0]["compute_capability"].get<double>(), DoubleEq(9.0));
  EXPECT_EQ(json["processes"][0]["cupti_state"], "ready");
  EXPECT_EQ(json["processes"][0]["cupti_version"], "12.4");
  EXPECT_TRUE(json["processes"][2]["busy_ms"].is_null());
  EXPECT_EQ(json["summary"]["verdict"], "data");
  EXPECT_THAT(Keys(json["summary"]["advice"][0]),
              ElementsAre("rule", "finding", "advice", "time_ms", "win_ms",
                          "of_gpu_time", "site"));
}

}  // namespace
}  // namespace lull
