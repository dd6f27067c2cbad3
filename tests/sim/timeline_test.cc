// The timeline is arithmetic: every start and end is exact to the nanosecond.
#include "tests/sim/engine/timeline.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/sim/engine/exchange.h"

namespace lull::sim {
namespace {

class TimelineTest : public testing::Test {
 protected:
  TimelineTest() {
    config_.latency_ns = 5;
    config_.concurrent_kernels = 2;
    timeline_.emplace(
        config_, Timeline::Listener{[this](const Op& op) {
                                      scheduled_.push_back(&op);
                                      done_when_told_ |= op.done(INT64_MAX);
                                    },
                                    [this](const OpPtr& op) { host_.push_back(op); },
                                    [this](const OpPtr& op) {
                                      exchanges_.push_back(op);
                                      return exchange_end_;
                                    }});
  }

  OpPtr submit(int64_t at, int64_t duration, std::vector<OpPtr> after = {},
               OpKind kind = OpKind::kKernel, CopyKind copy = CopyKind::kD2D) {
    auto op = std::make_shared<Op>();
    op->spec.kind = kind;
    op->spec.copy = copy;
    op->spec.duration_ns = duration;
    op->submit_ns = at;
    if (kind == OpKind::kHostFunction) op->spec.host_function = [] {};
    timeline_->submit(op, after);
    return op;
  }

  Config config_;
  std::optional<Timeline> timeline_;
  std::vector<const Op*> scheduled_;
  std::vector<OpPtr> host_;
  std::vector<OpPtr> exchanges_;
  int64_t exchange_end_ = kUnscheduled;
  bool done_when_told_ = false;
};

TEST_F(TimelineTest, StartsAnOperationOneLatencyAfterItsSubmission) {
  OpPtr op = submit(100, 30);
  EXPECT_EQ(op->start_ns, 105);
  EXPECT_EQ(op->end_ns, 135);
  ASSERT_EQ(scheduled_.size(), 1u);
  EXPECT_EQ(scheduled_[0], op.get());
}

TEST_F(TimelineTest, StartsAnOperationWhenTheLastOfItsDependenciesEnds) {
  OpPtr a = submit(0, 100);
  OpPtr b = submit(0, 40);
  OpPtr c = submit(10, 7, {a, nullptr, b});
  EXPECT_EQ(c->start_ns, 105);
  EXPECT_EQ(c->end_ns, 112);
}

TEST_F(TimelineTest, RunsAsManyKernelsAtOnceAsConfigured) {
  EXPECT_EQ(submit(0, 100)->start_ns, 5);
  EXPECT_EQ(submit(0, 100)->start_ns, 5);
  EXPECT_EQ(submit(0, 100)->start_ns, 105);
}

TEST_F(TimelineTest, HasOneCopyEngineForEachDirection) {
  EXPECT_EQ(submit(0, 50, {}, OpKind::kCopy, CopyKind::kH2D)->start_ns, 5);
  EXPECT_EQ(submit(0, 50, {}, OpKind::kCopy, CopyKind::kH2D)->start_ns, 55);
  EXPECT_EQ(submit(0, 50, {}, OpKind::kCopy, CopyKind::kD2H)->start_ns, 5);
  EXPECT_EQ(submit(0, 50, {}, OpKind::kCopy, CopyKind::kD2D)->start_ns, 5);
  EXPECT_EQ(submit(0, 50)->start_ns, 5) << "kernels run beside copies";
}

TEST_F(TimelineTest, SchedulesWhatFollowsAHostFunctionWhenItReturns) {
  OpPtr before = submit(0, 20);
  OpPtr host = submit(0, 0, {before}, OpKind::kHostFunction);
  OpPtr next = submit(0, 10, {host});
  OpPtr last = submit(0, 10, {next});
  ASSERT_EQ(host_.size(), 1u);
  EXPECT_EQ(host->ready_ns, 25);
  EXPECT_EQ(host->end_ns, kUnscheduled);
  EXPECT_EQ(last->end_ns, kUnscheduled);
  timeline_->finish(host, 30, 1000);
  EXPECT_EQ(host->start_ns, 30);
  EXPECT_EQ(next->start_ns, 1000);
  EXPECT_EQ(last->start_ns, 1010);
}

TEST_F(TimelineTest, RecordsAnOperationBeforeWhoeverWaitsForItGoesOn) {
  OpPtr host = submit(0, 0, {}, OpKind::kHostFunction);
  OpPtr next = submit(0, 10, {host});
  timeline_->finish(host, 30, 1000);
  EXPECT_EQ(scheduled_.size(), 2u);
  EXPECT_FALSE(done_when_told_);
  EXPECT_TRUE(next->done(1010));
  EXPECT_FALSE(next->done(1009));
}

TEST_F(TimelineTest, AppliesEffectsInTheOrderOfScheduling) {
  std::string order;
  auto effect = [&](char c, std::vector<OpPtr> after, OpKind kind) {
    auto op = std::make_shared<Op>();
    op->spec.kind = kind;
    op->spec.duration_ns = 1;
    if (kind == OpKind::kHostFunction) {
      op->spec.host_function = [] {};
    } else {
      op->spec.effect = [&order, c] { order += c; };
    }
    timeline_->submit(op, after);
    return op;
  };
  OpPtr host = effect('h', {}, OpKind::kHostFunction);
  OpPtr b = effect('b', {host}, OpKind::kCopy);
  effect('c', {host}, OpKind::kCopy);
  effect('d', {b}, OpKind::kCopy);
  effect('a', {}, OpKind::kCopy);
  EXPECT_EQ(order, "a");
  timeline_->finish(host, 0, 10);
  EXPECT_EQ(order, "abdc");
}

TEST_F(TimelineTest, AnExchangeStartsInItsTurnAndEndsWhenOthersSay) {
  static const Exchange exchange{};
  OpPtr before = submit(0, 100);
  auto op = std::make_shared<Op>();
  op->spec.kind = OpKind::kKernel;
  op->spec.exchange = &exchange;
  timeline_->submit(op, {&before, 1});
  ASSERT_EQ(exchanges_.size(), 1u);
  EXPECT_EQ(op->start_ns, 105);
  EXPECT_FALSE(op->done(INT64_MAX));
  OpPtr after = submit(10, 7, {op});
  EXPECT_EQ(scheduled_.size(), 1u);
  timeline_->finish(op, op->start_ns, 500);
  EXPECT_EQ(op->end_ns, 500);
  EXPECT_EQ(after->start_ns, 500);
}

TEST_F(TimelineTest, AnExchangeWhoseEndIsKnownTakesNoSlot) {
  static const Exchange exchange{};
  exchange_end_ = 400;
  auto op = std::make_shared<Op>();
  op->spec.kind = OpKind::kKernel;
  op->spec.exchange = &exchange;
  timeline_->submit(op, {});
  EXPECT_EQ(op->end_ns, 400);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(submit(0, 100)->start_ns, 5);
}

}  // namespace
}  // namespace lull::sim
