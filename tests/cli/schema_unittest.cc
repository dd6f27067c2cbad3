// Schemas and answers say the same: of replies with anything in them nothing is printed
// that the schema does not allow, and what it allows is printed of some.
#include "cli/render/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/render/arming.h"
#include "cli/render/doctor.h"
#include "cli/render/json.h"
#include "cli/render/marks.h"
#include "tests/cli/fixed_replies.h"
#include "tests/cli/random_reply.h"
#include "tests/cli/schema_check.h"

namespace lull {
namespace {

using ::testing::IsEmpty;
using testing::SchemaCheck;

// Deep enough for a report's list of rows with sites whose sites have sites.
constexpr int kDeep = 6;
constexpr int kReplies = 600;
// Until each rare value has come, too: a new field makes all of them others.
constexpr int kMostReplies = 10 * kReplies;

using ToJson = Json (*)(const v1::ReportReply&);
const std::map<std::string, ToJson>& Answers() {
  static const auto& answers = *new std::map<std::string, ToJson>{
      {"report", ReportJson},   {"gaps", GapsJson},       {"hot", HotJson},
      {"kernels", KernelsJson}, {"ops", OperatorsJson},   {"steps", StepsJson},
      {"data", DataJson},       {"regions", RegionsJson}, {"syncs", SyncsJson},
      {"waits", WaitsJson},     {"gc", GcJson},           {"allocs", AllocationsJson},
      {"memory", MemoryJson},   {"ranks", RanksJson},
      {"stacks", StacksJson}};
  return answers;
}

// As a program reads it.
Json Printed(const Json& json) { return Json::parse(JsonText(json)); }

class SchemaOf : public ::testing::TestWithParam<std::string> {};

TEST_P(SchemaOf, AllowsWhatIsPrintedAndNothingElse) {
  SchemaCheck check(AnswerSchema(GetParam()));
  testing::RandomMessages random(15);
  for (int i = 0; i < kReplies || (i < kMostReplies && !check.Unseen().empty()); ++i) {
    v1::ReportReply reply;
    random.Fill(&reply, kDeep);
    ASSERT_EQ(check.Check(Printed(Answers().at(GetParam())(reply))), "") << i;
  }
  EXPECT_THAT(check.Unseen(), IsEmpty());
}

TEST_P(SchemaOf, AllowsTheAnswersOfTheGoldenFiles) {
  SchemaCheck check(AnswerSchema(GetParam()));
  ToJson json = Answers().at(GetParam());
  EXPECT_EQ(check.Check(Printed(json(testing::FixedAnswer()))), "");
  EXPECT_EQ(check.Check(Printed(json(testing::FixedGpuReport()))), "");
  EXPECT_EQ(check.Check(Printed(json(v1::ReportReply()))), "");
}

std::vector<std::string> NamesOfAnswers() {
  std::vector<std::string> names;
  for (const auto& [name, json] : Answers()) names.push_back(name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Verb, SchemaOf, ::testing::ValuesIn(NamesOfAnswers()),
                         [](const auto& of) { return of.param; });

TEST(Schema, OfJobsAllowsWhatIsPrintedAndNothingElse) {
  SchemaCheck check(AnswerSchema("jobs"));
  testing::RandomMessages random(16);
  for (int i = 0; i < kReplies; ++i) {
    v1::ListJobsReply reply;
    random.Fill(&reply, kDeep);
    ASSERT_EQ(check.Check(Printed(JobsJson(reply))), "") << i;
  }
  EXPECT_THAT(check.Unseen(), IsEmpty());
}

TEST(Schema, OfArmAllowsWhatIsPrintedAndNothingElse) {
  for (const char* verb : {"arm", "disarm"}) {
    SchemaCheck check(AnswerSchema(verb));
    testing::RandomMessages random(17);
    for (int i = 0; i < kReplies; ++i) {
      v1::ArmReply reply;
      random.Fill(&reply, kDeep);
      ASSERT_EQ(check.Check(Printed(ArmedJson(reply))), "") << i;
    }
    EXPECT_THAT(check.Unseen(), IsEmpty());
  }
}

TEST(Schema, OfMarksAllowsWhatIsPrintedAndNothingElse) {
  for (const char* verb : {"tag", "untag", "pin", "unpin"}) {
    SchemaCheck check(AnswerSchema(verb));
    testing::RandomMessages random(18);
    for (int i = 0; i < kReplies; ++i) {
      v1::MarkReply reply;
      random.Fill(&reply, kDeep);
      ASSERT_EQ(check.Check(Printed(MarkedJson(reply))), "") << i;
    }
    EXPECT_THAT(check.Unseen(), IsEmpty());
  }
}

TEST(Schema, OfDoctorAllowsWhatIsPrintedAndNothingElse) {
  SchemaCheck check(AnswerSchema("doctor"));
  for (Check::Status status :
       {Check::Status::kOk, Check::Status::kWarning, Check::Status::kError}) {
    EXPECT_EQ(check.Check(Printed(DoctorJson({{"memfd", status, "no", "do"}}))), "");
  }
  EXPECT_THAT(check.Unseen(), IsEmpty());
}

TEST(Schema, OfPsAllowsWhatTheGoldenFileHas) {
  std::ifstream file(LULL_GOLDEN_FOLDER "/ps_json.txt");
  EXPECT_EQ(SchemaCheck(AnswerSchema("ps")).Check(Json::parse(file)), "");
}

TEST(Schema, RefusesWhatIsWrong) {
  const Json right = Printed(SyncsJson(testing::FixedSyncs()));
  SchemaCheck check(AnswerSchema("syncs"));
  ASSERT_EQ(check.Check(right), "");
  const std::vector<std::pair<std::string, Json>> wrong_values = {
      {"/total_calls", 1.5},
      {"/total_calls", -1},
      {"/total_blocked_ms", nullptr},
      {"/sync_points/0/api", 3},
      {"/sync_points/0/another_key", 3},
      {"/sync_points/0/site/line", "12"},
      {"/phase", "warm_up"},
      {"/job/id", nullptr}};
  for (const auto& [where, value] : wrong_values) {
    Json wrong = right;
    wrong[Json::json_pointer(where)] = value;
    EXPECT_NE(check.Check(wrong), "") << where;
  }
  Json wrong = right;
  wrong.erase("losses");
  EXPECT_NE(check.Check(wrong), "");
}

TEST(Schema, OfAnUnknownWordIsNone) {
  EXPECT_TRUE(AnswerSchema("run").is_null());
  EXPECT_TRUE(AnswerSchema("").is_null());
}

}  // namespace
}  // namespace lull
