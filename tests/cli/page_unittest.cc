// The page: what a hostile program calls itself does no harm, and nothing is lost
// between the report and the page.
#include "cli/html/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/html/flame.h"
#include "cli/html/packed.h"
#include "cli/html/request.h"
#include "cli/html/template.h"
#include "cli/html/timeline_json.h"
#include "tests/cli/fixed_replies.h"

namespace lull {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kMade[] = "2026-11-23 22:00 UTC";

// What of a page its data is.
std::string DataOf(const std::string& page) {
  constexpr absl::string_view kOpen =
      "<script type=\"application/json\" id=\"lull-data\">";
  const size_t begin = page.find(std::string(kOpen)) + kOpen.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

v1::ReportReply WholeReply() {
  v1::ReportReply reply = testing::FixedGpuReport();
  v1::ReportRequest request;
  AskForPage(&request);
  for (const auto& detail : request.details()) {
    v1::ReportReply* part = reply.add_details();
    if (detail.section() != v1::SECTION_TIMELINE) *part = testing::FixedAnswer();
  }
  return reply;
}

TEST(ScriptText, EndsNoElementAndBeginsNone) {
  const std::vector<std::string> hostile = {"</script><script>alert(1)</script>",
                                            "<!-- <script>",
                                            "]]>",
                                            "&lt;/script&gt;",
                                            "\xe2\x80\xa8\xe2\x80\xa9",
                                            "\"'\\`${}",
                                            std::string("\0a", 2),
                                            "</SCRIPT\n>"};
  for (const std::string& name : hostile) {
    const std::string text = ScriptText(Json{{"name", name}});
    for (char c : text) {
      EXPECT_THAT(c, Not(AnyOf('<', '>', '&', '\n'))) << text;
      EXPECT_GE(c, ' ') << text;  // ASCII, and nothing below
    }
    EXPECT_EQ(Json::parse(text)["name"], name);
  }
}

TEST(ScriptText, ReplacesWhatIsNoUtf8) {
  const std::string text = ScriptText(Json{{"name", "a\xff\xfe\xc3 b\xed\xa0\x80"}});
  const std::string name = Json::parse(text)["name"];
  EXPECT_THAT(name, HasSubstr("\xef\xbf\xbd"));
  EXPECT_EQ(name.front(), 'a');
}

TEST(Packer, CutsLongNamesAndSaysHowLongTheyWere) {
  Packer packer(100);
  // Two bytes each: a cut never leaves half of one.
  std::string umlauts;
  for (int i = 0; i < 500'000; ++i) umlauts += "\xc3\xa4";
  Json json = {{"name", "x" + umlauts}, {"short", "main"}, {"number", 7}};
  packer.Pack(json);
  const std::string name = json["name"];
  EXPECT_LT(name.size(), 150u);
  EXPECT_THAT(name, HasSubstr("(cut: 1,000,001 bytes)"));
  EXPECT_NO_THROW(json.dump());  // of no broken UTF-8
  EXPECT_EQ(json["short"], "main");
  EXPECT_EQ(packer.cut(), 1u);
}

TEST(Packer, StacksShareTheirFrames) {
  const Json frame = {{"function", "step"}, {"file", "train.py"}, {"line", 3}};
  const Json other = {{"function", "main"}, {"file", "train.py"}, {"line", 9}};
  Json json = {{"rows",
                {{{"stack", {frame, other}}, {"native_stack", Json::array()}},
                 {{"stack", {other, frame, frame}}}}}};
  Packer packer(100);
  packer.Pack(json);
  EXPECT_EQ(json["rows"][0]["stack"], Json({0, 1}));
  EXPECT_EQ(json["rows"][0]["native_stack"], Json::array());
  EXPECT_EQ(json["rows"][1]["stack"], Json({1, 0, 0}));
  EXPECT_EQ(packer.frames(), Json({frame, other}));
}

TEST(Packer, PointsBecomeColumns) {
  Json json = {{"points", {{{"step", 1}, {"bytes", 5}}, {{"step", 2}, {"bytes", 7}}}}};
  Packer packer(100);
  packer.Pack(json);
  EXPECT_EQ(json["points"], Json({{"step", {1, 2}}, {"bytes", {5, 7}}}));
}

TEST(Flame, IsOneTreeOfEachKindOfThread) {
  v1::Hot hot;
  auto add = [&hot](std::vector<std::string> innermost_first, uint64_t self_ns) {
    v1::HotLine* line = hot.add_lines();
    line->set_role(v1::HOST_SAMPLE_ROLE_MAIN);
    line->set_self_ns(self_ns);
    for (const std::string& function : innermost_first) {
      line->add_stack()->set_function(function);
    }
  };
  add({"b", "a"}, 2'000'000);
  add({"c", "a"}, 5'000'000);
  add({"a"}, 1'000'000);
  Packer packer(100);
  const Json flame = FlameJson(hot, 100, packer);
  EXPECT_EQ(flame["roles"], Json({{{"role", "main"}, {"node", 0}}}));
  EXPECT_EQ(flame["parent"], Json({-1, 0, 1, 1}));
  EXPECT_EQ(flame["total_us"], Json({8000, 8000, 5000, 2000}));
  EXPECT_EQ(flame["self_us"], Json({0, 1000, 5000, 2000}));
  const Json thin = FlameJson(hot, 3, packer);
  EXPECT_EQ(thin["frame"].size(), 3u);
  EXPECT_EQ(thin["least_us"], 2000);
}

TEST(Timeline, ThinnedLosesTheShortestGapsAndCountsThem) {
  v1::Timeline timeline;
  for (int b = 0; b < 2; ++b) {
    v1::TimelineBand* band = timeline.add_bands();
    for (uint64_t i = 0; i < 100; ++i) {
      band->add_gap_start_ns(1'000'000 * i);
      band->add_gap_duration_ns(100 * (1 + i + 100 * static_cast<uint64_t>(b)));
      band->add_gap_kind(static_cast<uint32_t>(i % 3));
    }
  }
  timeline.set_gaps(200);
  ThinGaps(150, &timeline);
  EXPECT_EQ(timeline.gaps(), 150u);
  EXPECT_EQ(timeline.left_out(), 50u);
  EXPECT_EQ(timeline.longest_left_out_ns(), 5'000u);
  EXPECT_EQ(timeline.left_out_ns(), 100u * 50 * 51 / 2);
  EXPECT_EQ(timeline.bands(0).gap_start_ns(0), 50'000'000u);
  EXPECT_EQ(timeline.bands(0).gap_kind(0), 50 % 3);
  EXPECT_EQ(timeline.bands(1).gap_kind_size(), 100);
}

TEST(Timeline, AddsUpNoRoundingErrors) {
  v1::ReportReply reply;
  v1::TimelineBand* band = reply.mutable_timeline()->add_bands();
  for (uint64_t i = 1; i <= 1000; ++i) band->add_gap_start_ns(149 * i);
  const Json starts = TimelineJson(reply)["bands"][0]["gap_start"];
  int64_t sum = 0;
  for (const Json& distance : starts) sum += distance.get<int64_t>();
  EXPECT_EQ(sum, 1490);  // in ticks of 100 ns
}

TEST(PageData, HoldsWhatTheVerbsPrint) {
  const v1::ReportReply reply = WholeReply();
  const Json data = PageData(reply, kMade);
  EXPECT_EQ(data["report"]["summary"], ReportJson(reply)["summary"]);
  EXPECT_EQ(data["report"]["gpu"], ReportJson(reply)["gpu"]);
  EXPECT_EQ(data["steps"]["steps"], StepsJson(reply.details(0))["steps"]);
  EXPECT_EQ(data["operators"]["ops"].size(),
            OperatorsJson(reply.details(6))["ops"].size());
  EXPECT_EQ(data["complete"], true);
  EXPECT_EQ(PageData(testing::FixedReport(), kMade)["complete"], false);
}

TEST(PageData, HasTheStretchesThatCostMostAndCountsTheOthers) {
  v1::ReportReply reply = WholeReply();
  EXPECT_TRUE(PageData(reply, kMade)["ranks"].is_null());
  *reply.mutable_ranks() = testing::FixedRanks().ranks();
  for (uint64_t i = 0; i < 6'000; ++i) {
    v1::LateStretch* late = reply.mutable_ranks()->add_late_stretches();
    late->set_rank(static_cast<int32_t>(i % 2));
    late->set_cost_to_others_ns(1'000'000 * (i * 7 % 6'000));
  }
  const Json ranks = PageData(reply, kMade)["ranks"];
  EXPECT_EQ(ranks["late_left_out"], 1'000);
  EXPECT_EQ(ranks["late_stretches"].size(), 5'000u);
  for (const Json& late : ranks["late_stretches"]) {
    EXPECT_GE(late["cost_to_others_ms"], 1'000);
  }
  EXPECT_EQ(ranks["ranks"], RanksJson(reply)["ranks"]);
  EXPECT_EQ(ranks["story"].size(), 2u);
}

TEST(Page, QuotesSourceTextAsDataAndEachLineOnce) {
  v1::ReportReply reply = WholeReply();
  auto add = [](v1::ReportReply* to, uint32_t line, const std::string& text) {
    v1::SourceDef* source = to->add_sources();
    source->set_file("/job/train.py");
    source->set_line(line);
    source->set_first_line(line);
    source->add_lines(text);
  };
  const std::string hostile = "</script><script>alert(1)</script> <!-- \xff & '\"";
  add(&reply, 7, hostile);
  add(reply.mutable_details(2), 7, hostile);
  add(reply.mutable_details(2), 8, "b = 2");
  add(reply.mutable_details(4), 8, "b = 2");
  const std::string page = Page(reply, kMade);
  EXPECT_THAT(DataOf(page), Not(HasSubstr("<")));
  const Json data = Json::parse(DataOf(page));
  ASSERT_EQ(data["report"]["sources"].size(), 1u);
  ASSERT_EQ(data["sources"].size(), 1u);
  EXPECT_EQ(data["report"]["sources"][0]["lines"][0],
            "</script><script>alert(1)</script> <!-- \xef\xbf\xbd & '\"");
  EXPECT_EQ(data["sources"][0]["line"], 8);
}

TEST(Page, AllowsItsOwnScriptAlone) {
  const std::string page = Page(WholeReply(), kMade);
  EXPECT_THAT(page, HasSubstr("default-src 'none'; script-src 'sha256-"));
  EXPECT_THAT(page, HasSubstr("require-trusted-types-for 'script'"));
  for (const char* word :
       {"innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "document.write",
        "http://", "https://", "fetch(", "unsafe-"}) {
    std::string own = page;
    own.erase(own.find(DataOf(page)), DataOf(page).size());
    EXPECT_THAT(own, Not(HasSubstr(word)));
  }
}

TEST(Page, ThatIsServedMayAskWhereItCameFrom) {
  const std::string page = ServedPage(LivePageText(WholeReply(), /*live=*/true));
  EXPECT_THAT(page,
              HasSubstr("default-src 'none'; connect-src 'self'; script-src 'sha256-"));
  EXPECT_EQ(Json::parse(DataOf(page))["live"], true);
  EXPECT_EQ(page.size(), ServedTemplate().bytes + DataOf(page).size());
}

TEST(Page, IsSmallWhateverTheNames) {
  v1::ReportReply reply = WholeReply();
  const std::string long_name(1 << 20, '<');
  for (int i = 0; i < 10; ++i) {
    v1::GapRow* kind = reply.mutable_details(7)->mutable_timeline()->add_kinds();
    kind->mutable_before()->set_function(absl::StrCat(i, long_name));
    for (int f = 0; f < 5; ++f) {
      kind->add_stack()->set_function(absl::StrCat(i, f, long_name));
    }
  }
  reply.mutable_job()->set_name(long_name);
  std::string page = Page(reply, kMade);
  EXPECT_LT(page.size(), kPageBytes);
  EXPECT_THAT(DataOf(page), HasSubstr("(cut: 1,048,57"));
  EXPECT_THAT(DataOf(page), Not(HasSubstr("<")));

  // As many gaps as there can be, with as many lines, of a busy job.
  v1::Timeline* timeline = reply.mutable_details(7)->mutable_timeline();
  for (int i = 0; i < 500; ++i) {
    v1::GapRow* kind = timeline->add_kinds();
    for (int f = 0; f < 50; ++f) {
      kind->add_stack()->set_function(absl::StrCat(i, " ", f, std::string(1'500, 'f')));
    }
  }
  for (int b = 0; b < 8; ++b) {
    v1::TimelineBand* band = timeline->add_bands();
    for (uint64_t i = 0; i < 12'500; ++i) {
      band->add_gap_start_ns(i * 987'654'321);
      band->add_gap_duration_ns(123'456'789 + i);
      band->add_gap_kind(static_cast<uint32_t>(i % 500));
    }
  }
  timeline->set_gaps(100'000);
  page = Page(reply, kMade);
  EXPECT_LT(page.size(), kPageBytes);
  const Json data = Json::parse(DataOf(page));
  EXPECT_EQ(data["timeline"]["gaps"].get<uint64_t>() +
                data["timeline"]["left_out"].get<uint64_t>(),
            100'000u);
}

TEST(Template, IsAsLongAsItSays) {
  size_t bytes = 0;
  for (absl::string_view piece : FileTemplate().before) bytes += piece.size();
  for (absl::string_view piece : FileTemplate().after) bytes += piece.size();
  EXPECT_EQ(bytes, FileTemplate().bytes);
  EXPECT_LT(bytes, 200'000u);
}

}  // namespace
}  // namespace lull
