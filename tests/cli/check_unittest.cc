#include "cli/render/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/render/schema.h"
#include "tests/cli/golden.h"
#include "tests/cli/schema_check.h"

namespace lull {
namespace {

using check::Judgement;
using check::Outcome;
using check::Part;
using check::Rule;
using check::Verdict;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Rule RuleOf(absl::string_view text) { return std::get<Rule>(check::ParseRule(text)); }

Part SyncAt(const std::string& file, int line, double value) {
  Part part;
  part.site.set_file(file);
  part.site.set_line(line);
  part.site.set_function("log");
  part.api = "cudaMemcpyAsync";
  part.value = value;
  return part;
}

compare::RunFacts RunOf(const char* name, const char* id) {
  compare::RunFacts run;
  run.job.set_name(name);
  run.job.set_id(id);
  run.steps = 1390;
  run.dropped = 10;
  return run;
}

Verdict Red() {
  Verdict verdict;
  verdict.outcome = Outcome::kFailed;
  Judgement failed{RuleOf("sync.calls_per_step(new) > 0"), Outcome::kFailed, {}};
  failed.measured.value = 3;
  failed.measured.parts = {SyncAt("/ci/build/src/train.py", 47, 2),
                           SyncAt("/ci/build/src/save.py", 8, 1),
                           SyncAt("/ci/build/src/log.py", 9, 1)};
  failed.measured.parts[0].change = "new";
  failed.measured.parts[1].change = "moved";
  failed.measured.parts[1].moved_from = "/ci/old/src/train.py:90";
  failed.measured.parts[2].change = "rare";
  failed.measured.parts[2].allowed = "once in a while";
  Judgement passed{RuleOf("gpu.idle_percent > 20"), Outcome::kPassed, {}};
  passed.measured.value = 12.345;
  Part cause;
  cause.name = "sync";
  cause.value = 12.345;
  passed.measured.parts = {cause};
  Judgement unknown{RuleOf("step_ms.change_percent >= 2"), Outcome::kCannotJudge, {}};
  unknown.measured.value = 1.5;
  unknown.measured.low = -1;
  unknown.measured.high = 4;
  unknown.measured.why_not = "too few runs: the bound lies within the 95 % interval";
  verdict.rules = {failed, passed, unknown};
  verdict.warnings = {"the allowance of a.py:3 is of no sync point of this job"};
  verdict.runs = {RunOf("pr", "aaaaaaaa00")};
  verdict.baseline = {RunOf("main", "bbbbbbbb00")};
  return verdict;
}

TEST(CheckTest, TextIsAsInTheGoldenFile) {
  testing::ExpectGolden("check", CheckText(Red()));
}

TEST(CheckTest, TheLastLineIsTheVerdict) {
  Verdict verdict = Red();
  auto last = [&] {
    const std::string text = CheckText(verdict);
    const std::vector<std::string> lines = absl::StrSplit(text, '\n');
    return lines[lines.size() - 2];
  };
  EXPECT_THAT(last(), StartsWith("failed: 1 of 3 rules, and 1 cannot be judged; pr ("));
  EXPECT_EQ(ExitStatusOf(verdict.outcome), 1);
  verdict.rules.erase(verdict.rules.begin());
  verdict.outcome = Outcome::kCannotJudge;
  EXPECT_THAT(last(), StartsWith("cannot be judged: 1 of 2 rules; pr ("));
  EXPECT_EQ(ExitStatusOf(verdict.outcome), 3);
  verdict.rules.pop_back();
  verdict.outcome = Outcome::kPassed;
  EXPECT_THAT(last(), StartsWith("passed: 1 rule; pr ("));
  EXPECT_EQ(ExitStatusOf(verdict.outcome), 0);
}

TEST(CheckTest, JsonIsWhatTheSchemaAllowsAndUsesAllOfIt) {
  testing::SchemaCheck schema(AnswerSchema("check"));
  const Json json = Json::parse(JsonText(CheckJson(Red())));
  EXPECT_EQ(schema.Check(json), "");
  EXPECT_EQ(schema.Check(Json::parse(JsonText(CheckJson({})))), "");
  EXPECT_EQ(json["rules"][0]["parts"][1]["moved_from"], "/ci/old/src/train.py:90");
  EXPECT_TRUE(json["rules"][0]["unit"].is_null());
  EXPECT_EQ(json["rules"][2]["reason"],
            "too few runs: the bound lies within the 95 % interval");
  EXPECT_EQ(json["exit_status"], 1);
}

TEST(CheckTest, SarifHasAResultForEachLineBesideTheCode) {
  const Json run = Json::parse(CheckSarif(Red(), "/ci/build"))["runs"][0];
  ASSERT_EQ(run["results"].size(), 3);
  const Json& first = run["results"][0];
  EXPECT_EQ(first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
            "src/train.py");
  EXPECT_EQ(first["baselineState"], "new");
  EXPECT_FALSE(first.contains("suppressions"));
  EXPECT_EQ(run["results"][2]["suppressions"][0]["justification"], "once in a while");
  EXPECT_FALSE(run["invocations"][0]["executionSuccessful"]);
  EXPECT_THAT(
      std::string(
          run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]),
      HasSubstr("too few runs"));
  // The same place after an edit above it, and another place.
  Verdict later = Red();
  later.rules[0].measured.parts[0].site.set_line(50);
  auto print = [](const Verdict& verdict, size_t result) {
    return Json::parse(
        CheckSarif(verdict, "/ci/build"))["runs"][0]["results"][result]
                                         ["partialFingerprints"]["lullSite/v1"];
  };
  EXPECT_EQ(print(later, 0), print(Red(), 0));
  EXPECT_NE(print(Red(), 1), print(Red(), 0));
}

TEST(CheckTest, FilesHaveTheNotesThatTheTextHas) {
  Verdict verdict = Red();
  verdict.rules = {verdict.rules[1]};
  verdict.outcome = Outcome::kPassed;
  EXPECT_THAT(CheckJunit(verdict),
              HasSubstr("<system-out>note: the allowance of a.py:3 is of no sync point "
                        "of this job</system-out>\n  </testsuite>"));
  const Json told = Json::parse(CheckSarif(verdict, ""))["runs"][0]["invocations"][0];
  EXPECT_TRUE(told["executionSuccessful"]);
  ASSERT_EQ(told["toolExecutionNotifications"].size(), 1);
  EXPECT_EQ(told["toolExecutionNotifications"][0]["level"], "note");
  EXPECT_EQ(told["toolExecutionNotifications"][0]["message"]["text"],
            "the allowance of a.py:3 is of no sync point of this job");
  verdict.warnings = {};
  EXPECT_THAT(CheckJunit(verdict), Not(HasSubstr("system-out")));
}

TEST(CheckTest, TheRankThatAValueIsOfIsNamed) {
  Verdict verdict = Red();
  verdict.rules[1].measured.of = "rank 3";
  EXPECT_THAT(CheckText(verdict), HasSubstr("measured 12.35 %, rank 3\n"));
  EXPECT_EQ(CheckJson(verdict)["rules"][1]["of"], "rank 3");
  EXPECT_TRUE(CheckJson(Red())["rules"][1]["of"].is_null());
}

TEST(CheckTest, AGreenSarifHasNoResults) {
  Verdict verdict = Red();
  verdict.rules = {verdict.rules[1]};
  verdict.outcome = Outcome::kPassed;
  const Json run = Json::parse(CheckSarif(verdict, ""))["runs"][0];
  EXPECT_EQ(run["results"], Json::array());
  EXPECT_TRUE(run["invocations"][0]["executionSuccessful"]);
}

TEST(CheckTest, JunitCountsFailuresErrorsAndWhatIsAllowed) {
  const std::string xml = CheckJunit(Red());
  EXPECT_THAT(xml, HasSubstr("tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\""));
  EXPECT_THAT(xml, HasSubstr("<skipped message=\"once in a while\"/>"));
  EXPECT_THAT(xml,
              HasSubstr("name=\"gpu.idle_percent &gt; 20\" time=\"0\"></testcase>"));
}

TEST(CheckTest, AnnotationsNameTheLinesThatFailed) {
  const std::string text = CheckAnnotations(Red(), "/ci/build");
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  ASSERT_EQ(lines.size(), 4);  // the last one is empty
  EXPECT_THAT(lines[0],
              StartsWith("::error file=src/train.py,line=47,title=lull check::"));
  EXPECT_THAT(lines[1], HasSubstr("new: was at"));
  EXPECT_THAT(lines[2], StartsWith("::error title=lull check (cannot be judged)::"));
  EXPECT_THAT(lines[2], HasSubstr("the 95 %25 interval"));
}

TEST(CheckTest, OfManyAnnotationsTheLastSaysHowManyMore) {
  Verdict verdict = Red();
  for (int i = 0; i < 20; ++i) {
    verdict.rules[0].measured.parts.push_back(SyncAt("/ci/build/a.py", i + 1, 1));
  }
  const std::string text = CheckAnnotations(verdict, "/ci/build");
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  ASSERT_EQ(lines.size(), 11);
  EXPECT_THAT(lines[9], EndsWith("::14 more: see the output of lull check"));
}

// Everything that a program can put into a name.
constexpr char kHostile[] =
    "a\n::error::x]]>&<\"'>\x01\x1b[31m\xff\xfe\xef\xbf\xbf\xed\xa0\x80 %0A,:\r\n";

Verdict Hostile() {
  Verdict verdict = Red();
  for (Judgement& judgement : verdict.rules) {
    judgement.measured.why_not = kHostile;
    for (Part& part : judgement.measured.parts) {
      if (part.name.empty()) part.site.set_file(absl::StrCat("/ci/build/", kHostile));
      part.site.set_function(absl::StrCat(kHostile, std::string(1 << 20, 'f')));
      part.api = kHostile;
    }
  }
  verdict.rules[0].measured.parts[2].allowed = kHostile;
  verdict.rules[0].measured.parts[1].moved_from = kHostile;
  verdict.warnings = {kHostile};
  verdict.runs[0].job.set_name(kHostile);
  return verdict;
}

TEST(CheckTest, HostileNamesSteerNeitherTerminalNorWorkflow) {
  const std::string text = CheckText(Hostile());
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\n::")));
  EXPECT_LT(text.size(), 20000);
  const std::string annotations = CheckAnnotations(Hostile(), "/ci/build");
  for (absl::string_view line : absl::StrSplit(annotations, '\n', absl::SkipEmpty())) {
    EXPECT_THAT(std::string(line), StartsWith("::error "));
    const size_t properties = line.find("::", 2);
    const absl::string_view head = line.substr(0, properties);
    EXPECT_EQ(head.find("::", 2), absl::string_view::npos);
    EXPECT_THAT(std::string(head), Not(HasSubstr("%0A,:")));
    EXPECT_THAT(std::string(head), HasSubstr("title=lull check"));
  }
}

// What XML 1.0 has of the bytes that can be here.
bool IsXmlText(absl::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 && byte != '\n' && byte != '\t' && byte != '\r') return false;
    if (text.substr(i, 3) == "\xef\xbf\xbf" || text.substr(i, 3) == "\xef\xbf\xbe") {
      return false;
    }
  }
  // The parser of JSON refuses what is no UTF-8.
  try {
    Json(std::string(text)).dump();
  } catch (const Json::exception&) {
    return false;
  }
  return true;
}

TEST(CheckTest, HostileNamesLeaveFilesWellFormed) {
  const std::string xml = CheckJunit(Hostile());
  EXPECT_TRUE(IsXmlText(xml));
  EXPECT_THAT(xml, Not(HasSubstr("]]>")));
  EXPECT_THAT(xml, Not(HasSubstr("&<")));
  EXPECT_LT(xml.size(), 100000);
  const Json sarif = Json::parse(CheckSarif(Hostile(), "/ci/build"));
  const std::string uri = sarif["runs"][0]["results"][0]["locations"][0]
                               ["physicalLocation"]["artifactLocation"]["uri"];
  EXPECT_EQ(uri.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789/-._~%"),
            std::string::npos);
}

}  // namespace
}  // namespace lull
