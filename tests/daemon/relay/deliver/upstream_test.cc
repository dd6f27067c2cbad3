// The upstream against a collector that does not take all.
#include "daemon/relay/deliver/upstream.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <memory>

#include "absl/time/clock.h"
#include "daemon/base/runtime_directory.h"
#include "tests/daemon/relay/fake_collector.h"

namespace lull::relay {
namespace {

constexpr uint64_t kSpoolLimit = 16u << 20;

class UpstreamTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/lull-upstream-test-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    root_ = path;
    collector_ = std::make_unique<FakeCollector>(Address());
    spool_ = *Spool::Open(root_ + "/spool/job", kSpoolLimit);
  }
  void TearDown() override {
    upstream_.reset();
    collector_.reset();
    ASSERT_TRUE(RemoveTree(root_).ok());
  }

  std::string Address() const { return "unix:" + root_ + "/collector"; }

  // Batches of one event each; the first one names the process.
  void Append(int count) {
    for (int i = 0; i < count; ++i) {
      lull::v1::Batch batch;
      if (appended_ == 0) batch.add_processes()->set_key(1);
      auto* run = batch.add_rings();
      run->set_process_key(1);
      auto* events = run->mutable_events();
      events->set_first_position(appended_);
      events->add_start_delta_ns(0);
      events->add_duration_ns(0);
      events->add_type(2);
      events->add_flags(0);
      events->add_api(0);
      events->add_python_stack(0);
      events->add_native_stack(0);
      events->add_arg0(appended_);
      events->add_arg1(0);
      events->add_arg2(0);
      events->add_tid(1);
      ++appended_;
      ASSERT_TRUE(spool_->Append(&batch).ok());
    }
  }

  void StartUpstream(UpstreamTiming timing = {}) {
    lull::v1::Hello hello;
    hello.mutable_job()->set_id("0123456789abcdef0123456789abcdef");
    upstream_ = std::make_unique<Upstream>(CollectorAddress{Address(), "", ""}, hello,
                                           spool_.get(), nullptr, timing);
  }

  bool AwaitDelivery() {
    absl::Time deadline = absl::Now() + absl::Seconds(30);
    while (spool_->acknowledged() < spool_->last_sequence() && absl::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(5));
    }
    return spool_->acknowledged() == spool_->last_sequence();
  }

  std::string root_;
  std::unique_ptr<FakeCollector> collector_;
  std::unique_ptr<Spool> spool_;
  std::unique_ptr<Upstream> upstream_;
  uint64_t appended_ = 0;
};

TEST_F(UpstreamTest, SetsABatchAsideThatIsRefusedAndDeliversAllOthers) {
  collector_->Refuse([](const lull::v1::Batch& batch) {
    return batch.rings_size() > 0 && batch.rings(0).events().arg0(0) % 20 == 7;
  });
  collector_->Start();
  Append(50);
  StartUpstream();
  ASSERT_TRUE(AwaitDelivery());
  Collected got = collector_->collected();
  EXPECT_EQ((got.rings[{1, 0}].values.size()), 47u);
  EXPECT_EQ((got.rings[{1, 0}].skipped), 3u);
  EXPECT_EQ(got.set_aside, 3u);
  EXPECT_LE(got.refused, 3 * (kRefusalsOfABatch + 1));
  EXPECT_EQ(upstream_->status().batches_set_aside, 3u);
  EXPECT_FALSE(upstream_->status().refused);
  for (int sequence : {8, 28, 48}) {
    std::string file =
        root_ + "/spool/refused/job-" + std::to_string(sequence) + ".batch";
    EXPECT_EQ(access(file.c_str(), F_OK), 0) << file;
  }
}

TEST_F(UpstreamTest, GoesOnAlsoWhenNothingOfABatchIsTaken) {
  collector_->Refuse(
      [](const lull::v1::Batch& batch) { return batch.sequence() == 3; });
  collector_->Start();
  Append(5);
  StartUpstream();
  ASSERT_TRUE(AwaitDelivery());
  EXPECT_EQ((collector_->collected().rings[{1, 0}].values.size()), 4u);
}

TEST_F(UpstreamTest, KeepsWhatACollectorCannotTakeNow) {
  collector_->BreakAfter(1);  // UNAVAILABLE, again and again
  collector_->Start();
  Append(3);
  UpstreamTiming timing;
  timing.longest_backoff = absl::Milliseconds(60);
  StartUpstream(timing);
  absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (collector_->collected().streams < 10 && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_EQ(upstream_->status().batches_set_aside, 0u);
  EXPECT_EQ(spool_->acknowledged(), 0u);
  collector_->BreakAfter(0);
  ASSERT_TRUE(AwaitDelivery());
  EXPECT_EQ((collector_->collected().rings[{1, 0}].values.size()), 3u);
}

TEST_F(UpstreamTest, InAHurryDoesNotSitOutALongBackoff) {
  Append(3);
  UpstreamTiming timing;
  timing.first_backoff = timing.longest_backoff = absl::Minutes(10);
  timing.hurry = absl::Minutes(1);
  StartUpstream(timing);
  absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (upstream_->status().last_error.ok() && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  upstream_->Hurry();
  absl::SleepFor(absl::Milliseconds(300));  // the first try comes too early
  collector_->Start();
  EXPECT_TRUE(AwaitDelivery());
}

}  // namespace
}  // namespace lull::relay
