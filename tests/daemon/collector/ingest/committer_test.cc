#include "daemon/collector/ingest/committer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#include <tuple>

#include "absl/time/clock.h"
#include "daemon/storage/store.h"
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

auto Parts(const aggregate::Event& e) {
  return std::make_tuple(e.start_ns, e.duration_ns, e.arg0, e.arg1, e.arg2, e.flags,
                         e.tid, e.series, e.released_series, e.released_bytes);
}

absl::Status DiskFull() {
  return absl::ResourceExhaustedError("database or disk is full");
}

class CommitterTest : public ::testing::Test {
 protected:
  void SetUp() override { store_ = *storage::Store::Open(directory_ / "a.db"); }

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
    event.type = v1::EVENT_TYPE_SYNC;
    event.api = api;
    test::AddRun(*request.mutable_batch(), 1, 0, position, {event});
    return request;
  }

  uint64_t Stored() {
    auto reader = *store_->NewReader();
    uint64_t stored = 0;
    const auto jobs = reader->catalogue().Jobs(0).value();
    for (const storage::JobRow& job : jobs) {
      const auto processes =
          reader->catalogue().All<storage::ProcessRow>(job.id).value();
      for (const storage::ProcessRow& process : processes) {
        const auto rings =
            reader->catalogue().All<storage::RingRow>(process.id).value();
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

// Relays keep to it by themselves; one that is started again begins to count anew, and
// a hostile one never did.
TEST_F(CommitterTest, KeepsNoMoreSourceTextThanOneRelayDoes) {
  struct Text {
    uint32_t lines, bytes;
  };
  for (const Text& text : {Text{9000, 1}, Text{3000, 500}}) {
    const uint32_t job_number = text.lines;
    const std::string job = test::MakeJobId(job_number);
    uint32_t line = 1;
    for (int relay = 0; relay < 2; ++relay) {
      Committer committer(*store_, {});
      auto stream = std::make_shared<Listener>();
      committer.Submit(stream, job, Hello(job_number), 1);
      const uint64_t sequence = static_cast<uint64_t>(relay) + 1;
      lull::v1::IngestRequest request = Batch(sequence, sequence - 1);
      for (uint32_t i = 0; i < text.lines / 2; ++i, ++line) {
        lull::v1::SourceDef* source = request.mutable_batch()->add_sources();
        source->set_file("/a.py");
        source->set_line(line);
        source->set_first_line(line);
        source->add_lines(std::string(text.bytes, 'x'));
      }
      committer.Submit(stream, job, std::move(request), 1);
      ASSERT_TRUE(stream->AwaitCommit(sequence));
    }
    auto reader = *store_->NewReader();
    const auto jobs = reader->catalogue().FindJob(job).value();
    ASSERT_EQ(jobs.size(), 1u);
    const auto kept = reader->catalogue().All<storage::SourceRow>(jobs[0].id).value();
    size_t bytes = 0;
    for (const storage::SourceRow& row : kept) bytes += row.def.ByteSizeLong();
    EXPECT_LE(kept.size(), 4096u);
    EXPECT_LE(bytes, size_t{1} << 20);
    EXPECT_GT(kept.size(), 1500u) << "and not much less";
  }
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
  event.type = v1::EVENT_TYPE_SYNC;
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
  job.info.set_id(test::MakeJobId(1));
  storage::StoreWriter& writer = store_->writer();
  ASSERT_TRUE(writer.Begin().ok());
  ASSERT_TRUE(writer.catalogue().PutJob(job).ok());
  ASSERT_TRUE(writer.Commit().ok());
  ASSERT_TRUE(writer.catalogue().MarkForDeletion(job.id).ok());

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

TEST_F(CommitterTest, RefusesWhatItCannotStoreAndTakesItWhenSentAgain) {
  std::atomic<bool> broken{false};
  store_->writer().database().InjectFault([&](std::string_view sql) {
    return sql == "COMMIT" && broken ? DiskFull() : absl::OkStatus();
  });
  Committer committer(*store_, {});
  std::string job = test::MakeJobId(1);
  auto first = std::make_shared<Listener>();
  committer.Submit(first, job, Hello(1), 1);
  committer.Submit(first, job, Batch(1, 0), 1);
  ASSERT_TRUE(first->AwaitCommit(1));

  broken = true;
  committer.Submit(first, job, Batch(2, 1), 1);
  ASSERT_TRUE(first->AwaitFailure());
  EXPECT_EQ(first->failure().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(first->committed(), 1u);
  broken = false;

  auto second = std::make_shared<Listener>();
  committer.Submit(second, job, Hello(1), 1);
  committer.Submit(second, job, Batch(2, 1), 1);
  committer.Submit(second, job, Batch(3, 2), 1);
  ASSERT_TRUE(second->AwaitCommit(3));
  EXPECT_EQ(Stored(), 3u);
}

TEST_F(CommitterTest, MakesRoomOnAFullDiskByTheOldestJobAndHeals) {
  storage::JobRow old;
  old.info.set_id(test::MakeJobId(77));
  old.ended = true;
  ASSERT_TRUE(store_->writer().Begin().ok());
  ASSERT_TRUE(store_->writer().catalogue().PutJob(old).ok());
  ASSERT_TRUE(store_->writer().Commit().ok());
  // Nothing can be added for as long as something of the old job is there.
  storage::StoreWriter& writer = store_->writer();
  writer.database().InjectFault([&](std::string_view sql) {
    const bool full = sql.starts_with("INSERT") &&
                      (!writer.catalogue().FindJob(old.info.id())->empty() ||
                       *writer.catalogue().IsBeingDeleted(old.info.id()));
    return full ? DiskFull() : absl::OkStatus();
  });
  Committer committer(*store_, {});
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

TEST_F(CommitterTest, WritesForOthersBetweenCommits) {
  Committer committer(*store_, {});
  auto stream = std::make_shared<Listener>();
  std::string job = test::MakeJobId(1);
  auto hello = Hello(1);
  hello.mutable_hello()->mutable_job()->add_tags("told");
  committer.Submit(stream, job, hello, 1);
  committer.Submit(stream, job, Batch(1, 0), 1);
  ASSERT_TRUE(stream->AwaitCommit(1));
  auto marks = [&] {
    return (*store_->NewReader())->catalogue().FindJob(job)->at(0).marks;
  };
  EXPECT_EQ(marks().ShortDebugString(), "tags: \"told\"");
  auto mark = [&](storage::StoreWriter& writer) -> absl::Status {
    storage::JobRow row = writer.catalogue().FindJob(job)->at(0);
    row.marks.mutable_tags()->Clear();
    row.marks.set_pinned(true);
    return writer.catalogue().PutMarks(row.id, row.marks);
  };
  ASSERT_TRUE(committer.Write(mark).ok());
  EXPECT_EQ(marks().ShortDebugString(), "pinned: true");
  // The relay that goes on, or says Hello again, does not know of it.
  committer.Submit(stream, job, hello, 1);
  committer.Submit(stream, job, Batch(2, 1), 1);
  ASSERT_TRUE(stream->AwaitCommit(2));
  EXPECT_EQ(marks().ShortDebugString(), "pinned: true");
  auto fails = [&](storage::StoreWriter& writer) -> absl::Status {
    storage::JobRow row = writer.catalogue().FindJob(job)->at(0);
    EXPECT_TRUE(writer.catalogue().PutMarks(row.id, {}).ok());
    return absl::NotFoundError("no");
  };
  EXPECT_EQ(committer.Write(fails).message(), "no");
  EXPECT_EQ(marks().ShortDebugString(), "pinned: true") << "all or nothing";
  committer.Stop();
  EXPECT_EQ(committer.Write(mark).code(), absl::StatusCode::kUnavailable);
}

TEST_F(CommitterTest, CommitsAlsoWhileBatchesComeWithoutEnd) {
  CommitterOptions options;
  options.interval = absl::ZeroDuration();
  options.busy_interval = absl::Milliseconds(20);
  Committer committer(*store_, options);
  auto stream = std::make_shared<Listener>();
  std::string job = test::MakeJobId(1);
  committer.Submit(stream, job, Hello(1), 1);
  uint64_t sequence = 1;
  for (; stream->committed() == 0 && sequence < 10'000'000; ++sequence) {
    committer.Submit(stream, job, Batch(sequence, sequence - 1), 1);
  }
  EXPECT_GT(stream->committed(), 0u) << "of " << sequence;
}

// Blocks that are full are packed before they are stored; what comes in small parts is
// not, and is merged later.
TEST_F(CommitterTest, StoresTheSameInWhateverPartsItComes) {
  constexpr uint64_t kEvents = 30'000, kHole = 12'345, kLost = 7;
  std::vector<test::TestEvent> events;
  for (uint64_t i = 0; i < kEvents; ++i) {
    test::TestEvent& event = events.emplace_back();
    event.start_ns += i * 1000;
    if (i % 3 == 0) {
      event.type = v1::EVENT_TYPE_SYNC;
      event.api = test::kApiSync;
      event.duration_ns = i;
      continue;
    }
    // A free is told whose block it was, some 9,000 events later.
    event.type = v1::EVENT_TYPE_TORCH_MEMORY;
    event.arg0 = 4096 * (i % 3 == 1 || i < 9000 ? i : i - 9000 - 1);
    event.arg1 = 512;
    if (i % 3 == 2 && i >= 9000) event.flags = aggregate::kFlagFree;
  }
  auto stored = [&](uint32_t number, uint64_t part) {
    CommitterOptions options;
    options.interval = options.busy_interval = absl::ZeroDuration();
    Committer committer(*store_, options);
    auto stream = std::make_shared<Listener>();
    const std::string job = test::MakeJobId(number);
    committer.Submit(stream, job, Hello(number), 1);
    uint64_t sequence = 0;
    for (uint64_t at = 0; at < kEvents;) {
      const uint64_t end = std::min(at < kHole ? kHole : kEvents, at + part);
      lull::v1::IngestRequest request;
      request.mutable_batch()->set_sequence(++sequence);
      test::AddRun(*request.mutable_batch(), 1, 0, at < kHole ? at : at + kLost,
                   {events.begin() + static_cast<ptrdiff_t>(at),
                    events.begin() + static_cast<ptrdiff_t>(end)});
      committer.Submit(stream, job, std::move(request), 1);
      if (sequence % 4 == 0) {
        EXPECT_TRUE(stream->AwaitCommit(sequence));
      }
      at = end;
    }
    EXPECT_TRUE(stream->AwaitCommit(sequence));
    committer.Stop();
    auto reader = *store_->NewReader();
    const auto jobs = reader->catalogue().FindJob(job).value();
    const auto processes =
        reader->catalogue().All<storage::ProcessRow>(jobs.front().id).value();
    std::vector<aggregate::Event> read;
    EXPECT_TRUE(
        reader->events()
            .ReadRing(processes.front().id, 0, 0, aggregate::kForever,
                      [&](const aggregate::Event& event) { read.push_back(event); })
            .ok());
    return read;
  };
  const auto small = stored(1, 250);
  ASSERT_EQ(small.size(), kEvents);
  for (uint64_t part : {uint64_t{5000}, uint64_t{8192}, kEvents}) {
    const auto large = stored(static_cast<uint32_t>(part), part);
    ASSERT_EQ(large.size(), kEvents) << part;
    for (size_t i = 0; i < kEvents; ++i) {
      ASSERT_EQ(Parts(large[i]), Parts(small[i])) << "event " << i << ", by " << part;
    }
  }
}

TEST_F(CommitterTest, LetsAStreamBeOneStepAheadAndOthersToo) {
  CommitterOptions options;
  options.max_stream_bytes = 1000;
  Committer committer(*store_, options);
  std::promise<void> begun, go_on;
  std::thread writer([&] {
    EXPECT_TRUE(committer
                    .Write([&](storage::StoreWriter&) {
                      begun.set_value();
                      go_on.get_future().wait();
                      return absl::OkStatus();
                    })
                    .ok());
  });
  begun.get_future().wait();
  auto eager = std::make_shared<Listener>(), other = std::make_shared<Listener>();
  const std::string job = test::MakeJobId(1);
  EXPECT_TRUE(committer.Submit(eager, job, Hello(1), 100));
  EXPECT_TRUE(committer.Submit(eager, job, Batch(1, 0), 500));
  EXPECT_FALSE(committer.Submit(eager, job, Batch(2, 1), 500));
  EXPECT_TRUE(committer.Submit(other, test::MakeJobId(2), Hello(2), 500));
  go_on.set_value();
  EXPECT_TRUE(eager->AwaitResumption());
  EXPECT_TRUE(committer.Submit(eager, job, Batch(3, 2), 500));
  EXPECT_TRUE(eager->AwaitCommit(3));
  writer.join();
}

// While batches come without end, whoever waits must get a turn.
TEST_F(CommitterTest, WritesForOthersAlsoWhileAGroupWaitsForMore) {
  CommitterOptions options;
  options.interval = absl::Seconds(100);
  Committer committer(*store_, options);
  auto stream = std::make_shared<Listener>();
  std::string job = test::MakeJobId(1);
  committer.Submit(stream, job, Hello(1), 1);
  committer.Submit(stream, job, Batch(1, 0), 1);
  ASSERT_TRUE(
      committer.Write([](storage::StoreWriter&) { return absl::OkStatus(); }).ok());
  EXPECT_TRUE(stream->AwaitCommit(1)) << "the group was committed first";
}

TEST_F(CommitterTest, DeletesNoJobThatSleepsAndHasARelay) {
  storage::JobRow sleeping;
  sleeping.info.set_id(test::MakeJobId(77));
  sleeping.info.set_dormant(true);
  storage::JobRow dead = sleeping;
  dead.info.set_id(test::MakeJobId(78));
  storage::StoreWriter& writer = store_->writer();
  ASSERT_TRUE(writer.Begin().ok());
  ASSERT_TRUE(writer.catalogue().PutJob(sleeping).ok());  // touched in 1970
  ASSERT_TRUE(writer.catalogue().PutJob(dead).ok());
  ASSERT_TRUE(writer.catalogue().PutClock({uint64_t{1} << 60, 0, 0, ""}).ok());
  ASSERT_TRUE(writer.Commit().ok());
  CommitterOptions options;
  options.retention.settle = absl::ZeroDuration();
  options.has_relay = [&](const std::string& job) { return job == sleeping.info.id(); };
  Committer committer(*store_, options);
  auto left = [&] {
    return store_->NewReader().value()->catalogue().Jobs(0).value().size();
  };
  for (int i = 0; i < 2000 && left() > 1; ++i) absl::SleepFor(absl::Milliseconds(10));
  auto jobs = store_->NewReader().value()->catalogue().Jobs(0).value();
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs.front().info.id(), sleeping.info.id());
}

}  // namespace
}  // namespace lull::collector
