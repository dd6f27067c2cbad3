#include "daemon/collector/ingest/committer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/time/clock.h"
#include "daemon/storage/sqlite_store.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/storage/temporary_directory.h"

namespace lull::collector {
namespace {

// A stream that remembers what it was told.
class Listener : public CommitListener {
 public:
  void Rejected(std::vector<lull::v1::RejectedRun> runs) override {
    std::lock_guard lock(mutex_);
    rejected_.insert(rejected_.end(), runs.begin(), runs.end());
  }
  void Committed(uint64_t sequence) override {
    std::lock_guard lock(mutex_);
    committed_ = sequence;
    changed_.notify_all();
  }
  void Failed(const absl::Status& status) override {
    std::lock_guard lock(mutex_);
    failure_ = status;
    changed_.notify_all();
  }
  void MayContinue() override {
    std::lock_guard lock(mutex_);
    resumed_ = true;
    changed_.notify_all();
  }

  bool AwaitCommit(uint64_t sequence) {
    return Await([this, sequence] { return committed_ >= sequence; });
  }
  // True when committed, false when failed.
  bool AwaitEither(uint64_t sequence) {
    Await([this, sequence] { return committed_ >= sequence || !failure_.ok(); });
    return committed() >= sequence;
  }
  bool AwaitFailure() {
    return Await([this] { return !failure_.ok(); });
  }
  bool AwaitResumption() {
    return Await([this] { return resumed_; });
  }
  absl::Status failure() {
    std::lock_guard lock(mutex_);
    return failure_;
  }
  std::vector<lull::v1::RejectedRun> rejected() {
    std::lock_guard lock(mutex_);
    return rejected_;
  }
  uint64_t committed() {
    std::lock_guard lock(mutex_);
    return committed_;
  }

 private:
  template <typename Condition>
  bool Await(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), condition);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t committed_ = 0;
  std::vector<lull::v1::RejectedRun> rejected_;
  absl::Status failure_;
  bool resumed_ = false;
};

class CommitterTest : public ::testing::Test {
 protected:
  void SetUp() override { store_ = *storage::OpenSqliteStore(directory_ / "a.db"); }

  static lull::v1::IngestRequest Hello(uint32_t job) {
    lull::v1::IngestRequest request;
    *request.mutable_hello() = test::MakeHello(test::MakeJobId(job));
    return request;
  }

  // One event at `position` of ring 0.
  static lull::v1::IngestRequest Batch(uint64_t sequence, uint64_t position,
                                       uint32_t api = test::kApiSync) {
    lull::v1::IngestRequest request;
    request.mutable_batch()->set_sequence(sequence);
    test::TestEvent event;
    event.type = 3;
    event.api = api;
    test::AddRun(*request.mutable_batch(), 1, 0, position, {event});
    return request;
  }

  uint64_t Stored() {
    auto reader = *store_->NewReader();
    uint64_t stored = 0;
    const auto jobs = reader->Jobs(0).value();
    for (const storage::JobRow& job : jobs) {
      const auto processes = reader->Processes(job.id).value();
      for (const storage::ProcessRow& process : processes) {
        const auto rings = reader->Rings(process.id).value();
        for (const storage::RingRow& ring : rings) stored += ring.stored;
      }
    }
    return stored;
  }

