#include "daemon/relay/deliver/spool.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "daemon/base/runtime_directory.h"
#include "daemon/relay/options.h"

namespace lull::relay {
namespace {

constexpr uint64_t kLimit = 16u << 20;

class SpoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/lull-spool-test-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    root_ = path;
    directory_ = root_ + "/spool";
  }
  void TearDown() override { ASSERT_TRUE(RemoveTree(root_).ok()); }

  std::unique_ptr<Spool> Open(uint64_t limit = kLimit) {
    auto spool = Spool::Open(directory_, limit);
    EXPECT_TRUE(spool.ok()) << spool.status();
    return spool.ok() ? *std::move(spool) : nullptr;
  }

  std::string root_;
  std::string directory_;
};

// `count` events of ring 2 of process 1, from `first` on.
lull::v1::Batch MakeBatch(uint64_t first, int count, size_t padding = 0) {
  lull::v1::Batch batch;
  auto* run = batch.add_rings();
  run->set_process_key(1);
  run->set_ring(2);
  run->mutable_events()->set_first_position(first);
  for (int i = 0; i < count; ++i) {
    run->mutable_events()->add_type(2);
    run->mutable_events()->add_tid(900 + i);
  }
  if (padding > 0) {
    batch.add_processes()->set_command(std::string(padding, 'x'));
  }
  return batch;
}

