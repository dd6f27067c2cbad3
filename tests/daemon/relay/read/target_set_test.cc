#include "daemon/relay/read/target_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "daemon/base/runtime_directory.h"
#include "tests/daemon/relay/fake_segment.h"
#include "tests/daemon/units.h"

namespace lull::relay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TargetSetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/lull-target-set-test-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    root_ = path;
    options_.spool_directory = root_ + "/spool";
    options_.job.mutable_settings()->set_no_host_samples(true);
    auto spool = Spool::Open(options_.spool_directory, options_.spool_limit_bytes);
    ASSERT_TRUE(spool.ok()) << spool.status();
    spool_ = *std::move(spool);
    targets_ = std::make_unique<TargetSet>(options_, *spool_);
  }
  void TearDown() override {
    targets_.reset();
    spool_.reset();
    ASSERT_TRUE(RemoveTree(root_).ok());
  }

  TargetSet::Added Add(uint64_t key, const FakeSegment& segment,
                       uint64_t worker_of = 0) {
    lull::v1::ProcessInfo info;
    info.set_key(key);
    info.set_pid(static_cast<uint32_t>(getpid()));
    info.set_parent_pid(static_cast<uint32_t>(getpid()));
    info.set_worker_of(worker_of);
    return targets_->Add(info, UniqueFd(dup(segment.memfd())), UniqueFd(), UniqueFd(),
                         /*armed=*/true, GpuPlan());
  }
  std::vector<uint64_t> ReleaseEnded() {
    std::vector<uint64_t> keys;
    targets_->ReleaseEnded(kSecond, [&](uint64_t key) { keys.push_back(key); });
    return keys;
  }
  // As it is told at 1 s of an image with an event from 300 to 350 ms.
  uint64_t EndOfImage(uint64_t by_ns) {
    FakeSegment segment;
    segment.view().header().created_ns = 100 * kMs;
    EXPECT_EQ(Add(1, segment), TargetSet::Added::kDone);
    abi::Event event = MakeEvent(abi::EventType::kSync, 1, 300 * kMs);
    event.duration_ns = 50 * kMs;
    segment.Commit(0, event);
    targets_->EndImage(1, by_ns);
    EXPECT_THAT(ReleaseEnded(), ElementsAre(1u));
    return Spooled().back().process_ends(0).end_ns();
  }
  // All batches of the spool.
  std::vector<lull::v1::Batch> Spooled() {
    std::vector<lull::v1::Batch> batches;
    for (uint64_t sequence = 0; sequence < spool_->last_sequence();) {
      auto entry = spool_->WaitForNext(sequence, absl::ZeroDuration());
      if (!entry) break;
      batches.emplace_back().ParseFromString(entry->body);
      sequence = entry->sequence;
    }
    return batches;
  }
  int EventsSpooled() {
    int events = 0;
    for (const lull::v1::Batch& batch : Spooled()) {
      for (const auto& ring : batch.rings()) events += ring.events().type_size();
    }
    return events;
  }
  // Commits to ring 0, and makes a pass in which a batch is not old enough.
  void CommitAndPass(FakeSegment* segment, int events) {
    for (int i = 0; i < events; ++i) {
      ASSERT_TRUE(segment->Commit(0, MakeEvent(abi::EventType::kSync, 1)));
    }
    EXPECT_FALSE(targets_->ReadAll(100 * kMs));
    targets_->FlushIfDue(100 * kMs);
  }

  std::string root_;
  RelayOptions options_;
  std::unique_ptr<Spool> spool_;
  std::unique_ptr<TargetSet> targets_;
};

TEST_F(TargetSetTest, GathersABatchOfAllUntilItIsOldEnough) {
  FakeSegment one, two;
  ASSERT_EQ(Add(1, one), TargetSet::Added::kDone);
  ASSERT_EQ(Add(2, two), TargetSet::Added::kDone);
  one.Commit(0, MakeEvent(abi::EventType::kSync, 1));
  two.Commit(0, MakeEvent(abi::EventType::kSync, 2));
  targets_->FlushIfDue(1 * kSecond);  // nothing read: no batch has begun
  EXPECT_FALSE(targets_->ReadAll(1 * kSecond));
  targets_->FlushIfDue(1 * kSecond + 499 * kMs);
  EXPECT_EQ(EventsSpooled(), 0);
  targets_->FlushIfDue(1 * kSecond + 500 * kMs);
  EXPECT_EQ(EventsSpooled(), 2);
  EXPECT_EQ(targets_->totals().events_read, 2u);
}

TEST_F(TargetSetTest, ComesBackSoonWhereMuchWasFound) {
  FakeSegment segment;
  ASSERT_EQ(Add(1, segment), TargetSet::Added::kDone);
  for (int i = 0; i < 4097; ++i) {
    segment.Commit(0, MakeEvent(abi::EventType::kSync, 1));
  }
  EXPECT_TRUE(targets_->ReadAll(1 * kSecond));
  EXPECT_FALSE(targets_->ReadAll(1 * kSecond));
}

// Its thread gets no further chunk, and can use this one again once all of it is given
// back.
TEST_F(TargetSetTest, WaitsForNoCompanyWhereTheOnlyChunkNearsItsEnd) {
  constexpr uint32_t kLimit = abi::kPoolChunks - abi::kFirstChunks;
  FakeSegment segment;
  ASSERT_EQ(Add(1, segment), TargetSet::Added::kDone);
  auto commit = [&](int events) { CommitAndPass(&segment, events); };
  commit(100);
  EXPECT_EQ(EventsSpooled(), 0) << "the pool has more";
  segment.view().header().chunks_used = kLimit;
  commit(1);
  EXPECT_EQ(EventsSpooled(), 101);
  commit(abi::kChunkEvents - 101);
  EXPECT_EQ(EventsSpooled(), abi::kChunkEvents);
}