  test::TemporaryDirectory directory_;
  std::unique_ptr<storage::Store> store_;
};

TEST_F(CommitterTest, AcknowledgesWhatIsInTheStore) {
  Committer committer(*store_, {});
  auto stream = std::make_shared<Listener>();
  std::string job = test::MakeJobId(1);
  committer.Submit(stream, job, Hello(1), 1);
  for (uint64_t i = 1; i <= 50; ++i) committer.Submit(stream, job, Batch(i, i - 1), 1);
  ASSERT_TRUE(stream->AwaitCommit(50));
  EXPECT_EQ(Stored(), 50u);
  EXPECT_EQ(committer.events_stored(), 50u);
}

TEST_F(CommitterTest, CommitsWhatWasSubmittedBeforeItStops) {
  auto stream = std::make_shared<Listener>();
  std::string job = test::MakeJobId(1);
  CommitterOptions options;
  options.interval = absl::Seconds(100);
  Committer committer(*store_, options);
  committer.Submit(stream, job, Hello(1), 1);
  committer.Submit(stream, job, Batch(1, 0), 1);
  absl::Time start = absl::Now();
  committer.Stop();
  EXPECT_LT(absl::Now() - start, absl::Seconds(50));
  EXPECT_EQ(stream->committed(), 1u);
  EXPECT_EQ(Stored(), 1u);
}

TEST_F(CommitterTest, CommitsTheEndOfAJobAtOnce) {
  CommitterOptions options;
  options.interval = absl::Seconds(100);
  Committer committer(*store_, options);
  auto stream = std::make_shared<Listener>();
  std::string job = test::MakeJobId(1);
  lull::v1::IngestRequest last = Batch(1, 0);
  last.mutable_batch()->mutable_job_end()->set_end_ns(test::kJobStartNs + 1);
  committer.Submit(stream, job, Hello(1), 1);
  committer.Submit(stream, job, std::move(last), 1);
  EXPECT_TRUE(stream->AwaitCommit(1));
}

TEST_F(CommitterTest, RejectsTheRunThatNamesAnUnknownApiAndTakesTheRest) {
  Committer committer(*store_, {});
  auto stream = std::make_shared<Listener>();
  std::string job = test::MakeJobId(1);
  committer.Submit(stream, job, Hello(1), 1);
  lull::v1::IngestRequest mixed = Batch(1, 0, 99);
  test::TestEvent event;
  event.type = 3;
  event.api = test::kApiSync;
  test::AddRun(*mixed.mutable_batch(), 1, 1, 0, {event, event});
  committer.Submit(stream, job, std::move(mixed), 1);
  committer.Submit(stream, job, Batch(2, 1), 1);
  ASSERT_TRUE(stream->AwaitCommit(2));
  std::vector<lull::v1::RejectedRun> rejected = stream->rejected();
  ASSERT_EQ(rejected.size(), 1u);
  EXPECT_EQ(rejected[0].sequence(), 1u);
  EXPECT_EQ(rejected[0].process_key(), 1u);
  EXPECT_EQ(rejected[0].ring(), 0u);
  EXPECT_EQ(rejected[0].events(), 1u);
  EXPECT_THAT(rejected[0].why(), ::testing::HasSubstr("rings.events.api names 99"));
  EXPECT_EQ(Stored(), 3u);
}

TEST_F(CommitterTest, HoldsBackAStreamWhileTheQueueIsFull) {
  CommitterOptions options;
  options.max_queue_bytes = 100;
  Committer committer(*store_, options);
  auto stream = std::make_shared<Listener>();
  EXPECT_FALSE(committer.Submit(stream, test::MakeJobId(1), Hello(1), 1000));
  EXPECT_TRUE(stream->AwaitResumption());
}

TEST_F(CommitterTest, RefusesAJobWhileItIsDeletedAndTakesItAnewAfterwards) {
  storage::JobRow job;
  job.uuid = test::MakeJobId(1);
  storage::StoreWriter& writer = store_->writer();
  ASSERT_TRUE(writer.Begin().ok());
  ASSERT_TRUE(writer.PutJob(job).ok());
  ASSERT_TRUE(writer.Commit().ok());
  ASSERT_TRUE(writer.MarkForDeletion(job.id).ok());

  CommitterOptions options;
  auto early = std::make_shared<Listener>();
  auto other = std::make_shared<Listener>();
  auto late = std::make_shared<Listener>();
  Committer committer(*store_, options);
  committer.Submit(early, test::MakeJobId(1), Hello(1), 1);
  committer.Submit(other, test::MakeJobId(2), Hello(2), 1);
  committer.Submit(other, test::MakeJobId(2), Batch(1, 0), 1);
  ASSERT_TRUE(other->AwaitCommit(1));
  // Retention may have been faster than the first Hello.
  for (int i = 0; i < 100; ++i) {
    late = std::make_shared<Listener>();
    committer.Submit(late, test::MakeJobId(1), Hello(1), 1);
    committer.Submit(late, test::MakeJobId(1), Batch(1, 0), 1);
    if (late->AwaitEither(1)) break;
  }
  EXPECT_EQ(late->committed(), 1u);
  EXPECT_EQ(Stored(), 2u);
}

// A commit that fails: the store refuses every write until it is let go.
class BrokenWriter : public storage::StoreWriter {
 public:
  explicit BrokenWriter(storage::StoreWriter& real) : real_(real) {}
  std::atomic<bool> broken{false};
  std::string broken_while;  // there is such a job, also one that is being deleted

