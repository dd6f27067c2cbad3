#include <gmock/gmock.h>
#include <google/protobuf/stubs/logging.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "control.grpc.pb.h"
#include "daemon/collector/serve/collector.h"
#include "query.grpc.pb.h"
#include "tests/daemon/collector/fake_relay.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/storage/temporary_directory.h"

namespace lull::collector {
namespace {

using test::FakeRelay;
using test::MakeHello;
using test::MakeJobId;
using ::testing::HasSubstr;

class IngestTest : public ::testing::Test {
 protected:
  void SetUp() override { Start(); }

  void Start() {
    CollectorConfig config;
    config.listen = *ParseListenAddress("unix:" + (directory_ / "run/c.sock"));
    config.database = directory_ / "data/a.db";
    auto started = Collector::Start(config);
    ASSERT_TRUE(started.ok()) << started.status();
    collector_ = *std::move(started);
    grpc::ChannelArguments arguments;
    arguments.SetMaxSendMessageSize(-1);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = grpc::CreateCustomChannel(collector_->address(),
                                         grpc::InsecureChannelCredentials(), arguments);
  }

  static lull::v1::Batch Syncs(uint64_t sequence, uint64_t position, size_t count) {
    lull::v1::Batch batch;
    batch.set_sequence(sequence);
    if (sequence == 1) {
      *batch.add_processes() = test::MakeProcess(1, 101, 0);
      test::AddStacks(batch, 1);
    }
    test::TestEvent event;
    event.type = v1::EVENT_TYPE_SYNC;
    event.api = test::kApiSync;
    event.python = 1;
    event.duration_ns = 1000;
    test::AddRun(batch, 1, 0, position, std::vector<test::TestEvent>(count, event));
    return batch;
  }

