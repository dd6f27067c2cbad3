// Every number of every report equals that of a brute-force model, over random
// events, any range, grouping and process, with restarts, duplicates and overlaps.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "daemon/base/event_views.h"
#include "tests/daemon/query/model.h"
#include "tests/daemon/query/pipeline.h"
#include "tests/daemon/units.h"
#include "tests/trials.h"

namespace lull::test {
namespace {

constexpr uint32_t kRings = 3;

class RandomJob {
 public:
  explicit RandomJob(uint32_t seed) : random_(seed) {}

  // Events in the order in which they end, which is that of recording.
  std::vector<ModelEvent> Make(size_t count, uint64_t span_ns) {
    std::vector<ModelEvent> events;
    uint64_t now = kJobStartNs - kSecond;  // a little before the job's own start
    for (size_t i = 0; i < count; ++i) {
      now += 50'000 + Below(2 * span_ns / count);
      events.push_back(
          {1 + Below(2), static_cast<uint32_t>(Below(kRings)), MakeEvent(now)});
    }
    return events;
  }

  uint64_t Below(uint64_t limit) { return random_() % limit; }

 private:
  TestEvent MakeEvent(uint64_t now) {
    TestEvent event;
    event.python = static_cast<uint32_t>(Below(kPythonStacks + 1));
    if (event.python == 0) event.native = Stack();
    switch (Below(6)) {
      case 0:
        event.type = v1::EVENT_TYPE_LAUNCH;
        event.api = kApiLaunch;
        break;
      case 1:
        event.type = v1::EVENT_TYPE_SYNC;
        event.api = kApiSync;
        CopyCallView{event}.set_bytes(Below(4096));
        event.native = Stack();
        break;
      case 2:
        event.type = v1::EVENT_TYPE_GC_PAUSE;
        GcPauseView{event}.set_collected(Below(50));
        GcPauseView{event}.set_uncollectable(Below(3));
        GcPauseView{event}.set_generation(static_cast<uint32_t>(Below(3)));
        event.native = 0;
        break;
      case 3:
        event.type = v1::EVENT_TYPE_HOST_WAIT;
        event.api = Below(2) == 0 ? kApiPoll : kApiTimedWait;
        event.flags = Below(2) == 0 ? 32 : 0;
        event.native = 0;  // a wait has a Python stack or none
        break;
      default:
        return MakeMemory(event, now);
    }
    event.duration_ns = Below(20) == 0 ? Below(15 * kSecond) : Below(50'000'000);
    event.start_ns = now - event.duration_ns;
    return event;
  }