  absl::Status Begin() override { return real_.Begin(); }
  absl::Status Commit() override {
    bool full =
        !broken_while.empty() && (!real_.reader().FindJob(broken_while)->empty() ||
                                  *real_.reader().IsBeingDeleted(broken_while));
    if (!broken && !full) return real_.Commit();
    real_.Rollback();
    return absl::ResourceExhaustedError("database or disk is full");
  }
  void Rollback() override { real_.Rollback(); }
  storage::StoreReader& reader() override { return real_.reader(); }
  absl::Status PutJob(storage::JobRow& row) override { return real_.PutJob(row); }
  absl::Status PutProcess(storage::ProcessRow& row) override {
    return real_.PutProcess(row);
  }
  absl::Status PutStretch(int64_t j, const storage::StretchRow& row) override {
    return real_.PutStretch(j, row);
  }
  absl::Status PutClock(const storage::ClockRow& row) override {
    return real_.PutClock(row);
  }
  absl::Status PutRing(int64_t p, const storage::RingRow& row) override {
    return real_.PutRing(p, row);
  }
  absl::Status PutApi(int64_t j, const storage::ApiRow& row) override {
    return real_.PutApi(j, row);
  }
  absl::Status PutFrame(int64_t j, const storage::FrameRow& row) override {
    return real_.PutFrame(j, row);
  }
  absl::Status PutStack(int64_t j, const storage::StackRow& row) override {
    return real_.PutStack(j, row);
  }
  absl::Status PutRef(int64_t p, const storage::RefRow& row) override {
    return real_.PutRef(p, row);
  }
  absl::Status PutKernelName(int64_t j, const storage::KernelNameRow& row) override {
    return real_.PutKernelName(j, row);
  }
  absl::Status PutKernel(int64_t j, const storage::KernelRow& row) override {
    return real_.PutKernel(j, row);
  }
  absl::Status PutGpuStream(int64_t j, const storage::GpuStreamRow& row) override {
    return real_.PutGpuStream(j, row);
  }
  absl::Status PutGpuDevice(int64_t p, const storage::GpuDeviceRow& row) override {
    return real_.PutGpuDevice(p, row);
  }
  absl::Status PutTracing(int64_t p, const storage::TracingRow& row) override {
    return real_.PutTracing(p, row);
  }
  absl::Status PutNonFinite(int64_t p, const storage::NonFiniteRow& row) override {
    return real_.PutNonFinite(p, row);
  }
  absl::Status PutStep(int64_t p, const storage::StepRow& row) override {
    return real_.PutStep(p, row);
  }
  absl::Status PutStepMemory(int64_t p, const storage::StepMemoryRow& row) override {
    return real_.PutStepMemory(p, row);
  }
  absl::Status ThinStepMemory(int64_t p, uint64_t stride) override {
    return real_.ThinStepMemory(p, stride);
  }
  absl::Status PutSite(int64_t j, const storage::SiteRow& row) override {
    return real_.PutSite(j, row);
  }
  absl::Status PutSeries(int64_t p, const storage::SeriesRow& row) override {
    return real_.PutSeries(p, row);
  }
  absl::Status PutChunk(const storage::ChunkKey& key,
                        const storage::CellChunk& chunk) override {
    return real_.PutChunk(key, chunk);
  }
  absl::Status AppendEvents(const storage::ProcessRow& p, uint32_t ring, uint64_t first,
                            const std::vector<aggregate::Event>& events) override {
    return real_.AppendEvents(p, ring, first, events);
  }
  absl::Status PutLiveBlock(int64_t p, const aggregate::BlockKey& key,
                            const aggregate::LiveBlock& block) override {
    return real_.PutLiveBlock(p, key, block);
  }
  absl::Status DeleteLiveBlock(int64_t p, const aggregate::BlockKey& key) override {
    return real_.DeleteLiveBlock(p, key);
  }
  absl::Status DeleteLiveBlocks(int64_t p) override {
    return real_.DeleteLiveBlocks(p);
  }
  absl::Status MarkForDeletion(int64_t j) override { return real_.MarkForDeletion(j); }
  absl::StatusOr<bool> DeleteSome() override { return real_.DeleteSome(); }
  void UseReserve() override { real_.UseReserve(); }
  void KeepReserve() override { real_.KeepReserve(); }
  absl::StatusOr<uint64_t> UsedBytes() override { return real_.UsedBytes(); }

