#include "cli/client/collector_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/cli/fake_collector.h"

namespace lull {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CollectorClientTest : public ::testing::Test {
 protected:
  ChosenCollector Address(const std::string& token = "") const {
    ChosenCollector address;
    address.target = address_;
    address.tokens = {token, token, token};
    return address;
  }

  // The message of a GetReport that must fail.
  std::string Failure(CollectorClient& client, const std::string& job = "") {
    v1::ReportRequest request;
    request.set_job(job);
    auto reply = client.GetReport(request);
    return reply.ok() ? "it worked" : std::string(reply.status().message());
  }

  std::string address_ = "unix:" + ::testing::TempDir() + "lull-fake-" +
                         std::to_string(getpid()) + ".sock";
};

TEST_F(CollectorClientTest, HandsOverTheRequestAndTheReply) {
  testing::FakeCollector collector(address_);
  auto client = CollectorClient::Create(Address());
  ASSERT_TRUE(client.ok());
  v1::ReportRequest request;
  request.set_job("resnet");
  request.set_rank(3);
  request.add_sections(v1::SECTION_SYNCS);
  auto reply = (*client)->GetReport(request);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->syncs().sync_points_size(), 3);
  EXPECT_EQ(collector.last_request().rank(), 3);
  EXPECT_FALSE(collector.last_request().has_pid());
  EXPECT_EQ(collector.last_request().sections(0), v1::SECTION_SYNCS);
}

TEST_F(CollectorClientTest, SaysWhatToCheckWhenNobodyAnswers) {
  auto client = CollectorClient::Create(Address());
  ASSERT_TRUE(client.ok());
  EXPECT_THAT(Failure(**client),
              AllOf(HasSubstr("cannot reach the collector at " + address_),
                    HasSubstr("lull doctor")));
}

TEST_F(CollectorClientTest, TellsAMissingTokenFromAWrongOne) {
  testing::FakeCollector collector(address_, "secret");
  auto without = CollectorClient::Create(Address());
  auto wrong = CollectorClient::Create(Address("guess"));
  auto right = CollectorClient::Create(Address("secret"));
  ASSERT_TRUE(without.ok() && wrong.ok() && right.ok());
  EXPECT_THAT(Failure(**without),
              AllOf(HasSubstr("wants a token"), HasSubstr("--token-file")));
  EXPECT_THAT(Failure(**wrong), HasSubstr("refuses the token"));
  EXPECT_TRUE((*right)->GetStatus().ok());
}

TEST_F(CollectorClientTest, SaysWhichTokenIsMissing) {
  testing::FakeCollector collector(address_, "secret");
  ChosenCollector address = Address();
  address.tokens.write = "secret";
  address.token_file = "/mine";
  auto client = CollectorClient::Create(address);
  ASSERT_TRUE(client.ok());
  EXPECT_TRUE((*client)->GetStatus().ok());
  EXPECT_THAT(Failure(**client), HasSubstr("wants a read token, and /mine has none"));
}

TEST_F(CollectorClientTest, PointsToTheJobListWhenTheJobIsNotThere) {
  testing::FakeCollector collector(address_);
  auto client = CollectorClient::Create(Address());
  ASSERT_TRUE(client.ok());
  EXPECT_THAT(Failure(**client, "missing"),
              AllOf(HasSubstr("no job 'missing'"), HasSubstr("lull jobs")));
}

TEST_F(CollectorClientTest, FollowsAJobToTheCollectorThatHasIt) {
  testing::FakeCollector collector(address_);
  v1::Elsewhere elsewhere;
  elsewhere.set_collector("127.0.0.1:1");  // where nobody listens
  elsewhere.set_job("0123456789abcdef0123456789abcdef");
  collector.FailWith(grpc::Status(grpc::StatusCode::NOT_FOUND, "ask another one",
                                  elsewhere.SerializeAsString()));
  auto client = CollectorClient::Create(Address());
  ASSERT_TRUE(client.ok());
  EXPECT_THAT(Failure(**client, "mine"),
              HasSubstr("cannot reach the collector at 127.0.0.1:1"));
}

TEST_F(CollectorClientTest, NamesTheCollectorInAnErrorThatIsNotTheUsers) {
  testing::FakeCollector collector(address_);
  collector.FailWith(grpc::Status(grpc::StatusCode::INTERNAL, "disk on fire"));
  auto client = CollectorClient::Create(Address());
  ASSERT_TRUE(client.ok());
  EXPECT_THAT(Failure(**client),
              HasSubstr("the collector at " + address_ + " failed: disk on fire"));
}

// The fake one does as collectors did before there were tags.
TEST_F(CollectorClientTest, SaysThatAnOlderCollectorKnowsNoTags) {
  testing::FakeCollector collector(address_);
  auto client = CollectorClient::Create(Address());
  ASSERT_TRUE(client.ok());
  EXPECT_TRUE((*client)->ListJobs({}).ok());
  v1::ListJobsRequest tagged;
  tagged.add_tags("naive");
  EXPECT_THAT((*client)->ListJobs(tagged).status().message(),
              AllOf(HasSubstr("does not know tags"), HasSubstr("the same release")));
  EXPECT_EQ((*client)->Mark({}).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace lull
