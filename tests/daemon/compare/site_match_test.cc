#include "daemon/compare/site_match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace lull::compare {
namespace {

using ::testing::UnorderedElementsAre;

Place At(const std::string& file, int line, const std::string& function,
         double rate = 1, const std::string& api = "cudaMemcpyAsync") {
  Place place;
  place.site.set_file(file);
  place.site.set_line(line);
  place.site.set_function(function);
  place.api = api;
  place.rate = rate;
  return place;
}

// "10>12", with "!" if it moved.
std::set<std::string> Pairs(const std::vector<Place>& a, const std::vector<Place>& b) {
  std::set<std::string> pairs;
  for (const Match& match : MatchPlaces(a, b)) {
    pairs.insert(std::to_string(a[match.a].site.line()) + ">" +
                 std::to_string(b[match.b].site.line()) + (match.moved ? "!" : ""));
  }
  return pairs;
}

TEST(SiteMatchTest, LinesThatMovedAreTheSame) {
  EXPECT_THAT(Pairs({At("t.py", 90, "update"), At("t.py", 95, "update")},
                    {At("t.py", 95, "update"), At("t.py", 100, "update")}),
              UnorderedElementsAre("90>95", "95>100"));
}

TEST(SiteMatchTest, AnotherCallOrFunctionIsAnotherPlace) {
  EXPECT_THAT(Pairs({At("t.py", 90, "update")}, {At("t.py", 90, "forward", 2)}),
              UnorderedElementsAre());
  EXPECT_THAT(Pairs({At("t.py", 90, "update")},
                    {At("t.py", 90, "update", 1, "cudaStreamSynchronize")}),
              UnorderedElementsAre());
}

TEST(SiteMatchTest, WhereOneIsMissingTheOthersKeepTheirOrder) {
  // The first one went, and nothing else moved.
  EXPECT_THAT(Pairs({At("t.py", 10, "f"), At("t.py", 20, "f"), At("t.py", 30, "f")},
                    {At("t.py", 20, "f"), At("t.py", 30, "f")}),
              UnorderedElementsAre("20>20", "30>30"));
  // The one in the middle went with its three lines.
  EXPECT_THAT(Pairs({At("t.py", 10, "f"), At("t.py", 20, "f"), At("t.py", 30, "f")},
                    {At("t.py", 10, "f"), At("t.py", 27, "f")}),
              UnorderedElementsAre("10>10", "30>27"));
  // One came.
  EXPECT_THAT(Pairs({At("t.py", 20, "f")}, {At("t.py", 12, "f"), At("t.py", 20, "f")}),
              UnorderedElementsAre("20>20"));
}

TEST(SiteMatchTest, HowOftenItIsCalledTellsWhichOneWent) {
  EXPECT_THAT(
      Pairs({At("t.py", 10, "f", 1), At("t.py", 20, "f", 7)}, {At("t.py", 14, "f", 7)}),
      UnorderedElementsAre("20>14"));
}

TEST(SiteMatchTest, TheRestOfTheFileTellsHowFarLinesMoved) {
  // Forty lines came at the top of the file; the sync of line 100 went.
  EXPECT_THAT(Pairs({At("t.py", 50, "g"), At("t.py", 100, "f"), At("t.py", 140, "f")},
                    {At("t.py", 90, "g"), At("t.py", 180, "f")}),
              UnorderedElementsAre("50>90", "140>180"));
}

TEST(SiteMatchTest, AnotherFolderIsTheSameFile) {
  EXPECT_THAT(Pairs({At("/a/lib/site-packages/torchmetrics/aggregation.py", 90, "u")},
                    {At("/b/site-packages/torchmetrics/aggregation.py", 92, "u")}),
              UnorderedElementsAre("90>92"));
  EXPECT_THAT(
      Pairs({At("/old/job/train.py", 9, "u")}, {At("/new/job/train.py", 9, "u")}),
      UnorderedElementsAre("9>9"));
}

// "moved" or "same", for a sync in `a` that is in `b` afterwards.
std::string After(const std::string& a, const std::string& b, const FileNames& files_a,
                  const FileNames& files_b) {
  auto matches = MatchPlaces({At(a, 9, "u")}, {At(b, 9, "u")}, files_a, files_b);
  return matches.size() != 1 ? "none" : matches[0].moved ? "moved" : "same";
}

TEST(SiteMatchTest, AFolderOfTheSameCheckoutIsAnotherFile) {
  EXPECT_EQ(After("/w/src/a/model/m.py", "/w/src/b/model/m.py", {"/w/src/train.py"},
                  {"/w/src/train.py"}),
            "moved");
  EXPECT_EQ(After("/w/src/model/m.py", "/w/src/old/src/model/m.py", {"/w/src/train.py"},
                  {"/w/src/train.py"}),
            "moved");
  // As many files as may have moved with it.
  EXPECT_EQ(After("/w/a/x/m.py", "/w/b/x/m.py",
                  {"/w/t.py", "/w/a/x/n.py", "/w/a/x/o.py", "/w/a/y/p.py"},
                  {"/w/t.py", "/w/b/x/n.py", "/w/b/x/o.py", "/w/b/y/p.py"}),
            "moved");
}

TEST(SiteMatchTest, AnotherCheckoutIsTheSameFile) {
  EXPECT_EQ(After("/ci/main/job/m.py", "/ci/pr/job/m.py", {"/ci/main/train.py"},
                  {"/ci/pr/train.py"}),
            "same");
  // A launcher and an environment that both use say nothing of the checkouts.
  EXPECT_EQ(After("/ci/main/job/m.py", "/ci/pr/job/m.py",
                  {"/opt/run.py", "/ci/venv/lib/python3.11/site-packages/x/y.py"},
                  {"/opt/run.py", "/ci/venv/lib/python3.11/site-packages/x/y.py"}),
            "same");
  // Moved within the other checkout.
  EXPECT_EQ(After("/old/src/a/model/m.py", "/new/src/b/model/m.py",
                  {"/old/src/train.py"}, {"/new/src/train.py"}),
            "moved");
}

TEST(SiteMatchTest, AnotherFileIsAMove) {
  EXPECT_THAT(Pairs({At("/j/a.py", 9, "u")}, {At("/j/b.py", 19, "u")}),
              UnorderedElementsAre("9>19!"));
  // What syncs more often there is something else.
  EXPECT_THAT(Pairs({At("/j/a.py", 9, "u", 1)}, {At("/j/b.py", 19, "u", 3)}),
              UnorderedElementsAre());
  // The one in the same file comes first.
  EXPECT_THAT(
      Pairs({At("/j/a.py", 9, "u")}, {At("/j/b.py", 9, "u"), At("/j/a.py", 50, "u")}),
      UnorderedElementsAre("9>50"));
}

Place Reads(Place place, const std::string& text, const std::string& before = "",
            const std::string& after = "") {
  v1::SourceDef source;
  source.set_file(place.site.file());
  source.set_line(2);
  source.set_first_line(1);
  for (const std::string& line : {before, text, after}) source.add_lines(line);
  place.text = TextOf(source);
  return place;
}

TEST(SiteMatchTest, WhatReadsOtherwiseIsAnotherPlace) {
  EXPECT_THAT(
      Pairs({Reads(At("t.py", 10, "f"), "mean += loss.item()", "seen += 1", "")},
            {Reads(At("t.py", 14, "f"), "norm = total.cpu()", "seen += 1", "")}),
      UnorderedElementsAre());
  // Whatever their order and how often they are called.
  EXPECT_THAT(Pairs({Reads(At("t.py", 10, "f", 1), "  a = loss.item()"),
                     Reads(At("t.py", 20, "f", 7), "b = norm.cpu()")},
                    {Reads(At("t.py", 10, "f", 1), "b = norm.cpu()"),
                     Reads(At("t.py", 20, "f", 7), "a = loss.item()  # why")}),
              UnorderedElementsAre("10>20", "20>10"));
  EXPECT_THAT(Pairs({Reads(At("t.py", 10, "f"), "a = loss.item()"),
                     Reads(At("t.py", 20, "f"), "b = norm.cpu()")},
                    {Reads(At("t.py", 10, "f"), "b = norm.cpu()")}),
              UnorderedElementsAre("20>10"));
  // In another file, too.
  EXPECT_THAT(Pairs({Reads(At("/j/a.py", 9, "u"), "a = loss.item()")},
                    {Reads(At("/j/b.py", 9, "u"), "b = norm.cpu()")}),
              UnorderedElementsAre());
  EXPECT_THAT(Pairs({Reads(At("/j/a.py", 9, "u"), "a = loss.item()")},
                    {Reads(At("/j/b.py", 9, "u"), "a = loss.item()")}),
              UnorderedElementsAre("9>9!"));
}

TEST(SiteMatchTest, ALineThatWasEditedWhereItStandsIsTheSame) {
  const Place was = Reads(At("t.py", 10, "f"), "mean += loss.item()", "seen += 1",
                          "self.model.step()");
  auto is = [&was](const std::string& text, const std::string& before,
                   const std::string& after) {
    return !Pairs({was}, {Reads(At("t.py", 50, "f"), text, before, after)}).empty();
  };
  EXPECT_TRUE(is("mean += train_loss.item()", "seen += 1", "more(step)"));
  EXPECT_TRUE(is("mean += float(loss.item())", "more(step)", "self.model.step( )"));
  // The same words elsewhere in the function, or other words there.
  EXPECT_FALSE(is("mean += train_loss.item()", "more(step)", "less(step)"));
  EXPECT_FALSE(is("norm += grad.item()", "seen += 1", "self.model.step()"));
  // Lines like these are beside many others.
  EXPECT_TRUE(Pairs({Reads(At("t.py", 10, "f"), "mean += loss.item()", "else:", ")")},
                    {Reads(At("t.py", 50, "f"), "mean += a_loss.item()", "else:", ")")})
                  .empty());
}

TEST(SiteMatchTest, AsManyAsMayBeTheSameAre) {
  // What came in between is like neither; what follows was edited.
  EXPECT_THAT(Pairs({Reads(At("t.py", 10, "f"), "mean += loss.item()", "seen += 1"),
                     Reads(At("t.py", 20, "f"), "best = loss.max()", "count += 2")},
                    {Reads(At("t.py", 10, "f"), "mean += a_loss.item()", "seen += 1"),
                     Reads(At("t.py", 12, "f"), "print(norm.cpu())", "more(step)"),
                     Reads(At("t.py", 22, "f"), "best = a_loss.max()", "count += 2")}),
              UnorderedElementsAre("10>10", "20>22"));
  EXPECT_THAT(Pairs({Reads(At("t.py", 10, "f"), "mean += loss.item()", "seen += 1"),
                     Reads(At("t.py", 20, "f"), "best = loss.max()", "count += 2")},
                    {Reads(At("t.py", 12, "f"), "print(norm.cpu())", "more(step)"),
                     Reads(At("t.py", 22, "f"), "best = a_loss.max()", "count += 2")}),
              UnorderedElementsAre("20>22"));
}

TEST(SiteMatchTest, WhereATextIsNotKnownTheOrderCounts) {
  EXPECT_THAT(
      Pairs({Reads(At("t.py", 10, "f"), "a = loss.item()"), At("t.py", 20, "f")},
            {At("t.py", 14, "f"), Reads(At("t.py", 24, "f"), "b = norm.cpu()")}),
      UnorderedElementsAre("10>14", "20>24"));
  // A line without a word tells nothing.
  EXPECT_THAT(
      Pairs({Reads(At("t.py", 10, "f"), ")")}, {Reads(At("t.py", 9, "f"), "x")}),
      UnorderedElementsAre("10>9"));
}

TEST(SiteMatchTest, FingerprintsHaveNoText) {
  const std::string print = FingerprintOf("\tx = 'a#b'[loss]  # why", true);
  EXPECT_EQ(print, FingerprintOf("x='a#b' [ loss]", true));
  EXPECT_NE(print, FingerprintOf("x = 'a#b'[lost]", true));
  EXPECT_EQ(print.find("loss"), std::string::npos);
  EXPECT_NE(FingerprintOf("x  # why", true), FingerprintOf("x  # why", false));
  EXPECT_NE(FingerprintOf("ab", false), FingerprintOf("a b", false));
  EXPECT_EQ(FingerprintOf(" # loss", true), "");
  EXPECT_EQ(FingerprintOf("'\\", true), "");
}

TEST(SiteMatchTest, PlacesWithoutANameAreNotMistakenForOneAnother) {
  EXPECT_THAT(Pairs({At("/j/a.py", 9, "")}, {At("/j/b.py", 9, "")}),
              UnorderedElementsAre());
  EXPECT_THAT(Pairs({At("", 0, "")}, {At("", 0, "")}), UnorderedElementsAre("0>0"));
}

TEST(SiteMatchTest, ManyPlacesOfOneFunctionAreMatchedInTime) {
  std::vector<Place> a, b;
  for (int line = 1; line <= 20'000; ++line) a.push_back(At("t.py", line, "f"));
  for (int line = 1; line <= 15'000; ++line) b.push_back(At("t.py", line, "f"));
  EXPECT_EQ(MatchPlaces(a, b).size(), 15'000);
}

TEST(SiteMatchTest, ManyPlacesThatReadOtherwiseAreMatchedInTime) {
  std::vector<Place> a, b;
  for (int line = 1; line <= 250; ++line) {
    const std::string text = "f(" + std::to_string(line) + ")";
    a.push_back(Reads(At("t.py", line, "f"), "a = x." + text, "n += 1"));
    b.push_back(Reads(At("t.py", line, "f"), "b = x." + text, "n += 1"));
  }
  EXPECT_EQ(MatchPlaces(a, b).size(), 250);
  for (int line = 251; line <= 20'000; ++line) {
    a.push_back(Reads(At("t.py", line, "f"), "a" + std::to_string(line)));
    b.push_back(Reads(At("t.py", line, "f"), "b" + std::to_string(line)));
  }
  b.push_back(Reads(At("t.py", 1, "f"), "a20000"));
  EXPECT_THAT(MatchPlaces(a, b).size(), 251);
}

TEST(SiteMatchTest, TailsOfPaths) {
  EXPECT_EQ(PathTail("/x/site-packages/torch/a.py"), "torch/a.py");
  EXPECT_EQ(PathTail("/x/y/z/a.py"), "z/a.py");
  EXPECT_EQ(PathTail("/a.py"), "/a.py");
  EXPECT_EQ(PathTail("a.py"), "a.py");
  EXPECT_EQ(PathTail(""), "");
}

}  // namespace
}  // namespace lull::compare
