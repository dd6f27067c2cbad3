// Who may scrape, where, and how often an answer is made anew.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/collector/serve/metrics_endpoint.h"
#include "daemon/collector/serve/metrics_source.h"
#include "tests/daemon/collector/serve/parsed_options.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/query/pipeline.h"

namespace lull::collector {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kReadToken = "90ab90ab90ab90ab90ab";

http::Request Scrape(const std::string& authorization) {
  http::Request request;
  request.method = "GET";
  request.target = "/metrics";
  request.authorization = authorization;
  return request;
}

int StatusOf(const http::Request& request) {
  return AdmitScrape(request, kReadToken).status;
}

TEST(Scrape, NeedsTheReadToken) {
  EXPECT_EQ(StatusOf(Scrape("Bearer " + kReadToken)), 200);
  EXPECT_EQ(StatusOf(Scrape("bearer " + kReadToken)), 200);  // RFC 9110, 11.1
  for (const std::string& wrong :
       {std::string(), std::string("Bearer"), std::string("Bearer "), kReadToken,
        "Basic " + kReadToken, "Bearer " + kReadToken + "0",
        "Bearer " + kReadToken.substr(1), "Bearer  " + kReadToken,
        "Bearer " + kReadToken + " "}) {
    const http::Decision decision = AdmitScrape(Scrape(wrong), kReadToken);
    EXPECT_EQ(decision.status, 401) << wrong;
    ASSERT_EQ(decision.headers.size(), 1u);
    EXPECT_EQ(decision.headers[0].first, "WWW-Authenticate");
  }
  EXPECT_EQ(AdmitScrape(Scrape("Bearer "), "").status, 401);
  http::Request twice = Scrape("Bearer " + kReadToken);
  twice.has_one_of_each = false;
  EXPECT_EQ(StatusOf(twice), 401);
}

TEST(Scrape, IsAGetOfMetricsAndNothingElse) {
  http::Request request = Scrape("Bearer " + kReadToken);
  request.target = "/metrics?name[]=x";
  EXPECT_EQ(StatusOf(request), 200);
  for (const char* target : {"/", "/metrics/", "/Metrics", "metrics", "", "/metric",
                             "*", "/x/metrics", "http://127.0.0.1/metrics"}) {
    request.target = target;
    EXPECT_EQ(StatusOf(request), 404) << target;
  }
  request = Scrape("Bearer " + kReadToken);
  for (const char* method : {"HEAD", "POST", "PUT", "DELETE", "OPTIONS", "get", ""}) {
    request.method = method;
    EXPECT_EQ(StatusOf(request), 405) << method;
  }
  request.method = "GET";
  request.has_body = true;
  EXPECT_EQ(StatusOf(request), 400);
}

TEST(Scrape, TellsWhoHasNoTokenNothingElse) {
  http::Request request;
  request.method = "POST";
  request.target = "/nowhere";
  request.has_body = true;
  EXPECT_EQ(StatusOf(request), 401);
}

TEST(MetricsAddress, IsOnLoopbackUnlessNamed) {
  EXPECT_EQ(ParseMetricsAddress("")->text(), "127.0.0.1:5855");
  EXPECT_EQ(ParseMetricsAddress("9000")->text(), "127.0.0.1:9000");
  EXPECT_EQ(ParseMetricsAddress("0")->text(), "127.0.0.1:0");
  EXPECT_EQ(ParseMetricsAddress("10.0.0.5")->text(), "10.0.0.5:5855");
  EXPECT_EQ(ParseMetricsAddress("10.0.0.5:80")->text(), "10.0.0.5:80");
  EXPECT_EQ(ParseMetricsAddress("[::1]")->text(), "[::1]:5855");
  EXPECT_EQ(ParseMetricsAddress("[::1]:80")->text(), "[::1]:80");
  for (const char* text : {":80", "::1", "99999", "a:b", "a:99999", "[]:1"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseMetricsAddress(text).status())) << text;
  }
}

TEST(MetricsOption, NeedsNoValue) {
  EXPECT_FALSE(test::Parsed({}).serves_metrics);
  for (const Options& options :
       {test::Parsed({"--metrics"}), test::Parsed({"--metrics", "--private"}),
        test::Parsed({"--metrics", "--listen", "unix:/s"})}) {
    EXPECT_TRUE(options.serves_metrics);
    EXPECT_EQ(options.metrics, "");
  }
  EXPECT_EQ(test::Parsed({"--metrics", "9000"}).metrics, "9000");
  EXPECT_EQ(test::Parsed({"--metrics=10.0.0.5:80"}).metrics, "10.0.0.5:80");
}