std::vector<uint64_t> Sequences(Spool* spool, uint64_t after = 0) {
  std::vector<uint64_t> sequences;
  while (auto entry = spool->WaitForNext(after, absl::ZeroDuration())) {
    lull::v1::Batch batch;
    EXPECT_TRUE(batch.ParseFromString(entry->body));
    EXPECT_EQ(batch.sequence(), entry->sequence);
    sequences.push_back(entry->sequence);
    after = entry->sequence;
  }
  return sequences;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

TEST_F(SpoolTest, GivesBatchesBackInOrderAlsoToASuccessor) {
  auto spool = Open();
  for (int i = 0; i < 5; ++i) {
    lull::v1::Batch batch = MakeBatch(i * 10, 10);
    ASSERT_TRUE(spool->Append(&batch).ok());
  }
  EXPECT_EQ(Sequences(spool.get()), (std::vector<uint64_t>{1, 2, 3, 4, 5}));
  spool.reset();
  spool = Open();
  EXPECT_EQ(Sequences(spool.get()), (std::vector<uint64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(spool->acknowledged(), 0u);
  RingProgress progress = spool->state().rings[{1, 2}];
  EXPECT_EQ(progress.end, 50u);
  EXPECT_EQ(progress.tid, 909u);
  lull::v1::Batch batch = MakeBatch(50, 1);
  ASSERT_TRUE(spool->Append(&batch).ok());
  EXPECT_EQ(batch.sequence(), 6u);
}

TEST_F(SpoolTest, ADescriptorIsReadableWhileEveryBatchIsAcknowledged) {
  auto spool = Open();
  auto readable = [&spool] {
    pollfd entry{spool->all_acknowledged_fd(), POLLIN, 0};
    return poll(&entry, 1, 0) == 1;
  };
  EXPECT_TRUE(readable());
  lull::v1::Batch first = MakeBatch(0, 1), second = MakeBatch(1, 1);
  ASSERT_TRUE(spool->Append(&first).ok());
  EXPECT_FALSE(readable());
  ASSERT_TRUE(spool->Append(&second).ok());
  spool->Acknowledge(1);
  EXPECT_FALSE(readable());
  spool.reset();
  spool = Open();
  EXPECT_FALSE(readable());  // the collector may not have said so to the first one
  spool->Acknowledge(2);
  EXPECT_TRUE(readable());
  spool.reset();
  spool = Open();
  spool->Acknowledge(2);
  EXPECT_TRUE(readable());
}

TEST_F(SpoolTest, RemembersItsStateWhenTheFilesThatMadeItAreGone) {
  auto spool = Open();
  constexpr int kBatches = 40;
  for (int i = 0; i < kBatches; ++i) {                     // 100 KB each: several files
    lull::v1::Batch batch = MakeBatch(2 * i, 1, 100'000);  // each other one was dropped
    auto* counters = batch.add_counters();
    counters->set_process_key(1);
    counters->set_thinning(i == 3 ? 2 : 0);
    counters->set_first_sampled_step(i == 3 ? 77 : 0);
    counters->set_modules_unread(i == 5 ? 3 : 1);
    auto* ring = counters->add_rings();
    ring->set_ring(2);
    ring->set_lost_relay(i);
    if (i == 5) {
      batch.add_process_ends()->set_process_key(77);
      batch.mutable_process_ends(0)->set_end_ns(1234);
    }
    ASSERT_TRUE(spool->Append(&batch).ok());
  }
  uint64_t full = spool->bytes();
  spool->Acknowledge(kBatches);
  EXPECT_LT(spool->bytes(), full / 2);
  spool.reset();
  spool = Open();
  EXPECT_EQ(spool->last_sequence(), uint64_t{kBatches});
  EXPECT_EQ((spool->state().rings[{1, 2}].end), uint64_t{2 * kBatches - 1});
  EXPECT_EQ((spool->state().rings[{1, 2}].lost_relay), uint64_t{kBatches - 1});
  EXPECT_EQ(spool->state().found[1].thinning(), 2u);
  EXPECT_EQ(spool->state().found[1].first_sampled_step(), 77u);
  EXPECT_EQ(spool->state().found[1].modules_unread(), 3u);
  EXPECT_EQ(spool->state().ended[77], 1234u);
  EXPECT_GE(spool->state().latest_ns, 1234u);
}

TEST_F(SpoolTest, LosesOnlyTheTornBatchWhereverTheWriteBroke) {
  auto spool = Open();
  std::vector<size_t> ends;  // of the file after each batch
  for (int i = 0; i < 3; ++i) {
    lull::v1::Batch batch = MakeBatch(i * 3, 3);
    ASSERT_TRUE(spool->Append(&batch).ok());
    ends.push_back(spool->bytes());
  }
  spool.reset();
  std::string path = directory_ + "/00000001.spool";
  const std::string whole = ReadFile(path);
  ASSERT_EQ(whole.size(), ends.back());
  for (size_t cut = 0; cut <= whole.size(); ++cut) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << whole.substr(0, cut);
    spool = Open();
    ASSERT_NE(spool, nullptr) << cut;
    uint64_t expected = 0;
    for (size_t end : ends) expected += end <= cut ? 1 : 0;
    ASSERT_EQ(Sequences(spool.get()).size(), expected) << cut;
    ASSERT_EQ((spool->state().rings[{1, 2}].end), expected * 3) << cut;
    // And what is appended now is not hidden by the torn end.
    lull::v1::Batch batch = MakeBatch(expected * 3, 1);
    ASSERT_TRUE(spool->Append(&batch).ok()) << cut;
    spool.reset();
    spool = Open();
    ASSERT_EQ(Sequences(spool.get()).size(), expected + 1) << cut;
    spool.reset();
    ASSERT_TRUE(RemoveTree(directory_).ok());
    ASSERT_TRUE(MakePrivateDirectory(directory_).ok());
  }
}

TEST_F(SpoolTest, NeverBelievesADamagedByte) {
  auto spool = Open();
  for (int i = 0; i < 2; ++i) {
    lull::v1::Batch batch = MakeBatch(i * 2, 2);
    ASSERT_TRUE(spool->Append(&batch).ok());
  }
  spool.reset();
  std::string path = directory_ + "/00000001.spool";
  const std::string whole = ReadFile(path);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << damaged;
    spool = Open();
    ASSERT_NE(spool, nullptr) << at;
    ASSERT_LT(Sequences(spool.get()).size(), 2u) << at;
    spool.reset();
  }
}

TEST_F(SpoolTest, ASpoolThatIsFullTakesCountersButNoEvents) {
  auto spool = Open(kMinSpoolBytes);
  absl::Status status;
  int taken = 0;
  while (status.ok()) {
    lull::v1::Batch batch = MakeBatch(taken, 1, 200'000);
    status = spool->Append(&batch);
    taken += status.ok() ? 1 : 0;
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_GT(taken, 10);
  EXPECT_LE(spool->bytes(), kMinSpoolBytes);
  EXPECT_EQ((spool->state().rings[{1, 2}].end), static_cast<uint64_t>(taken));
  lull::v1::Batch counters;
  counters.add_counters()->set_process_key(1);
  EXPECT_TRUE(spool->Append(&counters).ok());
  EXPECT_EQ(counters.sequence(), static_cast<uint64_t>(taken + 1))
      << "the batch that found no room used up no number";
  spool->Acknowledge(counters.sequence());
  lull::v1::Batch batch = MakeBatch(taken, 1, 200'000);
  EXPECT_TRUE(spool->Append(&batch).ok()) << "room again";
}

TEST_F(SpoolTest, BelongsToOneProcessAtATime) {
  auto spool = Open();
  pid_t child = fork();
  if (child == 0) {
    _exit(Spool::Open(directory_, kLimit).status().code() ==
                  absl::StatusCode::kUnavailable
              ? 0
              : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(SpoolTest, AGapIsToldToASuccessorByACheckpoint) {
  auto spool = Open();
  lull::v1::Batch batch = MakeBatch(0, 10);
  ASSERT_TRUE(spool->Append(&batch).ok());
  spool->state().rings[{1, 2}] = {500, 490, 0};  // dropped
  spool->state().needs_checkpoint = true;
  lull::v1::Batch counters;
  counters.add_counters()->set_process_key(1);
  ASSERT_TRUE(spool->Append(&counters).ok());
  spool.reset();
  spool = Open();
  EXPECT_EQ((spool->state().rings[{1, 2}].end), 500u);
  EXPECT_EQ((spool->state().rings[{1, 2}].lost_relay), 490u);
  EXPECT_EQ(Sequences(spool.get()).size(), 2u);
}

TEST_F(SpoolTest, WhatWasLeftOutBetweenTwoRunsIsLostAlsoForASuccessor) {
  SpoolState state;
  lull::v1::Batch batch = MakeBatch(10, 5);  // 0 to 9 were dropped
  *batch.add_rings() = MakeBatch(18, 2).rings(0);
  state.Apply(batch);
  EXPECT_EQ((state.rings[{1, 2}].end), 20u);
  EXPECT_EQ((state.rings[{1, 2}].lost_relay), 13u);
  SpoolState successor;
  ASSERT_TRUE(successor.Decode(state.Encode()));
  EXPECT_EQ((successor.rings[{1, 2}].end), 20u);
  EXPECT_EQ((successor.rings[{1, 2}].lost_relay), 13u) << "a checkpoint is no gap";
  // Counters that were taken before the gap change nothing, later ones do.
  lull::v1::Batch counters;
  counters.add_counters()->set_process_key(1);
  counters.mutable_counters(0)->add_rings()->set_ring(2);
  counters.mutable_counters(0)->mutable_rings(0)->set_lost_relay(4);
  state.Apply(counters);
  EXPECT_EQ((state.rings[{1, 2}].lost_relay), 13u);
  counters.mutable_counters(0)->mutable_rings(0)->set_lost_relay(14);
  state.Apply(counters);
  EXPECT_EQ((state.rings[{1, 2}].lost_relay), 14u);
  EXPECT_EQ((state.rings[{1, 2}].end), 21u) << "read, too: nobody counts it again";
  ASSERT_TRUE(successor.Decode(state.Encode()));
  EXPECT_EQ((successor.rings[{1, 2}].end), 21u);
  EXPECT_EQ((successor.rings[{1, 2}].lost_relay), 14u);
}

lull::v1::Batch BatchAfter(Spool* spool, uint64_t sequence) {
  auto entry = spool->WaitForNext(sequence, absl::ZeroDuration());
  lull::v1::Batch batch;
  EXPECT_TRUE(entry && batch.ParseFromString(entry->body));
  return batch;
}

TEST_F(SpoolTest, SetsABatchAsideThatNobodyTakesAndGivesLessOfIt) {
  auto spool = Open();
  for (int i = 0; i < 3; ++i) {
    lull::v1::Batch batch = MakeBatch(static_cast<uint64_t>(i), 1);
    batch.add_counters()->set_process_key(1);
    batch.add_process_ends()->set_process_key(1);
    if (i == 1) batch.mutable_job_end()->set_end_ns(9);
    ASSERT_TRUE(spool->Append(&batch).ok());
  }
  const std::string whole = spool->WaitForNext(1, absl::ZeroDuration())->body;
  spool->SetAside(2);
  EXPECT_EQ(ReadFile(root_ + "/refused/spool-2.batch"), whole);
  lull::v1::Batch left = BatchAfter(spool.get(), 1);
  EXPECT_EQ(left.sequence(), 2u);
  EXPECT_EQ(left.set_aside(), 1u);
  EXPECT_EQ(left.rings_size(), 0);
  EXPECT_EQ(left.counters_size(), 1);
  EXPECT_EQ(left.process_ends_size(), 1);
  EXPECT_EQ(left.job_end().end_ns(), 9u);
  spool->SetAside(3);
  EXPECT_EQ(BatchAfter(spool.get(), 2).set_aside(), 2u);

  spool->SetAside(2);
  left = BatchAfter(spool.get(), 1);
  EXPECT_EQ(left.counters_size(), 0);
  EXPECT_EQ(left.job_end().end_ns(), 9u);
  EXPECT_EQ(left.set_aside(), 1u);
  EXPECT_EQ(spool->acknowledged(), 0u);
  spool->SetAside(2);  // nothing is left to leave out
  EXPECT_EQ(spool->acknowledged(), 2u);
  EXPECT_EQ(Sequences(spool.get(), 2), (std::vector<uint64_t>{3}));
}

TEST_F(SpoolTest, WhatIsNoFileOfASpoolHidesNoOtherFile) {
  auto spool = Open();
  lull::v1::Batch batch = MakeBatch(0, 3);
  ASSERT_TRUE(spool->Append(&batch).ok());
  spool.reset();
  std::filesystem::resize_file(directory_ + "/00000001.spool", uint64_t{1} << 42);
  std::filesystem::create_directories(directory_ + "/00000000.spool/deep");
  ASSERT_EQ(mkfifo((directory_ + "/00000002.spool").c_str(), 0600), 0);
  std::filesystem::create_directory(directory_ + "/00000003.spool");
  std::ofstream(directory_ + "/4.spool") << "of somebody else";
  spool = Open();
  ASSERT_NE(spool, nullptr);
  EXPECT_EQ(Sequences(spool.get()), (std::vector<uint64_t>{1}));
  batch = MakeBatch(3, 3);
  ASSERT_TRUE(spool->Append(&batch).ok());
  EXPECT_EQ(Sequences(spool.get()), (std::vector<uint64_t>{1, 2}));
  EXPECT_LT(spool->bytes(), uint64_t{1} << 20);
}

TEST_F(SpoolTest, ABatchThatIsDamagedLeavesItsNumber) {
  auto spool = Open();
  lull::v1::Batch batch = MakeBatch(0, 3);
  ASSERT_TRUE(spool->Append(&batch).ok());
  std::fstream file(directory_ + "/00000001.spool",
                    std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(-1, std::ios::end);
  file.put('\xff');
  file.close();
  EXPECT_EQ(BatchAfter(spool.get(), 0).rings_size(), 0);
  EXPECT_EQ(Sequences(spool.get()), (std::vector<uint64_t>{1}))
      << "what is behind it, the end of the job for instance, can be acknowledged";
}

}  // namespace
}  // namespace lull::relay