  TestEvent MakeMemory(TestEvent event, uint64_t now) {
    bool device = Below(3) == 0;
    event.type = device ? v1::EVENT_TYPE_DEVICE_MEMORY : v1::EVENT_TYPE_TORCH_MEMORY;
    event.api = device ? kApiMalloc : kApiTorch;
    event.flags = static_cast<uint32_t>(Below(2));  // free or not
    if (device && Below(3) == 0) event.flags |= 2;
    const MemoryView memory{event};
    if (!device && Below(2) == 0) memory.set_device(TorchCuda(0));
    event.native = Stack();
    // Few addresses, so that frees are lost and come without an allocation.
    memory.set_address(4096 * (1 + Below(40)));
    memory.set_bytes(1 + Below(100'000));
    if (device && (event.flags & 1) != 0) memory.set_bytes(0);
    event.duration_ns = device ? Below(20'000) : 0;
    event.start_ns = now - event.duration_ns;
    return event;
  }

  uint32_t Stack() {
    return kPythonStacks + 1 + static_cast<uint32_t>(Below(kNativeStacks));
  }

  std::mt19937_64 random_;
};

// Feeds a job through the pipeline as an unreliable world would.
class Feeder {
 public:
  Feeder(Pipeline& pipeline, RandomJob& choose, bool restarts)
      : pipeline_(pipeline), choose_(choose), restarts_(restarts) {}

  void Feed(const std::vector<ModelEvent>& events) {
    for (size_t at = 0; at < events.size();) {
      size_t count = std::min<size_t>(1 + choose_.Below(400), events.size() - at);
      lull::v1::Batch batch =
          MakeBatch({events.begin() + static_cast<ptrdiff_t>(at),
                     events.begin() + static_cast<ptrdiff_t>(at + count)});
      pipeline_.Apply(batch);
      if (choose_.Below(4) == 0) pipeline_.Apply(batch);  // sent twice
      if (choose_.Below(5) == 0 && sent_.size() > 2) {    // a late duplicate
        pipeline_.Apply(sent_[choose_.Below(sent_.size())]);
      }
      sent_.push_back(batch);
      if (choose_.Below(3) == 0) Commit();
      if (restarts_ && choose_.Below(10) == 0) RestartAndResend();
      at += count;
    }
    Commit();
  }

 private:
  void Commit() {
    pipeline_.Commit();
    committed_ = sent_.size();
  }

  void RestartAndResend() {
    pipeline_.Restart();
    // A relay resends all that was not acknowledged, and perhaps a little more.
    size_t from = committed_ - std::min<size_t>(committed_, choose_.Below(3));
    for (size_t i = from; i < sent_.size(); ++i) pipeline_.Apply(sent_[i]);
  }

  lull::v1::Batch MakeBatch(const std::vector<ModelEvent>& events) {
    lull::v1::Batch batch;
    batch.set_sequence(sent_.size() + 1);
    for (uint64_t process : {1, 2}) {
      if (sent_.empty()) {
        *batch.add_processes() =
            MakeProcess(process, 100 + static_cast<uint32_t>(process), 0);
        AddStacks(batch, process);
      }
      for (uint32_t ring = 0; ring < kRings; ++ring)
        AddRing(batch, process, ring, events);
    }
    return batch;
  }

  // In one run or two, and some events that were in an earlier batch once more.
  void AddRing(lull::v1::Batch& batch, uint64_t process, uint32_t ring,
               const std::vector<ModelEvent>& events) {
    std::vector<TestEvent>& all = rings_[process * kRings + ring];
    size_t before = all.size();
    for (const ModelEvent& e : events) {
      if (e.process == process && e.ring == ring) all.push_back(e.event);
    }
    size_t from = before - std::min<size_t>(before, choose_.Below(5));
    size_t cut = from + choose_.Below(all.size() - from + 1);
    auto at = [&](size_t i) { return all.begin() + static_cast<ptrdiff_t>(i); };
    AddRun(batch, process, ring, from, {at(from), at(cut)});
    AddRun(batch, process, ring, cut, {at(cut), all.end()});
  }

  Pipeline& pipeline_;
  RandomJob& choose_;
  const bool restarts_;
  std::vector<lull::v1::Batch> sent_;
  size_t committed_ = 0;
  std::map<uint64_t, std::vector<TestEvent>> rings_;
};

void ExpectSame(const ModelReport& got, const ModelReport& want,
                const std::string& what) {
  for (const auto& [key, row] : want) {
    auto it = got.find(key);
    if (it == got.end()) {
      ADD_FAILURE() << what << ": no row " << key << ", expected " << row;
    } else {
      EXPECT_EQ(it->second, row) << what << ": " << key;
    }
  }
  for (const auto& [key, row] : got) {
    EXPECT_TRUE(want.contains(key)) << what << ": unexpected " << key << " " << row;
  }
}

void Compare(Pipeline& pipeline, const std::vector<ModelEvent>& events,
             const ModelQuery& query) {
  lull::v1::ReportRequest request;
  request.set_group_by(query.by);
  if (query.process != 0) request.set_pid(100 + static_cast<uint32_t>(query.process));
  if (query.since != 0) request.set_since_ns(query.since);
  if (query.until != UINT64_MAX) request.set_until_ns(query.until);
  lull::v1::ReportReply reply = pipeline.Report(request);
  ExpectSame(FromReply(reply.syncs(), query.by), ModelSyncs(events, query), "syncs");
  ExpectSame(FromReply(reply.gc(), query.by), ModelGc(events, query), "gc");
  ExpectSame(FromReply(reply.waits(), query.by), ModelWaits(events, query), "waits");
  ExpectSame(FromReply(reply.allocations(), query.by), ModelAllocations(events, query),
             "allocations");
}

class Range : public ::testing::TestWithParam<uint32_t> {};

TEST_P(Range, OfAnyReportEqualsTheModelExactly) {
  RandomJob job(GetParam());
  // From one bucket to several of the second level.
  const uint64_t span = kSecond * (5 + 400 * (GetParam() % 3));
  std::vector<ModelEvent> events = job.Make(4000, span);
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  Feeder(pipeline, job, GetParam() % 2 == 0).Feed(events);
  ASSERT_FALSE(::testing::Test::HasFailure());

  Compare(pipeline, events, {});
  for (int i = 0; i < 25 && !::testing::Test::HasFailure(); ++i) {
    ModelQuery query;
    query.by = static_cast<lull::v1::GroupBy>(job.Below(3));
    query.process = job.Below(3);
    if (job.Below(4) != 0) query.since = job.Below(span);
    if (job.Below(4) != 0) query.until = query.since + job.Below(span);
    if (job.Below(4) == 0) query.since -= query.since % kSecond;
    SCOPED_TRACE(::testing::Message()
                 << "by " << query.by << " process " << query.process << " since "
                 << query.since << " until " << query.until);
    Compare(pipeline, events, query);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Range, ::testing::Range(1u, Trials(13u, 4u)));

TEST(EventsStored, EqualWhatTheModelHasWhateverWasSentTwice) {
  RandomJob job(99);
  std::vector<ModelEvent> events = job.Make(5000, 60 * kSecond);
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  Feeder(pipeline, job, true).Feed(events);
  lull::v1::ReportReply reply = pipeline.Report({});
  EXPECT_EQ(reply.losses().events_stored(), events.size());
  EXPECT_EQ(reply.job().events(), events.size());
  EXPECT_EQ(reply.losses().events_lost(), 0u);
  EXPECT_EQ(reply.launches(),
            std::count_if(events.begin(), events.end(), [](const auto& e) {
              return e.event.type == v1::EVENT_TYPE_LAUNCH;
            }));
}

}  // namespace
}  // namespace lull::test