  lull::v1::ReportReply GetSyncs(const std::string& job) {
    grpc::ClientContext context;
    lull::v1::ReportRequest request;
    request.set_job(job);
    lull::v1::ReportReply reply;
    grpc::Status status =
        lull::v1::Query::NewStub(channel_)->GetReport(&context, request, &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply;
  }

  test::TemporaryDirectory directory_;
  std::unique_ptr<Collector> collector_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(IngestTest, RefusesAReadingOfAClockThatIsNoInterval) {
  FakeRelay relay(channel_);
  ASSERT_TRUE(relay.Send(MakeHello(MakeJobId(1))));
  lull::v1::IngestRequest request;
  request.mutable_clock()->set_low_ns(5);
  request.mutable_clock()->set_high_ns(5);
  ASSERT_TRUE(relay.SendRequest(request));
  ASSERT_TRUE(relay.Send(Syncs(1, 0, 1)));
  ASSERT_TRUE(relay.AwaitAcknowledgement(1));
  request.mutable_clock()->set_high_ns(4);
  relay.SendRequest(request);
  const grpc::Status status = relay.End(false);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("clock.low_ns"));
}

// As a CLI from before GetReport took sections asks.
TEST_F(IngestTest, TellsACallerOfAnotherReleaseWhatToDo) {
  grpc::GenericStub stub(channel_);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  grpc::ByteBuffer nothing, answer;
  auto call =
      stub.PrepareUnaryCall(&context, "/lull.v1.Query/GetSyncs", nothing, &queue);
  call->StartCall();
  grpc::Status status;
  call->Finish(&answer, &status, &status);
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(status.error_message(), HasSubstr("GetSyncs"));
  EXPECT_THAT(status.error_message(), HasSubstr("lull --version"));
}

TEST_F(IngestTest, AnswersQueriesOfAJobThatStillRuns) {
  FakeRelay relay(channel_);
  ASSERT_TRUE(relay.Send(MakeHello(MakeJobId(1), "train")));
  ASSERT_TRUE(relay.Send(Syncs(1, 0, 10)));
  ASSERT_TRUE(relay.AwaitAcknowledgement(1));
  EXPECT_EQ(GetSyncs("train").syncs().total_calls(), 10u);
  EXPECT_FALSE(GetSyncs("train").job().ended());
  ASSERT_TRUE(relay.Send(Syncs(2, 10, 5)));
  ASSERT_TRUE(relay.AwaitAcknowledgement(2));
  EXPECT_EQ(GetSyncs("train").syncs().total_calls(), 15u);
}

TEST_F(IngestTest, AnswersAfterARestartAndGoesOnWhereItStopped) {
  {
    FakeRelay relay(channel_);
    relay.Send(MakeHello(MakeJobId(1)));
    relay.Send(Syncs(1, 0, 10));
    ASSERT_TRUE(relay.AwaitAcknowledgement(1));
  }
  collector_.reset();
  Start();
  EXPECT_EQ(GetSyncs("").syncs().total_calls(), 10u);
  FakeRelay relay(channel_);
  relay.Send(MakeHello(MakeJobId(1)));
  relay.Send(Syncs(1, 0, 10));  // not acknowledged, as far as the relay knows
  relay.Send(Syncs(2, 8, 10));  // overlaps
  ASSERT_TRUE(relay.AwaitAcknowledgement(2));
  EXPECT_EQ(GetSyncs("").syncs().total_calls(), 18u);
  EXPECT_EQ(GetSyncs("").syncs().sync_points(0).site().line(), 11);
}

TEST_F(IngestTest, StoresTheEndOfAJob) {
  FakeRelay relay(channel_);
  relay.Send(MakeHello(MakeJobId(1)));
  lull::v1::Batch batch = Syncs(1, 0, 1);
  batch.mutable_job_end()->set_end_ns(test::kJobStartNs + 7);
  batch.mutable_job_end()->set_exit_status(139);
  batch.mutable_job_end()->set_known(true);
  relay.Send(batch);
  EXPECT_TRUE(relay.End(/*done_writing=*/true).ok());
  EXPECT_EQ(relay.acknowledged(), 1u) << "a stream ends well only when all is durable";
  lull::v1::Job job = GetSyncs("").job();
  EXPECT_TRUE(job.ended());
  EXPECT_EQ(job.exit_status(), 139);
  EXPECT_EQ(job.duration_ns(), 7u);
}

TEST_F(IngestTest, AsksForHelloFirstAndOnce) {
  FakeRelay without(channel_);
  without.Send(Syncs(1, 0, 1));
  EXPECT_EQ(without.End(false).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  FakeRelay twice(channel_);
  twice.Send(MakeHello(MakeJobId(1)));
  twice.Send(MakeHello(MakeJobId(1)));
  EXPECT_EQ(twice.End(false).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  FakeRelay empty(channel_);
  empty.SendRequest({});
  EXPECT_EQ(empty.End(false).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(IngestTest, RefusesAnotherProtocolVersion) {
  FakeRelay relay(channel_);
  lull::v1::Hello hello = MakeHello(MakeJobId(1));
  hello.set_protocol_version(9);
  relay.Send(hello);
  grpc::Status status = relay.End(false);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("protocol_version is 9"));
}

TEST_F(IngestTest, RefusesBatchesOutOfOrder) {
  FakeRelay relay(channel_);
  relay.Send(MakeHello(MakeJobId(1)));
  relay.Send(Syncs(3, 20, 10));
  relay.Send(Syncs(2, 10, 10));
  EXPECT_EQ(relay.End(false).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(IngestTest, EndsTheStreamOfAHostilePeerAndNoOther) {
  FakeRelay good(channel_);
  good.Send(MakeHello(MakeJobId(1)));
  FakeRelay bad(channel_);
  bad.Send(MakeHello(MakeJobId(2)));
  lull::v1::Batch batch = Syncs(1, 0, 10);
  batch.add_processes()->set_key(0);
  bad.Send(batch);
  grpc::Status status = bad.End(false);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("processes.key"));
  good.Send(Syncs(1, 0, 10));
  EXPECT_TRUE(good.AwaitAcknowledgement(1));
}

TEST_F(IngestTest, RejectsABadRunOfEventsAndTakesTheRestOfItsBatch) {
  FakeRelay relay(channel_);
  relay.Send(MakeHello(MakeJobId(1)));
  lull::v1::Batch batch = Syncs(1, 0, 10);
  lull::v1::RingBatch bad = batch.rings(0);
  bad.set_ring(1);
  bad.mutable_events()->add_arg0(1);
  *batch.add_rings() = bad;
  bad = batch.rings(0);
  bad.set_ring(2);
  bad.mutable_events()->set_api(3, 77);
  *batch.add_rings() = bad;
  test::AddCounters(batch, 1, 1, 10, test::kJobStartNs + 1);
  test::AddCounters(batch, 1, 2, 10, test::kJobStartNs + 1);
  batch.add_process_ends()->set_process_key(1);
  batch.mutable_process_ends(0)->set_end_ns(test::kJobStartNs + 2);
  relay.Send(batch);
  ASSERT_TRUE(relay.AwaitAcknowledgement(1));
  std::vector<lull::v1::RejectedRun> rejected = relay.rejected();
  ASSERT_EQ(rejected.size(), 2u);
  EXPECT_EQ(rejected[0].ring(), 1u);
  EXPECT_EQ(rejected[0].events(), 10u);
  EXPECT_THAT(rejected[0].why(), HasSubstr("rings.events.arg0"));
  EXPECT_EQ(rejected[1].ring(), 2u);
  EXPECT_THAT(rejected[1].why(), HasSubstr("rings.events.api names 77"));
  lull::v1::ReportReply report = GetSyncs("");
  EXPECT_EQ(report.syncs().total_calls(), 10u);
  EXPECT_EQ(report.losses().events_committed(), 30u);
  EXPECT_EQ(report.losses().events_stored(), 10u);
  EXPECT_EQ(report.losses().lost_relay(), 20u);
}

TEST_F(IngestTest, RefusesAMessageThatIsTooLarge) {
  FakeRelay relay(channel_);
  relay.Send(MakeHello(MakeJobId(1)));
  lull::v1::Batch batch;
  batch.set_sequence(1);
  batch.add_processes()->set_command(std::string(65 << 20, 'x'));
  relay.Send(batch);
  EXPECT_EQ(relay.End(false).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(IngestTest, ServesManyStreamsAtOnce) {
  constexpr uint32_t kStreams = 24;
  std::vector<std::thread> threads;
  std::atomic<uint32_t> done{0};
  for (uint32_t number = 1; number <= kStreams; ++number) {
    threads.emplace_back([&, number] {
      FakeRelay relay(channel_);
      relay.Send(MakeHello(MakeJobId(number)));
      for (uint64_t i = 1; i <= 40; ++i) relay.Send(Syncs(i, (i - 1) * 25, 25));
      done += relay.AwaitAcknowledgement(40) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, kStreams);
  for (uint32_t number = 1; number <= kStreams; ++number) {
    EXPECT_EQ(GetSyncs(MakeJobId(number)).syncs().total_calls(), 1000u);
  }
}

// Two relays of one job, as when a relay is replaced while the old stream lingers.
TEST_F(IngestTest, StoresOnceWhatTwoStreamsOfOneJobSend) {
  std::vector<std::thread> threads;
  for (int copy = 0; copy < 2; ++copy) {
    threads.emplace_back([&] {
      FakeRelay relay(channel_);
      relay.Send(MakeHello(MakeJobId(1)));
      for (uint64_t i = 1; i <= 100; ++i) relay.Send(Syncs(i, (i - 1) * 10, 10));
      EXPECT_TRUE(relay.AwaitAcknowledgement(100));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(GetSyncs("").syncs().total_calls(), 1000u);
}

TEST_F(IngestTest, SurvivesPeersThatLeaveAtAnyMoment) {
  std::mt19937 random(8);
  for (int round = 0; round < 60; ++round) {
    FakeRelay relay(channel_);
    relay.Send(MakeHello(MakeJobId(1)));
    uint64_t batches = random() % 5;
    for (uint64_t i = 1; i <= batches; ++i) relay.Send(Syncs(i, (i - 1) * 500, 500));
    if (random() % 2 == 0) relay.AwaitAcknowledgement(batches);
  }  // the destructor cancels
  FakeRelay relay(channel_);
  relay.Send(MakeHello(MakeJobId(1)));
  for (uint64_t i = 1; i <= 5; ++i) relay.Send(Syncs(i, (i - 1) * 500, 500));
  ASSERT_TRUE(relay.AwaitAcknowledgement(5));
  EXPECT_EQ(GetSyncs("").syncs().total_calls(), 2500u);
}

TEST_F(IngestTest, TellsItsStatusAndEndsWhenAsked) {
  FakeRelay relay(channel_);
  relay.Send(MakeHello(MakeJobId(1)));
  relay.Send(Syncs(1, 0, 10));
  ASSERT_TRUE(relay.AwaitAcknowledgement(1));
  auto control = lull::v1::Control::NewStub(channel_);
  grpc::ClientContext status_context;
  lull::v1::StatusReply reply;
  ASSERT_TRUE(control->GetStatus(&status_context, {}, &reply).ok());
  EXPECT_EQ(reply.relays(), 1u);
  EXPECT_EQ(reply.events_stored(), 10u);
  EXPECT_EQ(reply.protocol_version(), 2u);
  EXPECT_FALSE(collector_->shutdown_requested());
  grpc::ClientContext context;
  lull::v1::ShutdownReply ignored;
  ASSERT_TRUE(control->Shutdown(&context, {}, &ignored).ok());
  EXPECT_TRUE(collector_->shutdown_requested());
}

TEST_F(IngestTest, AnswersUnknownJobsWithNotFound) {
  grpc::ClientContext context;
  lull::v1::ReportRequest request;
  request.set_job("nothing");
  lull::v1::ReportReply reply;
  grpc::Status status =
      lull::v1::Query::NewStub(channel_)->GetReport(&context, request, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
}

// Messages with some of their bytes changed: each is refused, in part or as a whole, or
// stored, none does harm.
TEST_F(IngestTest, SurvivesMessagesThatWereTamperedWith) {
  google::protobuf::LogSilencer quiet;  // about strings that are not UTF-8
  std::mt19937 random(17);
  lull::v1::IngestRequest good;
  *good.mutable_batch() = Syncs(1, 0, 30);
  test::AddCounters(*good.mutable_batch(), 1, 0, 30, 5);
  const std::string bytes = good.SerializeAsString();
  int refused = 0;
  for (int round = 0; round < 150; ++round) {
    std::string spoilt = bytes;
    for (uint32_t i = 0; i < 1 + random() % 8; ++i) {
      spoilt[random() % spoilt.size()] = static_cast<char>(random());
    }
    lull::v1::IngestRequest request;
    if (!request.ParseFromString(spoilt)) continue;
    FakeRelay relay(channel_);
    relay.Send(MakeHello(MakeJobId(1000 + static_cast<uint32_t>(round))));
    relay.SendRequest(request);
    bool taken = relay.End(/*done_writing=*/true).ok() && relay.rejected().empty();
    refused += taken ? 0 : 1;
  }
  EXPECT_GT(refused, 0);
  FakeRelay relay(channel_);
  relay.Send(MakeHello(MakeJobId(1)));
  relay.Send(Syncs(1, 0, 10));
  EXPECT_TRUE(relay.AwaitAcknowledgement(1));
}

}  // namespace
}  // namespace lull::collector
