// The text that Prometheus gets, byte by byte.
#include "daemon/metrics/exposition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"

namespace lull::metrics {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string LabelText(std::string_view value) { return Labels("name", value).text(); }

TEST(Exposition, GroupsSeriesByFamilyInTheOrderOfFamilies) {
  Exposition exposition;
  exposition.Add(Sample{Metric::kGpuTraced, Labels("run", "b"), 1'500'000'000});
  exposition.Add(Sample{Metric::kRunRunning, Labels("run", "b"), 1});
  exposition.Add(Sample{Metric::kGpuTraced, Labels("run", "a"), 2});
  exposition.Add(Sample{Metric::kRunsFailed, Labels(), 0});
  EXPECT_EQ(exposition.series(), 4u);
  EXPECT_EQ(exposition.Text(),
            "# HELP lull_run_running 1 while the run goes on and its relay reports.\n"
            "# TYPE lull_run_running gauge\n"
            "lull_run_running{run=\"b\"} 1\n"
            "# HELP lull_gpu_traced_seconds_total GPU time of which is known what ran, "
            "added up over devices.\n"
            "# TYPE lull_gpu_traced_seconds_total counter\n"
            "lull_gpu_traced_seconds_total{run=\"b\"} 1.5\n"
            "lull_gpu_traced_seconds_total{run=\"a\"} 0.000000002\n"
            "# HELP lull_metrics_failed_runs Runs that could not be read.\n"
            "# TYPE lull_metrics_failed_runs gauge\n"
            "lull_metrics_failed_runs 0\n");
}

TEST(Exposition, IsEmptyWithoutSeries) { EXPECT_EQ(Exposition().Text(), ""); }

TEST(Exposition, TellsASummaryBySumAndCount) {
  Exposition exposition;
  exposition.Add(Sample{Metric::kStepDuration, Labels("rank", "0"), 2'000'000'001});
  exposition.Add(Sample{Metric::kStepDuration, Labels("rank", "0"), 7, true});
  const std::string text = exposition.Text();
  EXPECT_THAT(text, HasSubstr("# TYPE lull_step_duration_seconds summary\n"));
  EXPECT_THAT(text, HasSubstr("lull_step_duration_seconds_sum{rank=\"0\"} 2.000000001\n"
                              "lull_step_duration_seconds_count{rank=\"0\"} 7\n"));
}

TEST(Exposition, TellsExactNumbersInBaseUnits) {
  struct Case {
    Metric metric;
    int64_t value;
    const char* text;
  };
  for (const Case& one :
       {Case{Metric::kRunDuration, 0, "0"},
        Case{Metric::kRunDuration, 1'000'000'000, "1"},
        Case{Metric::kRunDuration, 120'000'000'000, "120"},
        Case{Metric::kRunDuration, 1, "0.000000001"},
        Case{Metric::kRunDuration, INT64_MAX, "9223372036.854775807"},
        Case{Metric::kOverhead, 1'230, "0.00123"},
        Case{Metric::kOverhead, 2'000'000, "2"}, Case{Metric::kMemoryLive, -5, "-5"},
        Case{Metric::kMemoryLive, 10'000'000'000, "10000000000"},
        Case{Metric::kRunDuration, -1'500'000'000, "-1.5"}}) {
    Exposition exposition;
    exposition.Add(Sample{one.metric, Labels("a", "b"), one.value});
    EXPECT_THAT(exposition.Text(),
                HasSubstr(std::string("{a=\"b\"} ") + one.text + "\n"));
  }
}

TEST(Labels, HoldWhateverNameSomebodyGaveAJob) {
  EXPECT_EQ(LabelText("plain"), "name=\"plain\"");
  EXPECT_EQ(LabelText(""), "name=\"\"");
  EXPECT_EQ(LabelText("a\"} 1\nlull_run_running{run=\"b"),
            "name=\"a\\\"} 1\\nlull_run_running{run=\\\"b\"");
  EXPECT_EQ(LabelText("C:\\new"), "name=\"C:\\\\new\"");
  EXPECT_EQ(LabelText("\\"), "name=\"\\\\\"");
  EXPECT_EQ(LabelText("\\n"), "name=\"\\\\n\"");
  // A scraper may take a NUL for the end of all.
  EXPECT_EQ(LabelText(std::string_view("a\0b\rc\x1b", 6)),
            "name=\"a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD"
            "c\xEF\xBF\xBD\"");
  EXPECT_EQ(LabelText("\xFFz"), "name=\"\xEF\xBF\xBDz\"");
  EXPECT_EQ(LabelText("\xC3\xA4\xF0\x9F\x98\x80"), "name=\"\xC3\xA4\xF0\x9F\x98\x80\"");
  EXPECT_EQ(LabelText("\xC3"), "name=\"\xEF\xBF\xBD\"");
}

TEST(Labels, AreCutBetweenTwoCharacters) {
  EXPECT_EQ(LabelText(std::string(5000, 'x')),
            "name=\"" + std::string(128, 'x') + "\"");
  std::string umlauts;
  for (int i = 0; i < 100; ++i) umlauts += "\xC3\xA4";
  EXPECT_EQ(LabelText("x" + umlauts), "name=\"x" + umlauts.substr(0, 126) + "\"");
}

TEST(Labels, AddUp) {
  EXPECT_EQ(Labels("run", "1").With("rank", "0").text(), "run=\"1\",rank=\"0\"");
}

std::string TextOf(int64_t traced_ns, Rising* rising) {
  Exposition exposition;
  exposition.Add(Sample{Metric::kGpuTraced, Labels("run", "a"), traced_ns});
  exposition.Add(Sample{Metric::kMemoryLive, Labels("run", "a"), traced_ns});
  rising->Next();
  exposition.Hold(rising);
  return exposition.Text();
}

TEST(Rising, KeepsCountersFromGoingBackAndLetsGaugesGo) {
  Rising rising;
  EXPECT_THAT(TextOf(3'000'000'000, &rising), HasSubstr("{run=\"a\"} 3\n"));
  const std::string back = TextOf(2'000'000'000, &rising);
  EXPECT_THAT(back, HasSubstr("lull_gpu_traced_seconds_total{run=\"a\"} 3\n"));
  EXPECT_THAT(back, HasSubstr("lull_memory_live_bytes{run=\"a\"} 2000000000\n"));
  EXPECT_THAT(TextOf(1'000'000'000, &rising), HasSubstr("{run=\"a\"} 3\n"));
  EXPECT_THAT(TextOf(4'000'000'000, &rising), HasSubstr("{run=\"a\"} 4\n"));
}

TEST(Rising, ForgetsSeriesThatAreGone) {
  Rising rising;
  TextOf(3'000'000'000, &rising);
  rising.Next();
  EXPECT_EQ(rising.Hold("other", 1), 1);
  EXPECT_THAT(TextOf(2'000'000'000, &rising), HasSubstr("{run=\"a\"} 2\n"));
}

// What promtool asks of names; it is not everywhere where this is built.
TEST(Families, HaveNamesAsPrometheusWantsThem) {
  std::vector<std::string> names;
  for (size_t i = 0; i < kMetrics; ++i) {
    const Family& family = FamilyOf(static_cast<Metric>(i));
    const std::string name = family.name, help = family.help;
    names.push_back(name);
    EXPECT_TRUE(absl::StartsWith(name, "lull_")) << name;
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string::npos)
        << name;
    EXPECT_EQ(absl::EndsWith(name, "_total"), family.type == Type::kCounter) << name;
    for (const char* end : {"_count", "_sum", "_bucket", "_ms", "_ns"}) {
      EXPECT_FALSE(absl::EndsWith(name, end)) << name;
    }
    if (family.unit == Unit::kNanoseconds) {
      EXPECT_THAT(name, HasSubstr("_seconds"));
    }
    if (family.unit == Unit::kMillionths) {
      EXPECT_TRUE(absl::EndsWith(name, "_ratio"));
    }
    EXPECT_THAT(help, Not(::testing::IsEmpty()));
    EXPECT_EQ(help.find_first_of("\\\n"), std::string::npos) << name;
  }
  EXPECT_THAT(std::set<std::string>(names.begin(), names.end()),
              ::testing::SizeIs(kMetrics));
}

}  // namespace
}  // namespace lull::metrics
