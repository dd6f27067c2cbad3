// What samples of threads say, as people, programs and flame graphs read it.
#include "cli/render/hot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_split.h"
#include "cli/render/human.h"
#include "cli/render/json.h"
#include "daemon/words/sample_words.h"
#include "tests/cli/fixed_replies.h"
#include "tests/cli/golden.h"
#include "tests/cli/parsed_json.h"

namespace lull {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using testing::ExpectGolden;
using testing::FixedHot;
using ::testing::HasSubstr;
using testing::Keys;
using ::testing::Not;
using testing::Parsed;

TEST(HotText, ShowsKindsOfThreadsAndThenLines) {
  ExpectGolden("hot", HotText(FixedHot(), v1::GROUP_BY_LINE));
}

TEST(HotText, ShowsStacksWhenGroupedByThem) {
  ExpectGolden("hot_by_stack", HotText(FixedHot(), v1::GROUP_BY_STACK));
}

TEST(HotText, SaysNothingOfTroubleThatThereWasNot) {
  v1::ReportReply reply = FixedHot();
  reply.mutable_hot()->clear_counters();
  reply.mutable_hot()->mutable_counters()->set_taken(10);
  reply.mutable_hot()->clear_denied_processes();
  reply.mutable_hot()->mutable_lines()->DeleteSubrange(3, 1);
  EXPECT_THAT(HotText(reply, v1::GROUP_BY_LINE),
              ::testing::EndsWith(
                  "\nSamples of the whole run: 10; none late, cut or failed.\n"));
}

TEST(HotText, NeverPassesControlCharactersToTheTerminal) {
  v1::ReportReply reply = FixedHot();
  v1::HotLine* line = reply.mutable_hot()->mutable_lines(0);
  line->mutable_site()->set_function("a\x1b[2J");
  line->mutable_stack(0)->set_function("b\x1b[2J\n");
  EXPECT_THAT(HotText(reply, v1::GROUP_BY_STACK), Not(HasSubstr("\x1b")));
  EXPECT_THAT(FoldedText(reply), Not(HasSubstr("\x1b")));
}

TEST(Folded, HasTheRootFirstAndTheWeightLast) {
  std::vector<std::string> lines = absl::StrSplit(FoldedText(FixedHot()), '\n');
  EXPECT_EQ(lines[0],
            "<module> (/home/ada/resnet/train.py:90);"
            "Faces.__getitem__ (/home/ada/resnet/dataset.py:44);"
            "Image.resize (/venv/lib/python3.11/site-packages/PIL/Image.py:2365) "
            "77375000");
  EXPECT_EQ(lines[2],
            "Faces.__getitem__ (/home/ada/resnet/dataset.py:44);[cut] 2625000");
}

TEST(Folded, KeepsItsOwnSignsOutOfNames) {
  v1::Frame frame;
  frame.set_function("lambda; x\n");
  frame.set_file("a;b.py");
  frame.set_line(3);
  EXPECT_EQ(FoldedFrame(frame), "lambda, x? (a,b.py:3)");
}

TEST(HotJson, HasTheAgreedKeysInOrder) {
  Json json = Parsed(HotJson(FixedHot()));
  EXPECT_THAT(Keys(json), ElementsAre("job", "region", "roles", "lines", "samples",
                                      "phase", "setup_ms", "losses", "overhead"));
  EXPECT_THAT(Keys(json["roles"][0]),
              ElementsAre("role", "samples", "time_ms", "running_percent",
                          "ready_percent", "blocked_percent", "no_python_percent",
                          "failed_percent", "cut_percent"));
  EXPECT_THAT(Keys(json["lines"][0]),
              ElementsAre("role", "file", "line", "function", "samples", "self_samples",
                          "self_ms", "total_ms", "self_percent", "self_low_percent",
                          "self_high_percent", "total_percent", "low_percent",
                          "high_percent", "running_percent", "ready_percent",
                          "blocked_percent", "cut", "stack"));
  EXPECT_THAT(Keys(json["samples"]),
              ElementsAre("taken", "exact", "held", "cut", "no_python", "failed",
                          "late", "late_ms", "skipped", "threads", "lowered", "self_ms",
                          "denied_processes", "unreadable_processes"));
  EXPECT_EQ(json["lines"][0]["role"], "loader");
  EXPECT_EQ(json["lines"][0]["line"], 2365);
  EXPECT_THAT(json["lines"][0]["self_percent"].get<double>(), DoubleEq(62));
  EXPECT_THAT(json["lines"][1]["blocked_percent"].get<double>(), DoubleEq(100));
}

TEST(HotJson, HasNoSharesOfFewSamples) {
  Json line = Parsed(HotJson(FixedHot()))["lines"][3];
  EXPECT_EQ(line["role"], "autograd");
  for (const char* key : {"self_percent", "total_percent", "low_percent",
                          "high_percent", "self_low_percent"}) {
    EXPECT_TRUE(line[key].is_null()) << key;
  }
  EXPECT_THAT(line["running_percent"].get<double>(), DoubleEq(100));
}

TEST(DoingWords, SayHowSureTheShareIs) {
  v1::SampledShare share;
  share.set_percent(61.7);
  share.set_low_percent(52.7);
  share.set_high_percent(69.9);
  EXPECT_EQ(FormatSampled(share), "62 % ± 9");
  share.set_low_percent(61.4);
  share.set_high_percent(62.0);
  EXPECT_EQ(FormatSampled(share), "61.7 % ± 0.3");
}

TEST(DoingWords, CountSamplesWhereThereAreFew) {
  v1::DoingLine line;
  line.set_samples(1);
  line.mutable_site()->set_file("train.py");
  line.mutable_site()->set_line(44);
  line.mutable_site()->set_function("step");
  EXPECT_EQ(DoingWords(line), "1 sample in train.py:44 step");
}

TEST(GapsJson, HasTheLinesOfWhatWasDone) {
  Json gaps = Parsed(GapsJson(testing::FixedGaps()))["gaps"];
  Json line = gaps[4]["doing"][0];
  EXPECT_THAT(Keys(line),
              ElementsAre("file", "line", "function", "samples", "share_percent",
                          "self_percent", "low_percent", "high_percent", "own_percent",
                          "own_low_percent", "own_high_percent", "callee"));
  EXPECT_EQ(line["line"], 44);
  EXPECT_THAT(line["share_percent"].get<double>(), DoubleEq(63.3));
  EXPECT_EQ(line["callee"]["function"], "Image.resize");
  EXPECT_TRUE(gaps[4]["doing"][1]["callee"].is_null());
  EXPECT_EQ(gaps[4]["samples"], 120);
  EXPECT_EQ(gaps[0]["doing"].size(), 0u);
}

}  // namespace
}  // namespace lull
