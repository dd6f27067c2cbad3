// The relay's side of reading clocks, against a collector whose clock is another.
#include "daemon/relay/deliver/clock_watch.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "absl/time/clock.h"

namespace lull::relay {
namespace {

constexpr int64_t kDay = 86'400'000'000'000;

class OtherClock final : public lull::v1::Ingest::Service {
 public:
  grpc::Status ReadClock(grpc::ServerContext*, const lull::v1::ClockRequest*,
                         lull::v1::ClockReply* reply) override {
    const int call = calls;
    if (call % 3 == 0) absl::SleepFor(absl::Milliseconds(2));  // the way there
    reply->set_received_ns(MonotonicNs() + static_cast<uint64_t>(kDay));
    reply->set_answered_ns(MonotonicNs() + static_cast<uint64_t>(kDay));
    if (call % 5 == 4) absl::SleepFor(absl::Milliseconds(3));  // the way back
    reply->set_boot_id(identity.boot_id);
    reply->set_time_namespace(identity.time_namespace);
    ++calls;  // last: who reads it afterwards has seen the whole call, also for TSan
    return grpc::Status::OK;
  }
  ClockIdentity identity{"another", 7};
  std::atomic<int> calls = 0;  // calls come one after the other, each on its own thread
};

class ClockWatchTest : public ::testing::Test {
 protected:
  void Serve(grpc::Service& service) {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service);
    server_ = builder.BuildAndStart();
    stub_ = lull::v1::Ingest::NewStub(server_->InProcessChannel({}));
  }

  static lull::v1::JobInfo JobOf(const ClockIdentity& identity) {
    lull::v1::JobInfo job;
    job.set_boot_id(identity.boot_id);
    job.set_time_namespace(identity.time_namespace);
    return job;
  }

  const ClockIdentity own_{"own", 1};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<lull::v1::Ingest::Stub> stub_;
};

TEST_F(ClockWatchTest, ReadsWithinABoundThatHolds) {
  OtherClock service;
  Serve(service);
  ClockWatch watch(JobOf(own_), "", own_);
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(i > 0 || watch.Due());
    const auto reading = watch.Read(*stub_);
    ASSERT_TRUE(reading.has_value());
    EXPECT_FALSE(watch.Due());
    EXPECT_TRUE(watch.reads());
    EXPECT_LE(reading->low_ns(), kDay);
    EXPECT_GE(reading->high_ns(), kDay);
    EXPECT_EQ(reading->boot_id(), "another");
    EXPECT_EQ(reading->time_namespace(), 7u);
  }
  EXPECT_GE(service.calls, 20);
}

TEST_F(ClockWatchTest, StopsWhereTheCollectorHasOurClock) {
  OtherClock service;
  service.identity = own_;
  Serve(service);
  ClockWatch watch(JobOf(own_), "", own_);
  EXPECT_FALSE(watch.Read(*stub_).has_value());
  EXPECT_EQ(service.calls, 1);
  EXPECT_FALSE(watch.reads());
  EXPECT_FALSE(watch.Due());
}

TEST_F(ClockWatchTest, StopsAtACollectorThatIsTooOld) {
  lull::v1::Ingest::Service older;
  Serve(older);
  ClockWatch watch(JobOf(own_), "", own_);
  EXPECT_FALSE(watch.Read(*stub_).has_value());
  EXPECT_FALSE(watch.Due());
}

// What an earlier boot left, or an imported trace.
TEST_F(ClockWatchTest, ReadsNothingForTimesOfAnotherClock) {
  EXPECT_FALSE(ClockWatch(JobOf({"before", 1}), "", own_).Due());
  EXPECT_FALSE(ClockWatch(JobOf({"own", 2}), "", own_).Due());
  EXPECT_FALSE(ClockWatch({}, "", own_).Due());
  EXPECT_TRUE(ClockWatch(JobOf(own_), "", own_).Due());
}

}  // namespace
}  // namespace lull::relay