 private:
  storage::StoreWriter& real_;
};

class BrokenStore : public storage::Store {
 public:
  explicit BrokenStore(storage::Store& real) : real_(real), writer_(real.writer()) {}
  BrokenWriter& writer() override { return writer_; }
  absl::StatusOr<std::unique_ptr<storage::StoreReader>> NewReader() override {
    return real_.NewReader();
  }

 private:
  storage::Store& real_;
  BrokenWriter writer_;
};

TEST_F(CommitterTest, RefusesWhatItCannotStoreAndTakesItWhenSentAgain) {
  BrokenStore store(*store_);
  Committer committer(store, {});
  std::string job = test::MakeJobId(1);
  auto first = std::make_shared<Listener>();
  committer.Submit(first, job, Hello(1), 1);
  committer.Submit(first, job, Batch(1, 0), 1);
  ASSERT_TRUE(first->AwaitCommit(1));

  store.writer().broken = true;
  committer.Submit(first, job, Batch(2, 1), 1);
  ASSERT_TRUE(first->AwaitFailure());
  EXPECT_EQ(first->failure().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(first->committed(), 1u);
  store.writer().broken = false;

  auto second = std::make_shared<Listener>();
  committer.Submit(second, job, Hello(1), 1);
  committer.Submit(second, job, Batch(2, 1), 1);
  committer.Submit(second, job, Batch(3, 2), 1);
  ASSERT_TRUE(second->AwaitCommit(3));
  EXPECT_EQ(Stored(), 3u);
}

TEST_F(CommitterTest, MakesRoomOnAFullDiskByTheOldestJobAndHeals) {
  storage::JobRow old;
  old.uuid = test::MakeJobId(77);
  old.ended = true;
  ASSERT_TRUE(store_->writer().Begin().ok());
  ASSERT_TRUE(store_->writer().PutJob(old).ok());
  ASSERT_TRUE(store_->writer().Commit().ok());
  BrokenStore store(*store_);
  store.writer().broken_while = old.uuid;
  Committer committer(store, {});
  std::string job = test::MakeJobId(1);
  int refused = 0;
  auto stream = std::make_shared<Listener>();
  for (int i = 0; i < 200 && stream->committed() == 0; ++i) {  // as a relay does
    stream = std::make_shared<Listener>();
    committer.Submit(stream, job, Hello(1), 1);
    committer.Submit(stream, job, Batch(1, 0), 1);
    if (stream->AwaitEither(1)) break;
    ++refused;
    EXPECT_EQ(stream->failure().code(), absl::StatusCode::kUnavailable);
  }
  EXPECT_EQ(stream->committed(), 1u);
  EXPECT_GT(refused, 0);
  EXPECT_EQ(Stored(), 1u);
}

TEST_F(CommitterTest, DeletesNoJobThatSleepsAndHasARelay) {
  storage::JobRow sleeping;
  sleeping.uuid = test::MakeJobId(77);
  sleeping.dormant = true;
  storage::JobRow dead = sleeping;
  dead.uuid = test::MakeJobId(78);
  storage::StoreWriter& writer = store_->writer();
  ASSERT_TRUE(writer.Begin().ok());
  ASSERT_TRUE(writer.PutJob(sleeping).ok());  // touched in 1970
  ASSERT_TRUE(writer.PutJob(dead).ok());
  ASSERT_TRUE(writer.PutClock({uint64_t{1} << 60, 0, 0, ""}).ok());
  ASSERT_TRUE(writer.Commit().ok());
  CommitterOptions options;
  options.retention.settle = absl::ZeroDuration();
  options.has_relay = [&](const std::string& job) { return job == sleeping.uuid; };
  Committer committer(*store_, options);
  auto left = [&] { return store_->NewReader().value()->Jobs(0).value().size(); };
  for (int i = 0; i < 2000 && left() > 1; ++i) absl::SleepFor(absl::Milliseconds(10));
  auto jobs = store_->NewReader().value()->Jobs(0).value();
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs.front().uuid, sleeping.uuid);
}

}  // namespace
}  // namespace lull::collector