TEST_F(TargetSetTest, WaitsForCompanyWhereAnotherChunkWasGivenBack) {
  FakeSegment segment;
  ASSERT_EQ(Add(1, segment), TargetSet::Added::kDone);
  auto commit = [&](int events) { CommitAndPass(&segment, events); };
  commit(abi::kChunkEvents + 1);
  segment.view().header().chunks_used = abi::kPoolChunks - abi::kFirstChunks;
  commit(1);
  EXPECT_EQ(EventsSpooled(), 0) << "the second chunk is as good as empty";
  commit(100);
  EXPECT_EQ(EventsSpooled(), abi::kChunkEvents + 102);
  commit(60);
  EXPECT_EQ(EventsSpooled(), abi::kChunkEvents + 102) << "the first one was given back";
}

TEST_F(TargetSetTest, ReleasesAProcessOnceItsEndIsInTheSpool) {
  FakeSegment segment;
  ASSERT_EQ(Add(1, segment), TargetSet::Added::kDone);
  segment.Commit(0, MakeEvent(abi::EventType::kSync, 1));
  targets_->ReadAll(1 * kSecond);
  EXPECT_THAT(ReleaseEnded(), IsEmpty());
  EXPECT_EQ(targets_->recording(), 1u);
  targets_->EndImagesOf(0, kSecond);  // of nobody
  EXPECT_EQ(targets_->recording(), 1u);
  targets_->EndImagesOf(getpid(), kSecond);
  EXPECT_EQ(targets_->recording(), 0u);
  EXPECT_THAT(ReleaseEnded(), ElementsAre(1u));
  EXPECT_TRUE(targets_->empty());
  EXPECT_EQ(EventsSpooled(), 1);
  EXPECT_EQ(Spooled().back().process_ends_size(), 1);
  EXPECT_EQ(targets_->totals().events_read, 1u) << "also of those that are gone";
}

TEST_F(TargetSetTest, EndsAnImageWhereTheNextOneBeganAndNotWhereThatWasNoticed) {
  EXPECT_EQ(EndOfImage(700 * kMs), 700 * kMs);
}

TEST_F(TargetSetTest, DoesNotBelieveThatAnImageEndedBeforeItsEvents) {
  EXPECT_EQ(EndOfImage(100 * kMs + 1), 350 * kMs);
}

TEST_F(TargetSetTest, AnImageEndsNotLaterThanThatIsKnown) {
  EXPECT_EQ(EndOfImage(UINT64_MAX), 1 * kSecond);
}

TEST_F(TargetSetTest, TakesAWorkerOfAProcessThatItReadsAndNoOther) {
  FakeSegment owner, worker;
  EXPECT_EQ(Add(2, worker, /*worker_of=*/UINT64_MAX), TargetSet::Added::kNotWanted);
  ASSERT_EQ(Add(1, owner), TargetSet::Added::kDone);
  EXPECT_EQ(Add(2, worker, /*worker_of=*/UINT64_MAX), TargetSet::Added::kDone);
  EXPECT_EQ(targets_->recording(), 1u) << "a worker records nothing";
}

TEST_F(TargetSetTest, ReadsWhatTargetsThatOutliveTheJobHaveDoneSoFar) {
  FakeSegment segment;
  ASSERT_EQ(Add(1, segment), TargetSet::Added::kDone);
  EXPECT_EQ(segment.view().control().armed.load(), 1u);
  segment.Commit(0, MakeEvent(abi::EventType::kSync, 1));
  targets_->ReadToTheEnd(1 * kSecond);
  EXPECT_EQ(segment.view().control().armed.load(), 0u);
  EXPECT_EQ(EventsSpooled(), 1);
}

// What was read after the last batch is in none yet: a job must not end before it is.
TEST_F(TargetSetTest, SourceTextIsAwaitedUntilItIsInABatch) {
  options_.job.set_start_realtime_ns(INT64_MAX);  // the file is older
  targets_ = std::make_unique<TargetSet>(options_, *spool_);
  const std::string file = root_ + "/train.py";
  std::ofstream(file) << "one\ntwo\n";
  FakeSegment segment;
  segment.view().header().python_version = (3 << 8) | 11;
  abi::Event sync = MakeEvent(abi::EventType::kSync, 1);
  sync.py_stack = segment.AddPythonStack({{segment.AddCode(file, "step", 2), -1}});
  segment.Commit(0, sync);
  ASSERT_EQ(Add(1, segment), TargetSet::Added::kDone);
  EXPECT_FALSE(targets_->IsReadingSources());
  targets_->ReadAll(1 * kSecond);
  targets_->Flush(1 * kSecond);
  for (int i = 0; i < 1000; ++i) {  // a second is mostly enough to read it
    ASSERT_TRUE(targets_->IsReadingSources());
    usleep(1'000);
  }
  do {
    targets_->Flush(2 * kSecond);
    usleep(1'000);
  } while (targets_->IsReadingSources());  // ctest bounds that
  std::vector<lull::v1::SourceDef> sources;
  for (const lull::v1::Batch& batch : Spooled()) {
    sources.insert(sources.end(), batch.sources().begin(), batch.sources().end());
  }
  ASSERT_EQ(sources.size(), 1u);
  EXPECT_EQ(sources[0].file(), file);
  EXPECT_THAT(sources[0].lines(), ElementsAre("one", "two"));
}

}  // namespace
}  // namespace lull::relay
