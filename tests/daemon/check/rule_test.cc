#include "daemon/check/rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/check/allowance.h"

namespace lull::check {
namespace {

using ::testing::HasSubstr;

Rule Right(absl::string_view text) {
  auto parsed = ParseRule(text);
  if (auto* error = std::get_if<RuleError>(&parsed)) {
    ADD_FAILURE() << text << ": " << error->what;
    return {};
  }
  return std::get<Rule>(parsed);
}

RuleError Wrong(absl::string_view text) {
  auto parsed = ParseRule(text);
  if (std::holds_alternative<Rule>(parsed)) {
    ADD_FAILURE() << text << " is taken for a rule";
    return {};
  }
  return std::get<RuleError>(parsed);
}

TEST(RuleTest, HasMetricComparisonAndBound) {
  const Rule rule = Right("  sync.wasted_percent>= 2.5 ");
  EXPECT_EQ(rule.text, "sync.wasted_percent>= 2.5");
  EXPECT_EQ(rule.metric.name, "sync.wasted_percent");
  EXPECT_EQ(rule.metric.unit, "%");
  EXPECT_EQ(rule.op, Operator::kAtLeast);
  EXPECT_EQ(rule.bound, 2.5);
  EXPECT_FALSE(rule.NeedsBaseline());
  EXPECT_EQ(Right("cause.data.ms_per_step > 1e-3").bound, 1e-3);
  EXPECT_EQ(Right("step_ms.change_percent > -2").bound, -2);
}

TEST(RuleTest, EveryMetricAndEveryOperatorMakesARule) {
  for (const Metric& metric : Metrics()) {
    for (const char* sign : {">", ">=", "<", "<="}) {
      const Rule rule = Right(metric.name + " " + sign + " 1");
      EXPECT_EQ(rule.metric.name, metric.name);
      EXPECT_STREQ(Sign(rule.op), sign);
    }
  }
  EXPECT_EQ(Right("gpu.idle_percent == 0").op, Operator::kEqual);
  EXPECT_EQ(Right("gpu.idle_percent != 0").op, Operator::kUnequal);
}

TEST(RuleTest, HoldsAsItsOperatorSays) {
  EXPECT_TRUE(Holds(3, Operator::kAbove, 2));
  EXPECT_FALSE(Holds(2, Operator::kAbove, 2));
  EXPECT_TRUE(Holds(2, Operator::kAtLeast, 2));
  EXPECT_TRUE(Holds(1, Operator::kBelow, 2));
  EXPECT_FALSE(Holds(2, Operator::kBelow, 2));
  EXPECT_TRUE(Holds(2, Operator::kAtMost, 2));
  EXPECT_TRUE(Holds(2, Operator::kEqual, 2));
  EXPECT_TRUE(Holds(3, Operator::kUnequal, 2));
}

TEST(RuleTest, SelectsNewSyncPointsOrThoseOfAPlace) {
  const Rule fresh = Right("sync.calls_per_step(new) > 0");
  EXPECT_TRUE(fresh.selector.only_new);
  EXPECT_TRUE(fresh.NeedsBaseline());
  const Rule line = Right("sync.calls_per_step ( ./src/train.py:47 ) > 0");
  EXPECT_EQ(line.selector.file, "src/train.py");
  EXPECT_EQ(line.selector.line, 47);
  EXPECT_FALSE(line.NeedsBaseline());
  EXPECT_EQ(Right("sync.calls_per_step(a (b)/train.py) > 0").selector.file,
            "a (b)/train.py");
}

struct WrongRule {
  const char* text;
  size_t at;
  size_t length;
  const char* what;
};

TEST(RuleTest, WhatIsWrongIsPointedAt) {
  const WrongRule wrong[] = {
      {"", 0, 0, "a metric is wanted"},
      {"> 2", 0, 1, "a metric is wanted"},
      {"sync.waste > 2", 0, 10, "no such metric"},
      {"sync.calls_per_step", 19, 0, "a comparison is wanted"},
      {"sync.calls_per_step = 2", 20, 1, "one of > >= < <= == !="},
      {"sync.calls_per_step > ", 22, 0, "a number is wanted"},
      {"sync.calls_per_step > 2ms", 22, 3, "without a unit"},
      {"sync.calls_per_step > nan", 22, 3, "a number is wanted"},
      {"sync.calls_per_step > 0x10", 22, 4, "a number is wanted"},
      {"sync.calls_per_step > 2 %", 24, 1, "the unit is in the metric's name"},
      {"sync.calls_per_step > 2 and step_ms > 3", 24, 15, "one comparison"},
      {"sync.calls_per_step(new > 0", 27, 0, ") is wanted"},
      {"sync.calls_per_step(old) > 0", 20, 3, "(new), (FILE) and (FILE:LINE)"},
      {"sync.calls_per_step() > 0", 20, 1, "(new), (FILE) and (FILE:LINE)"},
      {"sync.calls_per_step(train.py:x) > 0", 20, 10, "(FILE:LINE)"},
      {"gpu.idle_percent(new) > 0", 16, 5, "only metrics of sync points"},
      {"step_ms.change_percent == 0", 23, 2, "within an interval"}};
  for (const WrongRule& one : wrong) {
    const RuleError error = Wrong(one.text);
    EXPECT_EQ(error.at, one.at) << one.text;
    EXPECT_EQ(error.length, one.length) << one.text;
    EXPECT_THAT(error.what, HasSubstr(one.what)) << one.text;
  }
  EXPECT_EQ(Wrong("sync.waste > 2").metric, "sync.waste");
  EXPECT_EQ(Wrong("step_ms").metric, "");
}

TEST(RuleTest, AFileIsItselfOrBelowAFolder) {
  EXPECT_TRUE(IsFile("/job/src/train.py", "train.py"));
  EXPECT_TRUE(IsFile("/job/src/train.py", "src/train.py"));
  EXPECT_TRUE(IsFile("/job/src/train.py", "/job/src/train.py"));
  EXPECT_FALSE(IsFile("/job/src/retrain.py", "train.py"));
  EXPECT_FALSE(IsFile("/job/src/train.py", "/src/train.py"));
  EXPECT_FALSE(IsFile("/job/src/", ""));
}

TEST(AllowanceTest, NeedsAPlaceAndAReason) {
  auto parsed = ParseAllowance("src/train.py:47: logs the loss: once a step");
  ASSERT_TRUE(std::holds_alternative<Allowance>(parsed));
  const auto& allowance = std::get<Allowance>(parsed);
  EXPECT_EQ(allowance.file, "src/train.py");
  EXPECT_EQ(allowance.line, 47);
  EXPECT_EQ(allowance.reason, "logs the loss: once a step");
  EXPECT_EQ(std::get<Allowance>(ParseAllowance("train.py: all of it")).line, 0);
  EXPECT_EQ(std::get<Allowance>(ParseAllowance("train.py: 2 a step")).line, 0);
  EXPECT_NE(Flaw({"train.py", 47, "", "", " ", ""}), "");
  for (const char* wrong :
       {"", "train.py:47", "train.py:47: ", "train.py:0: it logs", ": it logs",
        "train.py:x: it logs", "train.py: 47: it logs", "train.py: 47"}) {
    EXPECT_TRUE(std::holds_alternative<std::string>(ParseAllowance(wrong))) << wrong;
  }
}

TEST(AllowanceTest, CoversWhatItNamesUntilItEnds) {
  v1::Site site;
  site.set_file("/job/train.py");
  site.set_line(47);
  site.set_function("log");
  Allowance allowance{"train.py", 47, "", "", "logs", ""};
  EXPECT_TRUE(Covers(allowance, site, "sync.calls_per_step"));
  allowance.function = "save";
  EXPECT_FALSE(Covers(allowance, site, "sync.calls_per_step"));
  allowance = {"train.py", 0, "log", "sync.wasted_percent", "logs", "2026-11-24"};
  EXPECT_TRUE(Covers(allowance, site, "sync.wasted_percent"));
  EXPECT_FALSE(Covers(allowance, site, "sync.calls_per_step"));
  allowance.line = 48;
  EXPECT_FALSE(Covers(allowance, site, "sync.wasted_percent"));
  EXPECT_FALSE(IsOver(allowance, "2026-11-24"));
  EXPECT_TRUE(IsOver(allowance, "2026-11-25"));
  EXPECT_EQ(Flaw(allowance), "");
  allowance.until = "24.11.2026";
  EXPECT_NE(Flaw(allowance), "");
  allowance.until = "";
  allowance.rule = "gpu.idle_percent";
  EXPECT_NE(Flaw(allowance), "");
}

}  // namespace
}  // namespace lull::check
