#include "cli/client/elsewhere.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "daemon/base/host_name.h"
#include "daemon/base/tcp_address.h"

namespace lull {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kId[] = "0123456789abcdef0123456789abcdef";

// Has one job, or names the collector that does.
class Collector : public CollectorClient {
 public:
  Collector(std::vector<std::string>* asked, std::string name)
      : asked_(asked), name_(std::move(name)) {}
  std::string job;        // that it has
  std::string elsewhere;  // of all others
  std::string elsewhere_id = kId;
  std::string answers_about = kId;

  absl::StatusOr<v1::StatusReply> GetStatus() override { return v1::StatusReply(); }
  absl::StatusOr<v1::ArmReply> Arm(const v1::ArmRequest&) override {
    return v1::ArmReply();
  }
  absl::StatusOr<v1::MarkReply> Mark(const v1::MarkRequest&) override {
    return v1::MarkReply();
  }
  absl::StatusOr<v1::ListJobsReply> ListJobs(const v1::ListJobsRequest&) override {
    return v1::ListJobsReply();
  }
  absl::StatusOr<v1::FleetReply> GetFleet(const v1::FleetRequest&) override {
    return v1::FleetReply();
  }
  absl::StatusOr<v1::ReportReply> GetReport(const v1::ReportRequest& request) override {
    asked_->push_back(name_ + " " + request.job());
    if (request.job() != job) return NotHere();
    v1::ReportReply reply;
    reply.mutable_job()->set_host(name_);
    reply.mutable_job()->set_id(answers_about);
    return reply;
  }
  absl::Status Export(
      const v1::ExportRequest& request,
      absl::FunctionRef<absl::Status(const std::string& bytes, double done)> sink)
      override {
    asked_->push_back(name_ + " " + request.job());
    if (request.job() != job) return NotHere();
    return sink("of " + name_, 1);
  }

 private:
  absl::Status NotHere() const {
    absl::Status status = absl::NotFoundError("no such job at " + name_);
    if (elsewhere.empty()) return status;
    v1::Elsewhere there;
    there.set_collector(elsewhere);
    there.set_job(elsewhere_id);
    status.SetPayload(kElsewherePayload, absl::Cord(there.SerializeAsString()));
    return status;
  }

  std::vector<std::string>* const asked_;
  const std::string name_;
};

class ElsewhereTest : public ::testing::Test {
 protected:
  ElsewhereTest() {
    here_.target = "unix:/here";
    here_.tokens.read = "secret";
    here_.is_private = true;
  }

  FollowingClient Client(const std::string& names) {
    auto first = std::make_unique<Collector>(&asked_, "here");
    first->elsewhere = names;
    return FollowingClient(here_, std::move(first), [this](ChosenCollector other) {
      connected_.push_back(other);
      auto there = std::make_unique<Collector>(&asked_, "there");
      there->job = there_has_;
      there->answers_about = there_answers_about_;
      there->elsewhere = "127.0.0.1:3";  // it may say so, too
      return there;
    });
  }
  static v1::ReportRequest About(const std::string& job) {
    v1::ReportRequest request;
    request.set_job(job);
    return request;
  }

