// The requests that a collector of OpenTelemetry gets.
#include "daemon/metrics/otlp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace lull::metrics {
namespace {

constexpr uint64_t kNow = 2'000'000'000'000'000'000;

std::map<std::string, std::string> ToMap(
    const google::protobuf::RepeatedPtrField<otlp::KeyValue>& attributes) {
  std::map<std::string, std::string> all;
  for (const otlp::KeyValue& one : attributes) {
    EXPECT_TRUE(all.emplace(one.key(), one.value().string_value()).second) << one.key();
  }
  return all;
}

otlp::Metric Only(const std::vector<otlp::ExportMetricsServiceRequest>& requests,
                  const std::string& name) {
  otlp::Metric found;
  int count = 0;
  for (const auto& request : requests) {
    for (const auto& metric : request.resource_metrics(0).scope_metrics(0).metrics()) {
      if (metric.name() != name) continue;
      found = metric;
      ++count;
    }
  }
  EXPECT_EQ(count, 1) << name;
  return found;
}

TEST(Otlp, HasNamesOfWhichPrometheusMakesItsOwn) {
  EXPECT_EQ(OtlpName(FamilyOf(Metric::kGpuIdle)), "lull.gpu.idle");
  EXPECT_STREQ(OtlpUnit(FamilyOf(Metric::kGpuIdle)), "s");
  EXPECT_EQ(OtlpName(FamilyOf(Metric::kMemoryLive)), "lull.memory.live");
  EXPECT_STREQ(OtlpUnit(FamilyOf(Metric::kMemoryLive)), "By");
  EXPECT_EQ(OtlpName(FamilyOf(Metric::kNetwork)), "lull.network");
  EXPECT_STREQ(OtlpUnit(FamilyOf(Metric::kNetwork)), "By");
  EXPECT_EQ(OtlpName(FamilyOf(Metric::kOverhead)), "lull.overhead.ratio");
  EXPECT_STREQ(OtlpUnit(FamilyOf(Metric::kOverhead)), "1");
  EXPECT_EQ(OtlpName(FamilyOf(Metric::kSteps)), "lull.steps");
  EXPECT_STREQ(OtlpUnit(FamilyOf(Metric::kSteps)), "");
  std::set<std::string> names;
  for (size_t i = 0; i < kMetrics; ++i) {
    const Family& family = FamilyOf(static_cast<Metric>(i));
    EXPECT_TRUE(names.insert(OtlpName(family)).second) << family.name;
    // As the receivers do it.
    std::string name = OtlpName(family);
    for (char& c : name) c = c == '.' ? '_' : c;
    const std::string unit = OtlpUnit(family);
    if (unit == "s") name += "_seconds";
    if (unit == "By") name += "_bytes";
    if (family.type == Type::kCounter) name += "_total";
    EXPECT_EQ(name, family.name);
  }
}

TEST(Otlp, TellsCountersFromTheStartOfTheirRun) {
  Exposition samples;
  samples.Add(Sample{Metric::kRunStart, Labels("run", "a"), 1'000'000'000'000'000'000});
  const Labels rank = Labels("run", "a").With("rank", "0");
  samples.Add(Sample{Metric::kGpuIdle, rank.With("cause", "sync"), 1'500'000'000});
  samples.Add(Sample{Metric::kGpuIdle, rank.With("cause", "data"), 2});
  samples.Add(Sample{Metric::kLaunches, Labels("run", "b").With("rank", "1"), 7});
  const auto requests = OtlpRequests(samples, {{"service.name", "lulld"}}, kNow);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(ToMap(requests[0].resource_metrics(0).resource().attributes()),
            (std::map<std::string, std::string>{{"service.name", "lulld"}}));
  const otlp::Metric idle = Only(requests, "lull.gpu.idle");
  EXPECT_EQ(idle.unit(), "s");
  EXPECT_TRUE(idle.sum().is_monotonic());
  EXPECT_EQ(idle.sum().aggregation_temporality(),
            otlp::AGGREGATION_TEMPORALITY_CUMULATIVE);
  ASSERT_EQ(idle.sum().data_points_size(), 2);
  const otlp::NumberDataPoint& point = idle.sum().data_points(0);
  EXPECT_EQ(point.as_double(), 1.5);
  EXPECT_EQ(point.start_time_unix_nano(), 1'000'000'000'000'000'000u);
  EXPECT_EQ(point.time_unix_nano(), kNow);
  EXPECT_EQ(ToMap(point.attributes()),
            (std::map<std::string, std::string>{
                {"run", "a"}, {"rank", "0"}, {"cause", "sync"}}));
  const otlp::Metric launches = Only(requests, "lull.launches");
  EXPECT_EQ(launches.sum().data_points(0).as_int(), 7);
  EXPECT_EQ(launches.sum().data_points(0).start_time_unix_nano(), 0u) << "not known";
}

TEST(Otlp, TellsGaugesAndSummaries) {
  Exposition samples;
  samples.Add(Sample{Metric::kMemoryLive, Labels("run", "a"), -5});
  samples.Add(Sample{Metric::kOverhead, Labels("run", "a"), 1'230});
  for (const char* rank : {"0", "1"}) {
    samples.Add(Sample{Metric::kStepDuration, Labels("rank", rank), 2'500'000'000});
    samples.Add(Sample{Metric::kStepDuration, Labels("rank", rank), 7, true});
  }
  const auto requests = OtlpRequests(samples, {}, kNow);
  const otlp::Metric live = Only(requests, "lull.memory.live");
  EXPECT_EQ(live.gauge().data_points(0).as_int(), -5);
  EXPECT_EQ(live.gauge().data_points(0).start_time_unix_nano(), 0u);
  EXPECT_EQ(Only(requests, "lull.overhead.ratio").gauge().data_points(0).as_double(),
            0.00123);
  const otlp::Metric steps = Only(requests, "lull.step.duration");
  ASSERT_EQ(steps.summary().data_points_size(), 2);
  EXPECT_EQ(steps.summary().data_points(1).count(), 7u);
  EXPECT_EQ(steps.summary().data_points(1).sum(), 2.5);
  EXPECT_EQ(steps.summary().data_points(1).attributes(0).value().string_value(), "1");
}

// A run may say that it begins tomorrow, by the clock of its host.
TEST(Otlp, StartsNothingLaterThanItIsTold) {
  Exposition samples;
  samples.Add(Sample{Metric::kRunStart, Labels("run", "a"), int64_t{kNow} + 1});
  samples.Add(Sample{Metric::kSteps, Labels("run", "a"), 1});
  EXPECT_EQ(Only(OtlpRequests(samples, {}, kNow), "lull.steps")
                .sum()
                .data_points(0)
                .start_time_unix_nano(),
            0u);
}

TEST(Otlp, SendsMuchInSeveralRequests) {
  Exposition samples;
  constexpr int kRanks = 10'001;
  for (int rank = 0; rank < kRanks; ++rank) {
    const Labels labels("rank", std::to_string(rank));
    samples.Add(Sample{Metric::kGpuBusy, labels, 1});
    samples.Add(Sample{Metric::kStepDuration, labels, 1'000'000'000});
    samples.Add(Sample{Metric::kStepDuration, labels, 3, true});
  }
  const auto requests = OtlpRequests(samples, {{"a", "b"}}, kNow);
  EXPECT_EQ(requests.size(), (2 * kRanks + kPointsOfARequest - 1) / kPointsOfARequest);
  std::set<std::string> busy, steps;
  for (const auto& request : requests) {
    EXPECT_LT(request.ByteSizeLong(), 2u << 20);
    ASSERT_EQ(request.resource_metrics_size(), 1);
    EXPECT_EQ(request.resource_metrics(0).resource().attributes_size(), 1);
    for (const auto& metric : request.resource_metrics(0).scope_metrics(0).metrics()) {
      EXPECT_FALSE(metric.name().empty());
      for (const auto& point : metric.sum().data_points()) {
        EXPECT_TRUE(busy.insert(point.attributes(0).value().string_value()).second);
      }
      for (const auto& point : metric.summary().data_points()) {
        EXPECT_TRUE(steps.insert(point.attributes(0).value().string_value()).second);
        EXPECT_EQ(point.count(), 3u);
        EXPECT_EQ(point.sum(), 1.0);
      }
    }
  }
  EXPECT_EQ(busy.size(), size_t{kRanks});
  EXPECT_EQ(steps.size(), size_t{kRanks});
}

TEST(Otlp, SendsNothingOfNothing) {
  EXPECT_TRUE(OtlpRequests(Exposition(), {{"a", "b"}}, kNow).empty());
}

}  // namespace
}  // namespace lull::metrics
