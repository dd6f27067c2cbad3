// Exports whose clients do not read.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "daemon/collector/serve/collector.h"
#include "query.grpc.pb.h"
#include "tests/daemon/collector/fake_relay.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/storage/temporary_directory.h"

namespace lull::collector {
namespace {

constexpr size_t kEvents = 100'000;  // 30 MB of JSON: more than lies on the way

class ExportStream : public ::testing::Test {
 protected:
  void Start(absl::Duration patience) {
    CollectorConfig config;
    config.listen = *ParseListenAddress("unix:" + (directory_ / "run/c.sock"));
    config.database = directory_ / "data/a.db";
    config.export_patience = patience;
    auto started = Collector::Start(config);
    ASSERT_TRUE(started.ok()) << started.status();
    collector_ = *std::move(started);
    auto channel =
        grpc::CreateChannel(collector_->address(), grpc::InsecureChannelCredentials());
    query_ = v1::Query::NewStub(channel);
    test::FakeRelay relay(channel);
    relay.Send(test::MakeHello(test::MakeJobId(1)));
    lull::v1::Batch batch;
    batch.set_sequence(1);
    *batch.add_processes() = test::MakeProcess(1, 101, 0);
    test::AddStacks(batch, 1);
    std::vector<test::TestEvent> events(kEvents);
    for (size_t i = 0; i < kEvents; ++i) {
      events[i].type = v1::EVENT_TYPE_SYNC;
      events[i].api = test::kApiSync;
      events[i].python = 1;
      events[i].start_ns += 2000 * i;
      events[i].duration_ns = 1000;
    }
    test::AddRun(batch, 1, 0, 0, events);
    relay.Send(batch);
    ASSERT_TRUE(relay.AwaitAcknowledgement(1));
  }

  // An export of which one piece is read.
  struct Half {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::ExportPiece>> reader;
    bool admitted = false;

    // Reads what there is.
    grpc::Status Finish() {
      v1::ExportPiece piece;
      while (reader->Read(&piece)) {
      }
      return reader->Finish();
    }
  };
  std::unique_ptr<Half> Begin() {
    auto half = std::make_unique<Half>();
    v1::ExportRequest request;
    request.set_format(v1::EXPORT_FORMAT_CHROME);
    half->reader = query_->Export(&half->context, request);
    v1::ExportPiece piece;
    half->admitted = half->reader->Read(&piece);
    return half;
  }

  test::TemporaryDirectory directory_;
  std::unique_ptr<Collector> collector_;
  std::unique_ptr<v1::Query::Stub> query_;
};

TEST_F(ExportStream, LeavesThreadsForOtherCalls) {
  ASSERT_NO_FATAL_FAILURE(Start(absl::Hours(1)));
  std::vector<std::unique_ptr<Half>> halves;
  for (int i = 0; i < 100; ++i) {
    halves.push_back(Begin());
    if (!halves.back()->admitted) break;
  }
  EXPECT_LT(halves.size(), 64u);
  const grpc::Status refused = halves.back()->Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
      << refused.error_message();
  halves.pop_back();
  EXPECT_GT(halves.size(), 1u);
  grpc::ClientContext context;
  v1::ListJobsReply jobs;
  const grpc::Status listed = query_->ListJobs(&context, {}, &jobs);
  EXPECT_TRUE(listed.ok()) << listed.error_message();
  EXPECT_EQ(jobs.jobs_size(), 1);
  for (auto& half : halves) {  // they may take their time
    const grpc::Status done = half->Finish();
    EXPECT_TRUE(done.ok()) << done.error_message();
  }
}

TEST_F(ExportStream, EndsWhenNobodyReads) {
  ASSERT_NO_FATAL_FAILURE(Start(absl::Milliseconds(200)));
  std::vector<std::unique_ptr<Half>> halves;
  for (int i = 0; i < 2; ++i) halves.push_back(Begin());
  // A private collector ends when it is idle: nothing is under way any more.
  for (int i = 0; i < 6000 && collector_->IdleTime() == absl::ZeroDuration(); ++i) {
    usleep(10'000);
  }
  EXPECT_GT(collector_->IdleTime(), absl::ZeroDuration());
  for (auto& half : halves) {
    EXPECT_EQ(half->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
}

}  // namespace
}  // namespace lull::collector