  ChosenCollector here_;
  std::string there_has_ = kId;
  std::string there_answers_about_ = kId;
  std::vector<ChosenCollector> connected_;
  std::vector<std::string> asked_;
};

TEST_F(ElsewhereTest, AsksTheCollectorThatHasTheJobAndRemembersIt) {
  FollowingClient client = Client("127.0.0.1:2");
  for (int i = 0; i < 2; ++i) {
    auto reply = client.GetReport(About("mine"));
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_EQ(reply->job().host(), "there");
  }
  const std::string there = std::string("there ") + kId;
  EXPECT_THAT(asked_, ElementsAre("here mine", there, there));
  ASSERT_EQ(connected_.size(), 1);
  EXPECT_EQ(connected_[0].target, "127.0.0.1:2");
  EXPECT_EQ(connected_[0].tokens.read, "secret");
  EXPECT_FALSE(connected_[0].is_private);
}

TEST_F(ElsewhereTest, ExportsFromThere) {
  FollowingClient client = Client("127.0.0.1:2");
  v1::ExportRequest request;
  request.set_job("mine");
  std::string got;
  EXPECT_TRUE(client
                  .Export(request,
                          [&got](const std::string& bytes, double) {
                            got += bytes;
                            return absl::OkStatus();
                          })
                  .ok());
  EXPECT_EQ(got, "of there");
}

TEST_F(ElsewhereTest, GoesNoFartherAndAsksAnewTheNextTime) {
  there_has_ = "";
  FollowingClient client = Client("127.0.0.1:2");
  const absl::Status status = client.GetReport(About("mine")).status();
  EXPECT_EQ(status.message(),
            "job 01234567 is with another collector: no such job at there");
  EXPECT_FALSE(status.GetPayload(kElsewherePayload));
  (void)client.GetReport(About("mine"));
  const std::string there = std::string("there ") + kId;
  EXPECT_THAT(asked_, ElementsAre("here mine", there, "here mine", there));
}

TEST_F(ElsewhereTest, SendsNoTokenInPlainTextToAnotherHost) {
  FollowingClient client = Client("192.0.2.1:4317");
  EXPECT_THAT(
      client.GetReport(About("mine")).status().message(),
      AllOf(HasSubstr("job 01234567 is with another collector"),
            HasSubstr("192.0.2.1:4317 is not on this host"), HasSubstr("--tls-ca")));
  EXPECT_TRUE(connected_.empty());
  here_.insecure_plain_tcp = true;
  EXPECT_TRUE(Client("192.0.2.1:4317").GetReport(About("mine")).ok());
}

TEST_F(ElsewhereTest, TakesNoAddressButThatOfAPort) {
  for (const char* address :
       {"unix:/tmp/there", "dns:///there:1", "there", "-", "0.0.0.0:1", "[::]:1", "0:1",
        "127%2E0.0.1:1", "[::ffff:0.0.0.0]:1"}) {
    EXPECT_FALSE(Client(address).GetReport(About("mine")).ok()) << address;
  }
  EXPECT_TRUE(connected_.empty());
}

TEST_F(ElsewhereTest, SendsNoTokenToThisHostWhereAnotherOneWasAsked) {
  here_.target = "192.0.2.1:4317";
  here_.insecure_plain_tcp = true;
  EXPECT_THAT(Client("127.0.0.1:4317").GetReport(About("mine")).status().message(),
              HasSubstr("is reached on the host of 192.0.2.1:4317 alone"));
  EXPECT_TRUE(connected_.empty());
}

// A name of this host that another one may have, too, proves nothing without TLS.
TEST_F(ElsewhereTest, TakesItsOwnNameForAnotherHostOnlyWithTls) {
  here_.target = "192.0.2.1:4317";
  here_.insecure_plain_tcp = true;
  const std::string itself = HostName() + ":4317";
  // Where the name stands for an address that others reach, it is as any.
  EXPECT_EQ(Client(itself).GetReport(About("mine")).ok(),
            !OnThisHost({HostName(), "1"}).has_value());
  here_.tls_ca = "/some/ca.pem";
  EXPECT_TRUE(Client(itself).GetReport(About("mine")).ok());
}

TEST_F(ElsewhereTest, TakesNoOtherJobForTheOneThatWasAskedFor) {
  there_answers_about_ = std::string(32, 'b');
  EXPECT_THAT(Client("127.0.0.1:2").GetReport(About("mine")).status().message(),
              HasSubstr("it answers about another one"));
  auto first = std::make_unique<Collector>(&asked_, "here");
  first->elsewhere = "127.0.0.1:2";
  first->elsewhere_id = "";  // the newest one there
  FollowingClient client(here_, std::move(first), nullptr);
  EXPECT_THAT(client.GetReport(About("mine")).status().message(),
              HasSubstr("does not say where the job is"));
}

TEST_F(ElsewhereTest, LeavesOtherErrorsAsTheyAre) {
  EXPECT_EQ(Client("").GetReport(About("mine")).status().message(),
            "no such job at here");
}

}  // namespace
}  // namespace lull
