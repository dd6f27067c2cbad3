// preload/stacks/interning.cc on a private segment.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "preload/stacks/interning.h"

namespace lull {
namespace {

class Interning : public testing::Test {
 protected:
  Interning()
      : base_(
            static_cast<char*>(mmap(nullptr, abi::kSegmentSize, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~Interning() override { munmap(base_, abi::kSegmentSize); }

  abi::SegmentHeader& header() { return abi::SegmentView(base_).header(); }

  abi::Ref stack(const std::vector<uint64_t>& frames, uint32_t flags = 0,
                 abi::EntryKind kind = abi::EntryKind::kNativeStack) {
    return intern_stack(base_, kind, frames.data(),
                        static_cast<uint32_t>(frames.size()), flags);
  }

  std::vector<uint64_t> frames_of(abi::Ref ref) {
    auto* entry =
        reinterpret_cast<abi::StackEntry*>(abi::SegmentView(base_).entry(ref));
    std::vector<uint64_t> frames(entry->depth);
    memcpy(frames.data(), entry + 1, entry->depth * sizeof(uint64_t));
    EXPECT_EQ(entry->header.size, sizeof *entry + frames.size() * sizeof(uint64_t));
    return frames;
  }

  abi::Ref code(const CodeIdentity& identity, const char* filename) {
    abi::Ref ref;
    if (find_code(base_, identity, &ref)) return ref;
    auto size = static_cast<uint16_t>(strlen(filename));
    abi::CodeEntry* entry = allocate_code(base_, identity, size, 0, 0);
    if (entry == nullptr) return 0;
    memcpy(entry + 1, filename, size);
    return publish_code(base_, identity, entry);
  }

  char* base_;
};

TEST_F(Interning, GivesEqualStacksOneRefAndKeepsTheirFrames) {
  abi::Ref first = stack({1, 2, 3});
  ASSERT_NE(first, 0u);
  EXPECT_EQ(stack({1, 2, 3}), first);
  EXPECT_EQ(frames_of(first), (std::vector<uint64_t>{1, 2, 3}));
}

TEST_F(Interning, TellsStacksApartByFramesDepthFlagsAndKind) {
  std::vector<abi::Ref> refs = {stack({1, 2, 3}),
                                stack({1, 2}),
                                stack({1, 2, 4}),
                                stack({2, 1, 3}),
                                stack({1, 2, 3}, abi::kStackTruncated),
                                stack({1, 2, 3}, 0, abi::EntryKind::kPythonStack)};
  std::sort(refs.begin(), refs.end());
  EXPECT_EQ(std::unique(refs.begin(), refs.end()), refs.end());
  EXPECT_NE(refs.front(), 0u);
}

TEST_F(Interning, FindsEveryOneOfThousandsOfStacksAgain) {
  std::mt19937_64 random(1);
  std::map<abi::Ref, std::vector<uint64_t>> made;
  for (int i = 0; i < 20'000; ++i) {
    std::vector<uint64_t> frames(1 + random() % 12);
    for (uint64_t& frame : frames) frame = 0x7f0000000000 + random() % 64 * 16;
    abi::Ref ref = stack(frames);
    ASSERT_NE(ref, 0u);
    auto [at, is_new] = made.emplace(ref, frames);
    EXPECT_EQ(at->second, frames);
  }
  for (const auto& [ref, frames] : made) EXPECT_EQ(stack(frames), ref);
  EXPECT_EQ(header().arena_rejected, 0u);
}

// Each page that a look into the index touches is one more that the program's own data
// must make room for.
TEST_F(Interning, KeepsTheSlotsOfTheFirstThousandsCloseTogether) {
  for (uint64_t i = 1; i <= 3'000; ++i) ASSERT_NE(stack({i, 2 * i, 7}), 0u);
  constexpr uint32_t kSlotsOfPage = abi::kPage / sizeof(uint64_t);
  std::atomic<uint64_t>* index = abi::SegmentView(base_).index();
  uint32_t near = 0, pages = 0;
  for (uint32_t page = 0; page < abi::kIndexSlots / kSlotsOfPage; ++page) {
    uint32_t filled = 0;
    for (uint32_t i = 0; i < kSlotsOfPage; ++i) {
      filled += index[page * kSlotsOfPage + i] != 0;
    }
    pages += filled != 0;
    if (page < kNearLines * kNearSlots / kSlotsOfPage) near += filled;
  }
  EXPECT_GE(near, 2'950u);
  EXPECT_LE(pages, 16u + 50u);
}

TEST_F(Interning, FindsThoseThatFoundNoRoomNearby) {
  std::vector<abi::Ref> refs;
  for (uint64_t i = 1; i <= 40'000; ++i) {
    refs.push_back(stack({i, 9}));
    ASSERT_NE(refs.back(), 0u);
  }
  for (uint64_t i = 1; i <= refs.size(); ++i) EXPECT_EQ(stack({i, 9}), refs[i - 1]);
  EXPECT_EQ(header().arena_rejected, 0u);
}

TEST_F(Interning, KeepsCodeObjectsApartThatTookTheSameAddress) {
  CodeIdentity identity{
      .code = 0x1000, .texts = 7, .line_table = 0x3000, .first_line = 1};
  abi::Ref first = code(identity, "a.py");
  EXPECT_EQ(code(identity, "never copied"), first);
  for (auto change : {+[](CodeIdentity& id) { id.texts++; },
                      +[](CodeIdentity& id) { id.line_table += 16; },
                      +[](CodeIdentity& id) { id.first_line++; }}) {
    CodeIdentity other = identity;
    change(other);
    EXPECT_NE(code(other, "b.py"), first);
  }
  EXPECT_EQ(code(identity, "never copied"), first);
}

TEST_F(Interning, AnswersZeroAndCountsOnceTheArenaIsFull) {
  std::vector<uint64_t> frames(abi::kMaxNativeFrames);
  abi::Ref ref = 0;
  uint64_t made = 0;
  do {
    frames[0] = ++made;
    ref = stack(frames);
  } while (ref != 0 && made < 100'000);
  EXPECT_EQ(ref, 0u);
  EXPECT_EQ(header().arena_rejected, 1u);
  EXPECT_LE(header().arena_used, abi::kArenaSize);
  size_t each = sizeof(abi::StackEntry) + frames.size() * sizeof(uint64_t) + 8;
  EXPECT_GT(made, abi::kArenaSize / each - 2);

  uint32_t used = header().arena_used;
  for (int i = 0; i < 1000; ++i) {
    frames[0] = ++made;
    EXPECT_EQ(stack(frames), 0u);
  }
  EXPECT_EQ(header().arena_used, used) << "a refusal must not take room";
  EXPECT_EQ(header().arena_rejected, 1001u);
  frames[0] = 1;
  EXPECT_NE(stack(frames), 0u) << "what is there is still found";
}

TEST_F(Interning, StopsAfterABoundedNumberOfProbesInACrowdedIndex) {
  std::atomic<uint64_t>* index = abi::SegmentView(base_).index();
  for (uint32_t i = 0; i < abi::kIndexSlots; ++i) index[i] = 0xdeadbeef00000001;
  EXPECT_EQ(stack({1, 2, 3}), 0u);
  EXPECT_EQ(code({.code = 1, .texts = 2, .line_table = 3, .first_line = 4}, "a.py"),
            0u);
  EXPECT_EQ(header().arena_rejected, 2u);
  EXPECT_EQ(header().arena_used, 0u);
}

TEST_F(Interning, GivesThreadsThatRaceCompleteEntries) {
  constexpr int kThreads = 4;
  constexpr uint64_t kStacks = 3000;
  std::vector<std::vector<abi::Ref>> refs(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kStacks; ++i) refs[t].push_back(stack({i, i * 3, ~i}));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < kThreads; ++t) {
    for (uint64_t i = 0; i < kStacks; ++i) {
      ASSERT_NE(refs[t][i], 0u);
      EXPECT_EQ(frames_of(refs[t][i]), (std::vector<uint64_t>{i, i * 3, ~i}));
    }
  }
}

}  // namespace
}  // namespace lull
