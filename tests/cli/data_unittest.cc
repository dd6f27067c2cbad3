// What loading costs, as people and programs read it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cli/render/human.h"
#include "cli/render/json.h"
#include "tests/cli/fixed_replies.h"
#include "tests/cli/golden.h"
#include "tests/cli/parsed_json.h"

namespace lull {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using testing::FixedData;
using ::testing::HasSubstr;
using testing::Keys;
using ::testing::Not;
using testing::Parsed;

TEST(DataText, ShowsLoadersThenWorkersThenWhatABatchCosts) {
  testing::ExpectGolden("data", DataText(FixedData(), v1::GROUP_BY_LINE));
}

TEST(DataText, SaysWhyTheNumberOfWorkersIsNotKnown) {
  v1::ReportReply reply = FixedData();
  reply.mutable_data()->mutable_workers()->set_no_estimate("there are too few samples");
  const std::string text = DataText(reply, v1::GROUP_BY_LINE);
  EXPECT_THAT(text, HasSubstr("not known: there are too few"));
  EXPECT_THAT(text, Not(HasSubstr("keep up")));
}

TEST(DataText, SaysNothingOfWorkersThatThereAreNot) {
  v1::ReportReply reply = FixedData();
  reply.mutable_data()->clear_workers();
  EXPECT_THAT(DataText(reply, v1::GROUP_BY_LINE), Not(HasSubstr("workers")));
}

TEST(DataJson, HasTheAgreedKeys) {
  Json json = Parsed(DataJson(FixedData()));
  EXPECT_THAT(Keys(json), ElementsAre("job", "loaders", "workers", "training_processes",
                                      "batches", "busy", "enough", "parts", "lines",
                                      "phase", "setup_ms", "losses", "overhead"));
  EXPECT_EQ(json["workers"], 6);
  EXPECT_EQ(json["training_processes"], 2);
  EXPECT_EQ(json["batches"], 1200);
  EXPECT_THAT(
      Keys(json["busy"]),
      ElementsAre("samples", "share_percent", "low_percent", "high_percent", "mean",
                  "p95", "waiting_ms", "ready_ms", "unknown_ms", "over_time"));
  EXPECT_THAT(Keys(json["busy"]["over_time"][0]),
              ElementsAre("start_ms", "end_ms", "workers", "busy"));
  EXPECT_THAT(Keys(json["enough"]),
              ElementsAre("workers", "low", "high", "unknown_because"));
  EXPECT_THAT(json["enough"]["workers"].get<double>(), DoubleEq(5.2));
  EXPECT_TRUE(json["enough"]["unknown_because"].is_null());
  EXPECT_THAT(Keys(json["parts"][0]),
              ElementsAre("role", "part", "samples", "total_ms", "per_batch_ms",
                          "share_percent", "low_percent", "high_percent"));
  EXPECT_EQ(json["parts"][1]["part"], "transfer");
  EXPECT_EQ(json["parts"][2]["role"], "main");
  EXPECT_THAT(json["parts"][2]["per_batch_ms"].get<double>(), DoubleEq(40));
  EXPECT_THAT(Keys(json["lines"][0]),
              ElementsAre("role", "part", "file", "line", "function", "samples",
                          "own_samples", "total_ms", "own_ms", "per_batch_ms",
                          "share_percent", "low_percent", "high_percent", "own_percent",
                          "own_low_percent", "own_high_percent", "callee"));
  EXPECT_THAT(json["lines"][0]["share_percent"].get<double>(), DoubleEq(91.6));
  EXPECT_EQ(json["lines"][0]["callee"]["line"], 2365);
}

TEST(DataJson, HasNullForWhatIsNotKnown) {
  v1::ReportReply reply = FixedData();
  v1::LoaderWorkers* workers = reply.mutable_data()->mutable_workers();
  workers->set_no_estimate("there are too few samples");
  workers->clear_busy_95();
  reply.mutable_data()->clear_batches();
  Json json = Parsed(DataJson(reply));
  EXPECT_TRUE(json["enough"]["workers"].is_null());
  EXPECT_TRUE(json["enough"]["high"].is_null());
  EXPECT_EQ(json["enough"]["unknown_because"], "there are too few samples");
  EXPECT_TRUE(json["busy"]["p95"].is_null());
  EXPECT_TRUE(json["batches"].is_null());
  EXPECT_TRUE(json["lines"][0]["per_batch_ms"].is_null());
  EXPECT_TRUE(json["lines"][2]["share_percent"].is_null()) << "too few samples";
  reply.mutable_data()->clear_workers();
  json = Parsed(DataJson(reply));
  EXPECT_TRUE(json["busy"].is_null());
  EXPECT_TRUE(json["enough"].is_null());
  EXPECT_EQ(json["workers"], 0);
  EXPECT_EQ(json["batches"], 10);
}

}  // namespace
}  // namespace lull
