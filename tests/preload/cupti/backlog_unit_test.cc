// When a window may count: the device has come to what was launched in it.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "preload/cupti/backlog.h"

namespace lull::cupti {
namespace {

constexpr abi::Ref kMain = 8, kSide = 16;

// A window that began at 1 ms.
class RoundTest : public testing::Test {
 protected:
  RoundTest() { round_->begin(1'000'000, false, 0); }
  void launched(uint32_t id, uint64_t start_ns = 1'001'000) {
    round_->saw_call(id, start_ns, Submits::kKernels);
  }
  void called(uint32_t id, Submits what, uint64_t start_ns = 1'001'000) {
    round_->saw_call(id, start_ns, what);
  }
  void ran(uint32_t id, uint64_t start_ns, abi::Ref stream = kMain) {
    round_->saw_operation(id, start_ns, stream, false);
  }
  void copied(uint32_t id, uint64_t start_ns, abi::Ref stream = kMain) {
    round_->saw_operation(id, start_ns, stream, true);
  }
  void end() { round_->end(1'100'000); }
  uint64_t since() const { return round_->caught_up_ns(); }

  std::unique_ptr<Round> round_ = std::make_unique<Round>();
};

TEST_F(RoundTest, WaitsForAllThatItLaunchedAndBeginsWithTheFirst) {
  launched(70);
  launched(71);
  ran(70, 2'001'000);
  ran(71, 2'003'500);
  EXPECT_EQ(since(), 0u) << "there may be more in it";
  end();
  EXPECT_EQ(since(), 2'001'000u);
  launched(72, 1'200'000);
  EXPECT_EQ(since(), 2'001'000u) << "of the next round";
}

TEST_F(RoundTest, IsNotOverWhereASideStreamRunsAtOnce) {
  launched(70);
  launched(71);
  ran(71, 1'002'000, kSide);
  end();
  EXPECT_EQ(since(), 0u) << "70 was launched and has not ended";
  ran(70, 5'000'000);
  EXPECT_EQ(since(), 5'000'000u) << "the last stream to come to it";
}

TEST_F(RoundTest, StreamsThatBeginLaterDoNotCount) {
  launched(70);
  end();
  launched(90, 1'200'000);
  ran(90, 6'000'000, kSide);
  EXPECT_EQ(since(), 0u);
  ran(70, 2'000'000);
  EXPECT_EQ(since(), 2'000'000u);
}

TEST_F(RoundTest, IsOfNoUseWithoutALaunch) {
  called(70, Submits::kNothing);
  end();
  EXPECT_FALSE(round_->ended());
  launched(71, 1'150'000);
  ran(71, 1'160'000);
  EXPECT_EQ(since(), 0u);
  round_->end(1'200'000);
  EXPECT_EQ(since(), 1'160'000u);
}

TEST_F(RoundTest, WhatWasLaunchedBeforeSaysNothing) {
  called(60, Submits::kKernels, 799'000);
  ran(60, 1'500'000);
  ran(59, 1'400'000, kSide);
  launched(70);
  ran(70, 799'000);  // ran before the window
  ran(69, 1'600'000);
  end();
  EXPECT_EQ(since(), 0u);
  ran(70, 2'000'000);
  EXPECT_EQ(since(), 2'000'000u);
}

TEST_F(RoundTest, AKernelOfAnEarlierWindowKnownBeforeAnyCallSaysNothing) {
  ran(60, 1'100'000);
  launched(70);
  end();
  EXPECT_EQ(since(), 0u);
  ran(70, 2'000'000);
  EXPECT_EQ(since(), 2'000'000u);
}

TEST_F(RoundTest, KernelsMayBeKnownBeforeTheirCalls) {
  ran(75, 1'300'000);
  ran(74, 1'200'000);
  launched(75);
  launched(74);
  end();
  EXPECT_EQ(since(), 1'200'000u);
}

TEST_F(RoundTest, AnEarlierThreadsCallsMayBeKnownAfterItsKernels) {
  launched(80);
  ran(70, 2'000'000);
  ran(80, 3'000'000);
  launched(70);
  EXPECT_FALSE(round_->has_unended());
  end();
  EXPECT_EQ(since(), 2'000'000u);
}

// One thread's kernels and calls of another one are told before its own calls.
TEST_F(RoundTest, AStreamWhoseKernelsAreKnownBeforeItsCallsIsWaitedForToo) {
  launched(80);
  ran(70, 5'000'000, kSide);
  ran(80, 2'000'000);
  launched(70);
  end();
  EXPECT_EQ(since(), 5'000'000u);
}

TEST_F(RoundTest, NorDoesAKernelOfBeforeHideTheFirstOneOfItsStream) {
  ran(60, 1'300'000, kSide);  // nobody knows yet that it was launched before
  ran(70, 5'000'000, kSide);
  launched(71);
  ran(71, 2'000'000);
  launched(70);
  end();
  EXPECT_EQ(since(), 5'000'000u);
}

TEST_F(RoundTest, IdsBeginAnew) {
  launched(2, 1'002'000);
  launched(UINT32_MAX - 1);
  ran(UINT32_MAX - 3, 1'500'000);
  ran(2, 1'700'000);
  end();
  EXPECT_EQ(since(), 0u);
  ran(UINT32_MAX - 1, 1'600'000);
  EXPECT_EQ(since(), 1'600'000u);
}

TEST_F(RoundTest, ACallRightAfterTheStartMaySeemToBeginBeforeIt) {
  launched(70, 996'000);
  launched(71);
  ran(70, 1'010'000);
  ran(71, 1'300'000);
  end();
  EXPECT_EQ(since(), 1'010'000u);
}

TEST_F(RoundTest, CopiesCountWhereNothingElseRuns) {
  called(70, Submits::kCopy);
  called(71, Submits::kCopy);
  copied(71, 1'200'000, kSide);
  end();
  EXPECT_EQ(since(), 0u);
  copied(70, 3'000'000);
  EXPECT_EQ(since(), 3'000'000u);
}

TEST_F(RoundTest, CopiesBesideKernelsDoNotCount) {
  called(69, Submits::kCopy);  // of no bytes: there is no record
  called(70, Submits::kCopy);
  launched(71);
  copied(70, 9'000'000, kSide);
  ran(71, 2'000'000);
  end();
  EXPECT_EQ(since(), 2'000'000u);
}

TEST_F(RoundTest, WhatIsCapturedDoesNotRun) {
  called(70, Submits::kCaptureBegin);
  launched(71);
  called(72, Submits::kCaptureEnd);
  launched(73);
  end();
  EXPECT_EQ(since(), 0u) << "the graph";
  ran(73, 2'000'000);
  EXPECT_EQ(since(), 2'000'000u);
}

TEST_F(RoundTest, ACaptureMayLastLonger) {
  launched(69);
  called(70, Submits::kCaptureBegin);
  launched(71);
  end();
  EXPECT_EQ(since(), 0u);
  ran(69, 2'000'000);
  EXPECT_EQ(since(), 2'000'000u);
}

TEST_F(RoundTest, ACaptureMayHaveBegunBefore) {
  launched(69);
  called(70, Submits::kCaptureEnd);
  launched(71);
  end();
  EXPECT_EQ(since(), 0u);
  ran(71, 2'000'000);
  EXPECT_EQ(since(), 2'000'000u);
}

TEST_F(RoundTest, MoreStreamsThanItKnowsBeginWithTheLast) {
  for (uint32_t i = 0; i < Round::kStreams + 2; ++i) {
    launched(100 + i);
    ran(100 + i, 2'000'000 + i, 8 + i);
  }
  end();
  EXPECT_EQ(since(), 2'000'000u + Round::kStreams + 1);
  ran(1'000, 7'000'000, 0);
  EXPECT_EQ(since(), 7'000'000u) << "whose stream nobody knows";
}

TEST_F(RoundTest, KnowsWhatOfTheWindowHasNotEnded) {
  EXPECT_FALSE(round_->has_unended());
  launched(70);
  ran(70, 2'000'000);
  end();
  EXPECT_FALSE(round_->has_unended());
  launched(90, 1'500'000);
  EXPECT_EQ(since(), 2'000'000u) << "later than the round";
  EXPECT_TRUE(round_->has_unended());
  ran(90, 3'000'000);
  EXPECT_FALSE(round_->has_unended());
  launched(91, 1'600'000);
  called(92, Submits::kCaptureBegin, 1'700'000);
  EXPECT_FALSE(round_->has_unended()) << "nobody knows";
}

// CUPTI tells of the nodes of a graph, and not how many there are.
class GraphTest : public RoundTest {
 protected:
  static constexpr uint32_t kGraph = 9, kOther = 9 + GraphNodes::kGraphs;
  // A node of the launch `id` that ends at `end_ns`.
  void node(uint32_t id, uint64_t end_ns, uint32_t graph = kGraph,
            abi::Ref stream = kMain) {
    ran(id, end_ns - 1'000, stream);
    round_->saw_node(graph, id, end_ns - 1'000, end_ns, stream);
  }
  bool is_sure() const { return round_->unsure_since() == UINT64_MAX; }
  void next_window(uint64_t begin_ns) {
    auto next = std::make_unique<Round>();
    next->begin(begin_ns, false, 0, round_.get());
    round_ = std::move(next);
  }
};

TEST_F(GraphTest, TheFirstLaunchHasNoKnownEnd) {
  EXPECT_TRUE(is_sure());
  launched(70);
  node(70, 2'000'000);
  EXPECT_FALSE(round_->has_unended()) << "it has begun";
  EXPECT_EQ(round_->unsure_since(), 2'000'000u);
  node(70, 3'000'000);
  EXPECT_EQ(round_->unsure_since(), 3'000'000u);
}

TEST_F(GraphTest, ALaunchHasWhatAnEarlierOneHad) {
  for (uint32_t id : {70u, 80u}) {
    for (uint32_t i = 0; i < 3; ++i) node(id, id * 100'000 + i);
  }
  EXPECT_TRUE(is_sure());
  node(90, 9'000'000);
  node(90, 9'100'000);
  node(80, 8'100'000);  // told late
  EXPECT_EQ(round_->unsure_since(), 9'100'000u);
  node(90, 9'200'000);
  EXPECT_TRUE(is_sure());
  node(2, 9'900'000);
  EXPECT_TRUE(is_sure()) << "long ago";
}

TEST_F(GraphTest, SizesStayKnownInTheNextWindow) {
  for (uint32_t id : {70u, 80u}) {
    for (uint32_t i = 0; i < 3; ++i) node(id, id * 100'000 + i);
  }
  next_window(10'000'000);
  EXPECT_TRUE(is_sure());
  node(170, 11'000'000);
  node(170, 11'100'000);
  EXPECT_FALSE(is_sure());
  node(170, 11'200'000);
  EXPECT_TRUE(is_sure());
  next_window(20'000'000);
  next_window(30'000'000);  // it is not launched any more
  node(270, 31'000'000, kOther);
  EXPECT_FALSE(is_sure());
}

// Both have their place where one of them belongs.
TEST_F(GraphTest, AGraphStaysKnownWhereItsNeighbourIsNotLaunchedAnyMore) {
  for (uint32_t graph : {kGraph, kOther}) {
    for (uint32_t id : {70u, 80u}) {
      for (uint32_t i = 0; i < 3; ++i) node(id + graph, 2'000'000 + i, graph);
    }
  }
  for (uint32_t window = 1; window <= 3; ++window) {
    next_window(window * 10'000'000);
    for (uint32_t i = 0; i < 3; ++i) {
      node(window * 1000, window * 10'000'000 + 1'000'000 + i, kOther);
    }
    EXPECT_TRUE(is_sure()) << window;
  }
}

TEST_F(GraphTest, TheWindowAfterKnowsWhatTheOneBeforeHad) {
  Backlog backlog;
  auto launch = [&](uint32_t id, int nodes) {
    Backlog::Report report(&backlog);
    for (int i = 0; i < nodes; ++i) {
      const uint64_t start = id * 100'000 + static_cast<uint64_t>(i) * 1'000;
      report.round()->saw_operation(id, start, kMain, false);
      report.round()->saw_node(kGraph, id, start, start + 500, kMain);
    }
  };
  backlog.begin(1'000'000, false);
  launch(70, 3);
  launch(80, 3);
  EXPECT_FALSE(backlog.has_unended());
  backlog.begin(10'000'000, false);
  launch(170, 3);
  EXPECT_FALSE(backlog.has_unended());
  launch(180, 2);
  EXPECT_TRUE(backlog.has_unended());
  backlog.forget();  // ids may be those of others
  backlog.begin(20'000'000, false);
  launch(270, 3);
  EXPECT_TRUE(backlog.has_unended());
}

TEST_F(GraphTest, WhatRanLaterOnItsStreamShowsItsEnd) {
  node(70, 2'000'000);
  ran(71, 3'000'000, kSide);
  EXPECT_FALSE(is_sure());
  ran(69, 3'000'000);
  EXPECT_FALSE(is_sure());
  copied(72, 3'000'000);
  EXPECT_TRUE(is_sure());
}

TEST_F(GraphTest, EachGraphHasItsOwn) {
  for (uint32_t id : {70u, 80u}) node(id, id * 100'000);
  node(81, 8'200'000, kOther, kSide);
  EXPECT_EQ(round_->unsure_since(), 8'200'000u) << "it shares a place with the first";
  node(90, 9'000'000);
  EXPECT_EQ(round_->unsure_since(), 8'200'000u);
  ran(91, 9'000'000, kSide);
  EXPECT_TRUE(is_sure());
}

TEST_F(GraphTest, AWaitForTheDeviceShowsTheEndOfAll) {
  node(70, 2'000'000);
  round_->all_ended();
  EXPECT_TRUE(is_sure());
  node(70, 2'100'000);
  EXPECT_TRUE(is_sure()) << "told afterwards";
  round_->begin(10'000'000, false, 0);
  node(170, 11'000'000);
  EXPECT_FALSE(is_sure());
}

TEST_F(GraphTest, IdsOfLaunchesBeginAnew) {
  for (uint32_t id : {UINT32_MAX, 1u}) {
    for (uint32_t i = 0; i < 2; ++i) node(id, 2'000'000 + i);
  }
  EXPECT_TRUE(is_sure());
  node(3, 3'000'000);
  EXPECT_FALSE(is_sure());
}

TEST_F(GraphTest, NodesOfBeforeSayNothing) {
  round_->begin(10'000'000, false, uint64_t{1} << 32 | 50);
  node(50, 11'000'000);
  node(60, 9'000'000);
  EXPECT_TRUE(is_sure());
}

TEST_F(GraphTest, MoreGraphsThanItKnowsEndWithTheirFirstNode) {
  for (uint32_t i = 0; i < 2 * GraphNodes::kGraphs; ++i) {
    node(100 + i, 2'000'000 + i, 1 + i);
  }
  EXPECT_TRUE(is_sure()) << "but the last one, on one stream";
}

TEST_F(RoundTest, CallsWhileItIsSwitchedOnOrOffMayLeaveNoRecord) {
  launched(70, 999'000);
  launched(71);
  ran(71, 2'000'000);
  round_->stop(5'000'000);
  launched(80, 4'900'000);
  EXPECT_FALSE(round_->has_unended());
  end();
  EXPECT_EQ(since(), 2'000'000u);
}

TEST_F(RoundTest, LooksAtTheFirstCallsOfAVeryLongOne) {
  launched(70);
  launched(70 + Round::kIds - Round::kIdsBefore - 1);
  launched(70 + Round::kIds - Round::kIdsBefore);
  ran(70, 2'000'000);
  end();
  EXPECT_EQ(since(), 0u);
  ran(70 + Round::kIds - Round::kIdsBefore - 1, 2'000'000);
  EXPECT_EQ(since(), 2'000'000u);
}

TEST(Round, LongTimesAreRatherTooLong) {
  constexpr uint64_t kSecond = 1'000'000'000;
  struct Case {
    uint64_t start_ns, told_ns;
  };
  for (Case one :
       {Case{1'000, 1'000}, Case{2'147'483'647, 2'147'483'647},
        Case{2'147'483'648, 2'147'484'000}, Case{60 * kSecond, 60 * kSecond + 1'000},
        Case{UINT64_MAX, 1'000 * uint64_t{INT32_MAX}}}) {
    auto round = std::make_unique<Round>();
    round->begin(1'000, false, 0);  // as early as can be
    round->saw_call(1, 1'000, Submits::kKernels);
    round->saw_operation(1, one.start_ns, kMain, false);
    round->end(2'000);
    EXPECT_EQ(round->caught_up_ns(), one.told_ns) << one.start_ns;
  }
}

// A device of in-order streams with work from before a window, threads whose calls are
// told buffer by buffer, and kernels that are told before or after their calls.
class RandomProgram {
 public:
  explicit RandomProgram(uint32_t seed) : random_(seed) {
    id_ = pick(0, 2) == 0 ? UINT32_MAX - pick(0, 300) : pick(1, 100'000);
    free_ns_.resize(pick(1, pick(0, 7) == 0 ? 40 : 6));
    threads_ = pick(1, 5);
    for (uint32_t i = pick(0, 60); i > 0; --i) launch(false);
    if (now_ns_ >= kBegin) now_ns_ = kBegin - 1;
    const bool known = pick(0, 2) != 0;  // there was a window before
    round_->begin(kBegin, false, known ? uint64_t{1} << 32 | (id_ - pick(0, 20)) : 0);
    now_ns_ = kBegin;
    for (uint32_t i = pick(1, 60); i > 0; --i) launch(true);
    round_end_ns_ = now_ns_ + 1;
    for (uint32_t i = pick(0, 60); i > 0; --i) launch(true);
    tell();
  }

  // When all streams of the round had done what was launched before the window.
  uint64_t truth() const {
    std::set<uint32_t> shown;
    for (const Launch& one : launches_) {
      if (one.in_round) shown.insert(one.stream);
    }
    uint64_t last = 0;
    for (const Launch& one : launches_) {
      if (!one.in_window && shown.count(one.stream) > 0)
        last = std::max(last, one.end_ns);
    }
    return last;
  }
  uint64_t told() const { return round_->caught_up_ns(); }

 private:
  static constexpr uint64_t kBegin = 1'000'000'000;
  struct Launch {
    uint32_t id, stream, thread;
    uint64_t call_ns, start_ns, end_ns;
    bool in_window, in_round;
  };

  uint32_t pick(uint32_t low, uint32_t high) {
    return std::uniform_int_distribution<uint32_t>(low, high)(random_);
  }
  void launch(bool in_window) {
    now_ns_ += pick(1, 20'000);
    id_ += pick(1, 2);
    auto stream = pick(0, static_cast<uint32_t>(free_ns_.size()) - 1);
    uint64_t start = std::max(now_ns_ + 500, free_ns_[stream]);
    free_ns_[stream] = start + pick(1, 400'000);
    launches_.push_back({id_, stream, pick(0, threads_ - 1), now_ns_, start,
                         free_ns_[stream], in_window, false});
  }
  // What was launched before leaves no record.
  void tell() {
    struct Record {
      uint64_t told_ns;
      bool call;
      Launch* of;
    };
    std::vector<Record> records;
    std::vector<uint64_t> delays;
    for (uint32_t i = 0; i < threads_; ++i) delays.push_back(pick(0, 3'000'000));
    for (Launch& one : launches_) {
      if (!one.in_window) continue;
      records.push_back({one.call_ns + delays[one.thread], true, &one});
      records.push_back({one.end_ns + pick(0, 2'000'000), false, &one});
    }
    std::stable_sort(
        records.begin(), records.end(),
        [](const Record& a, const Record& b) { return a.told_ns < b.told_ns; });
    const uint32_t end_after = pick(0, static_cast<uint32_t>(records.size()));
    uint32_t told = 0;
    for (const Record& record : records) {
      if (told++ >= end_after) round_->end(round_end_ns_);
      Launch& one = *record.of;
      if (record.call) {
        one.in_round = !round_->ended() || one.call_ns < round_end_ns_;
        round_->saw_call(one.id, one.call_ns, Submits::kKernels);
      } else {
        round_->saw_operation(one.id, one.start_ns, 8 * (one.stream + 1), false);
      }
    }
    round_->end(round_end_ns_);
  }

  std::mt19937 random_;
  std::unique_ptr<Round> round_ = std::make_unique<Round>();
  uint32_t id_ = 0, threads_ = 0;
  uint64_t now_ns_ = kBegin - 1'000'000;
  uint64_t round_end_ns_ = 0;
  std::vector<uint64_t> free_ns_;  // by stream
  std::vector<Launch> launches_;
};

TEST(Round, IsNeverOverBeforeItsStreamsHaveComeToIt) {
  for (uint32_t seed = 0; seed < 5'000; ++seed) {
    RandomProgram program(seed);
    ASSERT_GE(program.told(), program.truth()) << "seed " << seed;
    ASSERT_NE(program.told(), 0u) << "seed " << seed << ": all has ended";
  }
}

class BacklogTest : public testing::Test {
 protected:
  // A window whose only kernel has ended.
  void catch_up(uint32_t id, uint64_t start_ns) {
    Backlog::Report report(backlog_.get());
    report.round()->saw_call(id, start_ns, Submits::kKernels);
    report.round()->saw_operation(id, start_ns, kMain, false);
    backlog_->end_round(start_ns + 1);
  }
  uint64_t since() const { return backlog_->caught_up_ns(UINT64_MAX); }

  std::unique_ptr<Backlog> backlog_ = std::make_unique<Backlog>();
};

TEST_F(BacklogTest, EachWindowHasItsOwn) {
  EXPECT_EQ(since(), 0u) << "there was no window";
  backlog_->begin(1'000'000, true);
  EXPECT_EQ(since(), 1'000'000u) << "nothing had been launched";
  EXPECT_EQ(backlog_->caught_up_ns(0), 1'000'000u);
  for (uint32_t window = 2; window < 6; ++window) {
    backlog_->begin(window * 1'000'000, false);
    EXPECT_EQ(since(), 0u);
    catch_up(window * 10, window * 1'000'000 + 2'000);
    EXPECT_EQ(since(), window * 1'000'000 + 2'000);
  }
}

TEST_F(BacklogTest, CallsOfTheRoundMayStillBeInABuffer) {
  backlog_->begin(1'000'000, false);
  catch_up(10, 1'500'000);
  EXPECT_EQ(backlog_->caught_up_ns(1'500'001), 0u)
      << "one that was lent before its end";
  EXPECT_EQ(backlog_->caught_up_ns(1'500'002), 1'500'000u);
}

TEST_F(BacklogTest, KernelsOfTheWindowBeforeSayNothing) {
  backlog_->begin(1'000'000, false);
  catch_up(50, 1'500'000);
  backlog_->begin(2'000'000, false);
  Backlog::Report report(backlog_.get());
  report.round()->saw_operation(50, 2'500'000, kSide, false);  // known before any call
  report.round()->saw_call(60, 2'100'000, Submits::kKernels);
  report.round()->saw_operation(60, 2'200'000, kMain, false);
  backlog_->end_round(2'300'000);
  EXPECT_EQ(since(), 2'200'000u);
}

// A thread may be in the middle of a buffer when the next window begins.
TEST_F(BacklogTest, ABufferOfBeforeTellsTheNewWindowNothing) {
  backlog_->begin(1'000'000, false);
  auto stale = std::make_unique<Backlog::Report>(backlog_.get());
  backlog_->begin(2'000'000, false);
  stale->round()->saw_call(5, 2'100'000, Submits::kKernels);
  stale->round()->saw_operation(5, 2'200'000, kMain, false);
  backlog_->end_round(2'300'000);
  EXPECT_EQ(since(), 0u);
  catch_up(10, 2'500'000);
  EXPECT_EQ(since(), 2'500'000u);
  // Its round would be the next one's.
  backlog_->begin(3'000'000, false);
  stale->round()->saw_call(20, 3'100'000, Submits::kKernels);
  stale->round()->saw_operation(20, 3'200'000, kMain, false);
  backlog_->end_round(3'300'000);
  EXPECT_EQ(since(), 0u) << "it does not count";
  stale.reset();
  backlog_->begin(4'000'000, false);
  EXPECT_EQ(since(), 0u);
  catch_up(30, 4'500'000);
  EXPECT_EQ(since(), 4'500'000u);
}

TEST_F(BacklogTest, ThreadsMayTellAtOnceWhileWindowsBegin) {
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!done) {
        Backlog::Report report(backlog_.get());
        for (uint32_t i = 0; i < 50; ++i) {
          report.round()->saw_call(i, 1, Submits::kKernels);
          report.round()->saw_operation(i, UINT64_MAX / 2, kMain, false);
        }
        backlog_->count(50);
      }
    });
  }
  for (uint32_t i = 1; i <= 40; ++i) {
    backlog_->begin(uint64_t{i} * 1'000'000'000, false);
    backlog_->end_round(UINT64_MAX - 1);
    EXPECT_EQ(since(), 0u) << "all calls were before";
    std::this_thread::yield();
  }
  while (backlog_->operations() < 2'000) std::this_thread::yield();
  done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(backlog_->operations() % 50, 0u);
}

TEST(WhatSubmits, GoesByTheName) {
  struct Case {
    const char* name;
    Submits what;
  };
  for (Case one : {Case{"cudaLaunchKernel_v7000", Submits::kKernels},
                   {"cuLaunchKernelEx_ptsz", Submits::kKernels},
                   {"__cudaLaunchKernel_v13000", Submits::kKernels},
                   {"cudaGraphLaunch_v10000", Submits::kKernels},
                   {"cudaLaunchHostFunc_v10000", Submits::kNothing},
                   {"cuGraphAddMemcpyNode", Submits::kNothing},
                   {"cudaGraphInstantiate_v12000", Submits::kNothing},
                   {"cudaMemcpyAsync_v3020", Submits::kCopy},
                   {"cuMemsetD32Async", Submits::kCopy},
                   {"cudaStreamBeginCapture_v10000", Submits::kCaptureBegin},
                   {"cuStreamBeginCapture_v2", Submits::kCaptureBegin},
                   {"cuStreamEndCapture_ptsz", Submits::kCaptureEnd},
                   {"cudaStreamSynchronize_v3020", Submits::kNothing}}) {
    EXPECT_EQ(what_submits(one.name), one.what) << one.name;
  }
}

}  // namespace
}  // namespace lull::cupti
