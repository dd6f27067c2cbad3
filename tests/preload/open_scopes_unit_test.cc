#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "preload/scopes/open_scopes.h"
#include "preload/scopes/started_ranges.h"

namespace lull {
namespace {

class OpenScopesTest : public testing::Test {
 protected:
  // Names are keys here.
  Scope* Begin(uint64_t key, ThreadScopes& thread,
               abi::ScopeKind kind = abi::ScopeKind::kUser) {
    Scope* scope = open_->begin(key, kind, thread);
    if (scope != nullptr) scope->name = static_cast<abi::Ref>(key);
    return scope;
  }
  bool End(uint64_t key, ThreadScopes& thread) {
    return open_->end(key, thread, &ended_, &elsewhere_);
  }
  std::vector<uint64_t> Open(const ThreadScopes& thread) {
    std::vector<uint64_t> names(2 * OpenScopes::kMost);
    names.resize(open_->names(thread, names.data(), 2 * OpenScopes::kMost));
    return names;
  }

  std::unique_ptr<OpenScopes> open_ = std::make_unique<OpenScopes>();
  ThreadScopes a_ = {7, 1, 0, 0, 0, 0};
  ThreadScopes b_ = {7, 2, 0, 0, 0, 0};
  Scope ended_ = {};
  bool elsewhere_ = false;
};

using Keys = std::vector<uint64_t>;

TEST_F(OpenScopesTest, Nest) {
  Begin(10, a_)->start_ns = 100;
  Begin(20, a_)->start_ns = 200;
  EXPECT_EQ(Open(a_), (Keys{20, 10}));
  ASSERT_TRUE(End(20, a_));
  EXPECT_EQ(ended_.start_ns, 200u);
  EXPECT_EQ(ended_.depth, 2u);
  EXPECT_FALSE(elsewhere_);
  ASSERT_TRUE(End(10, a_));
  EXPECT_EQ(ended_.depth, 1u);
  EXPECT_EQ(Open(a_), Keys{});
}

TEST_F(OpenScopesTest, AHundredDeep) {
  for (uint64_t key = 1; key <= 100; ++key) ASSERT_NE(Begin(key, a_), nullptr);
  EXPECT_EQ(Open(a_).size(), 100u);
  for (uint64_t key = 100; key >= 1; --key) {
    ASSERT_TRUE(End(key, a_));
    EXPECT_EQ(ended_.depth, key);
  }
}

TEST_F(OpenScopesTest, OfThreadsDoNotMix) {
  Begin(10, a_);
  Begin(20, b_);
  EXPECT_EQ(Open(a_), Keys{10});
  EXPECT_EQ(Open(b_), Keys{20});
}

TEST_F(OpenScopesTest, AnEndWithoutABeginIsNone) {
  EXPECT_FALSE(End(10, a_));
  Begin(10, a_);
  EXPECT_TRUE(End(10, a_));
  EXPECT_FALSE(End(10, a_));
}

TEST_F(OpenScopesTest, MayEndInAnyOrder) {
  for (uint64_t key : {10, 20, 30}) Begin(key, a_);
  ASSERT_TRUE(End(20, a_));
  EXPECT_EQ(Open(a_), (Keys{30, 10}));
  ASSERT_TRUE(End(10, a_));
  EXPECT_EQ(Open(a_), Keys{30});
  ASSERT_TRUE(End(30, a_));
  EXPECT_EQ(Open(a_), Keys{});
}

TEST_F(OpenScopesTest, EndedElsewhereLeavesTheThreadThatBeganIt) {
  Begin(10, a_);
  Begin(20, a_);
  ASSERT_TRUE(End(20, b_));
  EXPECT_TRUE(elsewhere_);
  EXPECT_EQ(ended_.tid, 1u);
  EXPECT_FALSE(End(20, a_));
  EXPECT_EQ(Open(a_), Keys{10});
  EXPECT_EQ(Begin(30, a_)->depth, 2u);
  EXPECT_EQ(Open(a_), (Keys{30, 10}));
}

TEST_F(OpenScopesTest, OfAnotherGenerationGiveWay) {
  Begin(10, a_, abi::ScopeKind::kData);
  ThreadScopes child = {8, 3, 0, 0, 0, 0};
  EXPECT_FALSE(End(10, child));
  for (uint64_t key = 1; key <= OpenScopes::kMost / 2; ++key) {
    ASSERT_NE(Begin(key, child), nullptr) << key;
  }
  EXPECT_EQ(Open(child).size(), OpenScopes::kMost / 2);
}

TEST_F(OpenScopesTest, AKeyThatComesAgainEndsWhatHadIt) {
  Begin(10, a_);
  Begin(20, a_);
  Begin(10, a_);
  EXPECT_EQ(Open(a_), (Keys{10, 20}));
  ASSERT_TRUE(End(10, a_));
  EXPECT_EQ(Open(a_), Keys{20});
}

// The governor leaves a scope out: its end must not be told as that of a thread's that
// had the address before, and ended with its scope open.
TEST_F(OpenScopesTest, AKeyOfAScopeThatIsLeftOutEndsWhatHadIt) {
  Begin(10, b_);
  open_->forget(10, a_.generation);
  EXPECT_FALSE(End(10, a_));
}

TEST_F(OpenScopesTest, CountsNoMoreThanAStackHolds) {
  for (uint64_t key = 1; key <= 2 * abi::kMaxNativeFrames; ++key) {
    ASSERT_NE(Begin(key, a_), nullptr);
  }
  EXPECT_EQ(open_->open_in(a_), abi::kMaxNativeFrames);
  ASSERT_TRUE(End(2 * abi::kMaxNativeFrames, a_));
  EXPECT_EQ(ended_.depth, abi::kMaxNativeFrames + 1);
}

TEST_F(OpenScopesTest, AreWithinData) {
  EXPECT_EQ(a_.in_data, 0u);
  Begin(10, a_, abi::ScopeKind::kData);
  EXPECT_EQ(a_.in_data, 1u);
  Begin(20, a_);
  EXPECT_EQ(a_.in_data, 1u);
  End(20, a_);
  EXPECT_EQ(a_.in_data, 1u);
  End(10, a_);
  EXPECT_EQ(a_.in_data, 0u);
  Begin(30, a_, abi::ScopeKind::kDataAside);
  EXPECT_EQ(a_.in_data, 0u);
}

TEST_F(OpenScopesTest, RoomIsBoundedAndComesBack) {
  uint64_t key = 1;
  while (Begin(key, a_) != nullptr) ++key;
  EXPECT_GT(key, OpenScopes::kMost / 2);
  EXPECT_LE(key, OpenScopes::kMost + 1);
  for (uint64_t open = 1; open < key; ++open) EXPECT_TRUE(End(open, a_));
  EXPECT_NE(Begin(key, a_), nullptr);
}

TEST_F(OpenScopesTest, ThoseOfAThreadThatNeverComesAgainGiveWay) {
  uint64_t key = 1;
  while (Begin(key, a_) != nullptr) ++key;
  for (uint64_t open = 1; open < key; ++open) EXPECT_TRUE(End(open, b_));
  EXPECT_NE(Begin(key, b_), nullptr);
  EXPECT_EQ(Open(b_), Keys{key});
}

// One that another thread ended gives its place to somebody else's while the thread
// that began it is within others: what is around it is forgotten, and counted.
TEST_F(OpenScopesTest, WhatACrowdedTableForgetsIsCounted) {
  Begin(1, a_, abi::ScopeKind::kData);
  Begin(2, a_);
  ASSERT_TRUE(End(2, b_));
  for (uint64_t key = 3; key < 100 * OpenScopes::kMost; ++key) Begin(key, b_);
  EXPECT_EQ(a_.cut, 0u);
  Begin(uint64_t{1} << 40, a_);
  EXPECT_EQ(a_.in_data, 0u);
  EXPECT_EQ(a_.cut, 1u);
  EXPECT_EQ(b_.cut, 0u);
  EXPECT_TRUE(End(1, a_)) << "its own event is told";
}

// Against a plain list of what is open.
TEST_F(OpenScopesTest, AtRandomAreWhatAListOfThemSays) {
  std::mt19937 random(1);
  ThreadScopes* threads[] = {&a_, &b_};
  Keys lists[2];
  uint64_t next = 1;
  for (int i = 0; i < 100'000; ++i) {
    size_t thread = random() % 2;
    size_t open = lists[0].size() + lists[1].size();
    if (random() % 30 >= open) {
      ASSERT_NE(Begin(++next, *threads[thread]), nullptr);
      lists[thread].insert(lists[thread].begin(), next);
    } else if (open > 0) {
      size_t owner = lists[thread].empty() ? 1 - thread : thread;
      size_t at = random() % lists[owner].size();
      size_t ender = random() % 10 == 0 ? 1 - owner : owner;
      ASSERT_TRUE(End(lists[owner][at], *threads[ender]));
      ASSERT_EQ(elsewhere_, ender != owner);
      lists[owner].erase(lists[owner].begin() + static_cast<ptrdiff_t>(at));
    }
    ASSERT_EQ(Open(a_), lists[0]);
    ASSERT_EQ(Open(b_), lists[1]);
  }
}

TEST_F(OpenScopesTest, ManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (uint32_t number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      ThreadScopes scopes = {7, number, 0, 0, 0, 0};
      Scope scope;
      bool elsewhere;
      for (uint64_t i = 0; i < 50'000; ++i) {
        uint64_t key = i * 64 + number * 8 + 1;
        for (uint64_t k = key; k < key + 5; ++k) {
          Scope* begun = open_->begin(k, abi::ScopeKind::kUser, scopes);
          if (begun == nullptr) continue;
          begun->start_ns = k;
        }
        for (uint64_t k = key + 5; k-- > key;) {
          if (!open_->end(k, scopes, &scope, &elsewhere) || scope.start_ns != k ||
              elsewhere || scope.tid != number) {
            ++wrong;
          }
        }
        if (scopes.top != 0) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// Where there is no free place, one that is over is taken from a thread that may be
// about to free it: nobody's scope is lost.
TEST_F(OpenScopesTest, NoneIsLostToTheThreadWhosePlaceItTook) {
  uint64_t key = 1;
  while (Begin(key, a_) != nullptr) ++key;
  for (uint64_t open = 1; open < key; ++open) ASSERT_TRUE(End(open, b_));
  std::vector<std::thread> threads;
  std::atomic<uint64_t> lost{0}, begun{0};
  for (uint32_t number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      ThreadScopes own = {7, 10 + number, 0, 0, 0, 0},
                   other = {7, 20 + number, 0, 0, 0, 0};
      Scope scope;
      bool elsewhere;
      for (uint64_t i = 0; i < 100'000; ++i) {
        const uint64_t one = (uint64_t{number} + 1) << 40 | (2 * i + 1);
        if (open_->begin(one, abi::ScopeKind::kUser, own) == nullptr) continue;
        ++begun;
        ThreadScopes& ender = i % 3 == 0 ? own : other;
        if (!open_->end(one, ender, &scope, &elsewhere)) ++lost;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lost, 0u);
  EXPECT_GT(begun, 100'000u);
}

// Each begins before the one before it has ended, around all of them one that stays.
TEST_F(OpenScopesTest, HandOverHandKeepsWhatIsAroundThem) {
  Begin(1, a_);
  Begin(2, a_);
  for (uint64_t key = 3; key < 20 * OpenScopes::kMost; ++key) {
    ASSERT_NE(Begin(key, a_), nullptr);
    ASSERT_TRUE(End(key - 1, a_));
    ASSERT_EQ(Open(a_), (Keys{key, 1}));
  }
}

class StartedRangesTest : public testing::Test {
 protected:
  bool Begin(uint64_t number, uint32_t generation) {
    Scope* scope = ranges_.begin(number, generation);
    if (scope != nullptr) scope->start_ns = number;
    return scope != nullptr;
  }
  StartedRanges ranges_ = {};
  Scope ended_ = {};
};

TEST_F(StartedRangesTest, EndInAnyOrderAndOnce) {
  for (uint64_t number : {2, 4, 6}) ASSERT_TRUE(Begin(number, 7));
  for (uint64_t number : {4, 2, 6}) {
    ASSERT_TRUE(ranges_.end(number, 7, &ended_));
    EXPECT_EQ(ended_.start_ns, number);
    EXPECT_FALSE(ranges_.end(number, 7, &ended_));
  }
}

TEST_F(StartedRangesTest, ThatAreNeverEndedAreBounded) {
  uint64_t number = 2;
  while (Begin(number, 7)) number += 2;
  EXPECT_EQ(number, 2 * (StartedRanges::kMost + 1));
  ASSERT_TRUE(ranges_.end(100, 7, &ended_));
  EXPECT_TRUE(Begin(number, 7));
  EXPECT_FALSE(ranges_.end(number, 8, &ended_)) << "of another generation";
  for (uint64_t child = 1; child <= StartedRanges::kMost; ++child) {
    ASSERT_TRUE(Begin(child, 8)) << child;
  }
}

}  // namespace
}  // namespace lull