class Source : public ::testing::Test {
 protected:
  Source() : pipeline_(test::MakeHello(test::MakeJobId(1), "one")) { Report(1); }

  // So many processes have reported.
  void Report(uint64_t processes) {
    lull::v1::Batch batch;
    batch.set_sequence(processes);
    *batch.add_processes() =
        test::MakeProcess(processes, static_cast<uint32_t>(100 + processes), 0);
    test::AddCounters(batch, processes, 0, 0, test::kJobStartNs + 1);
    pipeline_.Apply(batch);
    pipeline_.Commit();
  }

  MetricsSource Make(bool has_relay = true,
                     const metrics::Bounds& bounds = metrics::Bounds()) {
    return MetricsSource(
        pipeline_.store(), [has_relay](const std::string&) { return has_relay; },
        bounds,
        [this] {
          now_ += step_;
          return now_;
        });
  }

  static std::string TextOf(MetricsSource& source) {
    auto text = source.Text();
    EXPECT_TRUE(text.ok()) << text.status();
    return text.ok() ? *text : "";
  }

  test::Pipeline pipeline_;
  absl::Time now_ = absl::UnixEpoch();
  absl::Duration step_;  // by which the clock goes on with each look at it
};

const std::string kProcesses = "\nlull_processes{run=\"" + test::MakeJobId(1) + "\"} ";

TEST_F(Source, KeepsAnAnswerForSomeSeconds) {
  MetricsSource source = Make();
  EXPECT_THAT(TextOf(source), HasSubstr(kProcesses + "1\n"));
  Report(2);
  now_ += MetricsSource::kLeastRest - absl::Milliseconds(500);
  std::string text = TextOf(source);
  EXPECT_THAT(text, HasSubstr(kProcesses + "1\n"));
  EXPECT_THAT(text, HasSubstr("\nlull_metrics_age_seconds 4.5\n"));
  now_ += absl::Milliseconds(500);
  text = TextOf(source);
  EXPECT_THAT(text, HasSubstr(kProcesses + "2\n"));
  EXPECT_THAT(text, HasSubstr("\nlull_metrics_age_seconds 0\n"));
}

TEST_F(Source, RestsForFiftyTimesAsLongAsAnAnswerTook) {
  step_ = absl::Seconds(1);
  MetricsSource source = Make();
  const std::string first = TextOf(source);
  EXPECT_THAT(first, HasSubstr(kProcesses + "1\n"));
  EXPECT_THAT(first, HasSubstr("\nlull_metrics_answer_seconds 1\n"));
  Report(2);
  step_ = absl::ZeroDuration();
  now_ += absl::Seconds(48);
  EXPECT_THAT(TextOf(source), HasSubstr(kProcesses + "1\n"));
  now_ += absl::Seconds(1);
  EXPECT_THAT(TextOf(source), HasSubstr(kProcesses + "2\n"));
}

TEST_F(Source, LeavesOutWhatIsLongOver) {
  MetricsSource source = Make(/*has_relay=*/false);  // stored long ago, by its clock
  const std::string text = TextOf(source);
  EXPECT_THAT(text, Not(HasSubstr(test::MakeJobId(1))));
  EXPECT_THAT(text, HasSubstr("\nlull_metrics_series 0\n"));
  EXPECT_THAT(text, HasSubstr("\nlull_metrics_left_out{what=\"runs\"} 0\n"));
}

TEST_F(Source, SaysWhatItLeavesOut) {
  metrics::Bounds bounds;
  bounds.runs = 0;
  MetricsSource no_runs = Make(true, bounds);
  EXPECT_THAT(TextOf(no_runs), HasSubstr("\nlull_metrics_left_out{what=\"runs\"} 1\n"));
  bounds.runs = 1;
  bounds.ranks = 0;
  MetricsSource no_ranks = Make(true, bounds);
  const std::string text = TextOf(no_ranks);
  EXPECT_THAT(text, HasSubstr(kProcesses + "1\n"));
  EXPECT_THAT(text, HasSubstr("\nlull_metrics_left_out{what=\"ranks\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("rank=\"0\"")));
}

}  // namespace
}  // namespace lull::collector
