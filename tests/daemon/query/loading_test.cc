// What loading costs, by samples of known stacks: `lull data`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "daemon/base/event_views.h"
#include "preload/abi/event.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/query/pipeline.h"
#include "tests/daemon/units.h"

namespace lull::test::loading {
namespace {

struct LoaderFrame {
  const char* function;
  const char* file;
  int line;
};
using LoaderStack = std::vector<LoaderFrame>;  // innermost first

#define UTILS "/venv/lib/python3.11/site-packages/torch/utils/data/_utils/"
constexpr char kScript[] = "/home/u/train.py";
constexpr char kPil[] = "/venv/lib/python3.11/site-packages/PIL/Image.py";
constexpr char kTorchStorage[] = "/venv/lib/python3.11/site-packages/torch/storage.py";
constexpr char kQueues[] = "/usr/lib/python3.11/multiprocessing/queues.py";
constexpr char kThreading[] = "/usr/lib/python3.11/threading.py";
constexpr LoaderFrame kFetchFrame = {"_MapDatasetFetcher.fetch", UTILS "fetch.py", 52};
constexpr LoaderFrame kCollateFrame = {"default_collate", UTILS "collate.py", 398};
constexpr LoaderFrame kLoop = {"_worker_loop", UTILS "worker.py", 349};
constexpr LoaderFrame kLoad = {"Pictures.__getitem__", kScript, 41};
constexpr LoaderFrame kForked = {"main", kScript, 90};  // the stack of who forked it
constexpr LoaderFrame kNext = {
    "_BaseDataLoaderIter.__next__",
    "/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py", 708};

const LoaderStack kDecode = {{"Image.open", kPil, 7},
                             {"decode", kScript, 30},
                             kLoad,
                             kFetchFrame,
                             kLoop,
                             kForked};
const LoaderStack kAugment = {
    {"flip", kScript, 35}, kLoad, kFetchFrame, kLoop, kForked};
const LoaderStack kCollate = {
    {"collate_tensor_fn", UTILS "collate.py", 276}, kCollateFrame, kFetchFrame, kLoop};
const LoaderStack kShare = {
    {"_new_shared", kTorchStorage, 3}, kCollateFrame, kFetchFrame, kLoop, kForked};
const LoaderStack kWait = {{"wait", "/usr/lib/python3.11/selectors.py", 5},
                           {"Queue.get", kQueues, 113},
                           kLoop};
const LoaderStack kPut = {{"Queue.put", kQueues, 92}, kLoop, kForked};
const LoaderStack kLoopItself = {kLoop, kForked};
const LoaderStack kPickle = {
    {"reduce_storage", "/venv/lib/torch/multiprocessing/reductions.py", 620},
    {"Queue._feed", kQueues, 244},
    {"Thread.run", kThreading, 9}};
const LoaderStack kIdleFeeder = {{"Condition.wait", kThreading, 320},
                                 {"Queue._feed", kQueues, 231},
                                 {"Thread.run", kThreading, 9}};

constexpr uint32_t kExact = 0, kCut = 2, kFailed = 4;
constexpr uint32_t kMain = 0, kLoader = 3, kOther = 4;
constexpr uint32_t kRelayRing = 65535;

class Loading : public ::testing::Test {
 protected:
  Loading() : pipeline_(MakeHello(MakeJobId(1))) { batch_.set_sequence(1); }

  void AddProcess(uint64_t key, uint64_t worker_of) {
    lull::v1::ProcessInfo info = MakeProcess(key, 100 + static_cast<uint32_t>(key), 0);
    info.set_python_version("3.11");
    info.set_start_ns(kJobStartNs);
    info.set_worker_of(worker_of);
    *batch_.add_processes() = info;
    lull::v1::ProcessCounters* counters = batch_.add_counters();
    counters->set_process_key(key);
    if (worker_of == 0) counters->set_torch_allocations(1);
    counters->set_as_of_ns(kJobStartNs + 20 * kSecond);
    counters->mutable_host_samples()->set_taken(1);
    auto* end = batch_.add_process_ends();
    end->set_process_key(key);
    end->set_end_ns(kJobStartNs + 20 * kSecond);
  }

  uint32_t AddStack(uint64_t process, const LoaderStack& frames, bool native = false) {
    lull::v1::Batch::Stacks* stacks = batch_.add_stacks();
    stacks->set_process_key(process);
    lull::v1::StackDef* stack = stacks->add_stacks();
    stack->set_ref(++ref_);
    stack->set_native(native);
    for (const LoaderFrame& from : frames) {
      lull::v1::Frame* frame = stack->add_frames();
      frame->set_function(from.function);
      frame->set_file(from.file);
      frame->set_line(from.line);
    }
    return ref_;
  }

  // `count` looks, spread over 20 s, each for 100 ms of the thread's time.
  void Sample(uint64_t process, uint64_t count, const LoaderStack& frames,
              uint32_t role = kLoader, uint32_t quality = kExact) {
    const uint32_t stack = frames.empty() ? 0 : AddStack(process, frames);
    std::vector<TestEvent> events;
    for (uint64_t i = 0; i < count; ++i) {
      TestEvent event;
      event.type = lull::v1::EVENT_TYPE_HOST_SAMPLE;
      event.start_ns = kJobStartNs + i * 20 * kSecond / count;
      SampleView{event}.set_weight_ns(100 * kMs).set_look(0, quality).set_role(role);
      event.python = stack;
      events.push_back(event);
    }
    AddRun(batch_, process, kRelayRing, samples_[process], events);
    samples_[process] += count;
  }

  // `count` batches over 20 s, for each of which the training waited.
  void Ask(uint64_t process, uint64_t count, uint64_t waited_ns, const char* loader) {
    const uint32_t where = AddStack(process, {kForked});
    const uint32_t name = AddStack(process, {{loader, "", 0}}, true);
    std::vector<TestEvent> events;
    for (uint64_t i = 0; i < count; ++i) {
      TestEvent event;
      event.type = lull::v1::EVENT_TYPE_SCOPE;
      event.start_ns = kJobStartNs + i * 20 * kSecond / count;
      event.duration_ns = waited_ns;
      ScopeView{event}.set_place(1, 0).set_kind(abi::ScopeKind::kData);
      event.python = where;
      event.native = name;
      events.push_back(event);
    }
    AddRun(batch_, process, 0, 0, events);
  }

  lull::v1::DataLoading Report(uint32_t top = 0) {
    pipeline_.Apply(batch_);
    pipeline_.Commit();
    lull::v1::ReportRequest request;
    request.add_sections(lull::v1::SECTION_DATA);
    request.set_top(top);
    return pipeline_.Report(request).data();
  }

  static const lull::v1::LoaderLine* Line(const lull::v1::DataLoading& data,
                                          const std::string& function) {
    for (const auto& line : data.lines()) {
      if (line.site().function() == function) return &line;
    }
    return nullptr;
  }
  template <typename Rows>
  static double PartShare(const Rows& rows, lull::v1::LoaderPart part) {
    for (const auto& row : rows) {
      if (row.part() == part) return row.share().percent();
    }
    return 0;
  }

  lull::v1::Batch batch_;
  Pipeline pipeline_;
  uint32_t ref_ = 0;
  std::map<uint64_t, uint64_t> samples_;
};

constexpr char kMultiNext[] =
    "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";
constexpr char kSingleNext[] =
    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";

// The frame of __next__ is there before its scope begins and after it ended.
TEST_F(Loading, CountsCallsAndNotTheWaitsAroundThem) {
  AddProcess(1, 0);
  Ask(1, 3, 10 * kMs, kMultiNext);
  // Asking for the GIL, at the line that Ask() names.
  const uint32_t where = AddStack(1, {kNext, kForked});
  TestEvent wait;
  wait.type = lull::v1::EVENT_TYPE_HOST_WAIT;
  wait.api = kApiTimedWait;
  wait.start_ns = kJobStartNs + kSecond;
  wait.duration_ns = 20 * kMs;
  wait.python = where;
  AddRun(batch_, 1, 0, 3, {wait, wait});
  pipeline_.Apply(batch_);
  pipeline_.Commit();
  lull::v1::ReportRequest request;
  request.add_sections(lull::v1::SECTION_WAITS);
  const lull::v1::HostWaits waits = pipeline_.Report(request).waits();
  ASSERT_EQ(waits.host_waits_size(), 1) << waits.ShortDebugString();
  EXPECT_EQ(waits.host_waits(0).count(), 3u);
  EXPECT_EQ(waits.host_waits(0).api(), "DataLoader.__next__");
  EXPECT_EQ(waits.host_waits(0).total_ns(), 70 * kMs);
}

TEST_F(Loading, TellsWhatABatchCostsInTheWorkers) {
  AddProcess(1, 0);
  AddProcess(2, 1);
  Ask(1, 100, 10 * kMs, kMultiNext);
  Sample(2, 60, kDecode);
  Sample(2, 20, kAugment);
  Sample(2, 10, kCollate);
  Sample(2, 5, kShare);
  Sample(2, 2, kPut);
  Sample(2, 3, kLoopItself);
  Sample(2, 100, kWait);
  auto data = Report();
  EXPECT_EQ(data.batches(), 100u);
  const auto& workers = data.workers();
  EXPECT_EQ(workers.workers(), 1u);
  EXPECT_EQ(workers.owners(), 1u);
  EXPECT_DOUBLE_EQ(workers.busy().percent(), 50);
  EXPECT_EQ(workers.waiting_ns(), 10 * kSecond);
  EXPECT_DOUBLE_EQ(PartShare(workers.parts(), lull::v1::LOADER_PART_DATA_SET), 80);
  EXPECT_DOUBLE_EQ(PartShare(workers.parts(), lull::v1::LOADER_PART_COLLATE), 10);
  EXPECT_DOUBLE_EQ(PartShare(workers.parts(), lull::v1::LOADER_PART_TRANSFER), 7);
  EXPECT_DOUBLE_EQ(PartShare(workers.parts(), lull::v1::LOADER_PART_OTHER), 3);
  const auto* load = Line(data, "Pictures.__getitem__");
  ASSERT_NE(load, nullptr);
  EXPECT_DOUBLE_EQ(load->total().percent(), 80);
  EXPECT_EQ(load->own_samples(), 0u);
  const auto* decode = Line(data, "decode");
  ASSERT_NE(decode, nullptr);
  EXPECT_DOUBLE_EQ(decode->total().percent(), 60);
  EXPECT_DOUBLE_EQ(decode->own().percent(), 60);
  EXPECT_EQ(decode->callee().function(), "Image.open");
  EXPECT_EQ(decode->total_ns(), 6 * kSecond)
      << "it lived for as long as its samples say";
  EXPECT_EQ(Line(data, "Image.open"), nullptr) << "nobody of the program wrote it";
  EXPECT_EQ(Line(data, "main"), nullptr) << "who forked the worker costs it nothing";
  EXPECT_EQ(Line(data, "Queue.get"), nullptr);
  // Busy for 10 s, and the training needs 19 of the 20 s for itself.
  EXPECT_EQ(workers.no_estimate(), "");
  EXPECT_NEAR(workers.enough(), 10.0 / 19, 0.01);
}

TEST_F(Loading, CountsThePicklingThreadAsACostAndAsNoWorker) {
  AddProcess(1, 0);
  AddProcess(2, 1);
  Sample(2, 90, kDecode);
  Sample(2, 110, kWait);
  Sample(2, 10, kPickle, kOther);
  Sample(2, 190, kIdleFeeder, kOther);
  auto data = Report();
  EXPECT_DOUBLE_EQ(data.workers().busy().percent(), 45);
  EXPECT_EQ(data.workers().samples(), 200u);
  EXPECT_DOUBLE_EQ(PartShare(data.workers().parts(), lull::v1::LOADER_PART_TRANSFER),
                   10);
  ASSERT_NE(Line(data, "reduce_storage"), nullptr);
  EXPECT_EQ(data.batches(), 0u);
  EXPECT_THAT(data.workers().no_estimate(), ::testing::HasSubstr("was not seen"));
}

TEST_F(Loading, CountsWhatHasNoStackAsUnknown) {
  AddProcess(1, 0);
  AddProcess(2, 1);
  Sample(2, 50, kDecode);
  Sample(2, 30, kLoopItself, kLoader, kCut);
  Sample(2, 20, {}, kLoader, kFailed);
  auto data = Report();
  EXPECT_EQ(data.workers().unknown_ns(), 2 * kSecond);
  EXPECT_EQ(data.workers().samples(), 80u);
  EXPECT_DOUBLE_EQ(data.workers().busy().percent(), 100);
}

TEST_F(Loading, TellsOfALoaderWithoutWorkers) {
  AddProcess(1, 0);
  Ask(1, 50, 200 * kMs, kSingleNext);
  Sample(1, 60, {{"decode", kScript, 30}, kLoad, kFetchFrame, kNext, kForked}, kMain);
  Sample(1, 30, {kCollateFrame, kFetchFrame, kNext, kForked}, kMain);
  Sample(1, 10, {{"Sampler.__iter__", UTILS "../sampler.py", 9}, kNext, kForked},
         kMain);
  Sample(1, 100, {{"step", kScript, 70}, kForked}, kMain);  // no loading
  auto data = Report();
  EXPECT_FALSE(data.has_workers());
  EXPECT_EQ(data.own_batches(), 50u);
  EXPECT_DOUBLE_EQ(PartShare(data.parts(), lull::v1::LOADER_PART_DATA_SET), 60);
  EXPECT_DOUBLE_EQ(PartShare(data.parts(), lull::v1::LOADER_PART_OTHER), 10);
  const auto* decode = Line(data, "decode");
  ASSERT_NE(decode, nullptr);
  EXPECT_EQ(decode->role(), lull::v1::HOST_SAMPLE_ROLE_MAIN);
  EXPECT_EQ(decode->total_ns(), 6 * kSecond);
  EXPECT_EQ(Line(data, "step"), nullptr);
}

TEST_F(Loading, OfWaitsForWorkersNothingIsACost) {
  AddProcess(1, 0);
  AddProcess(2, 1);
  Sample(1, 50, {{"poll", "/usr/lib/python3.11/selectors.py", 4}, kNext, kForked},
         kMain);
  Sample(2, 50, kDecode);
  auto data = Report();
  for (const auto& line : data.lines()) {
    EXPECT_EQ(line.role(), lull::v1::HOST_SAMPLE_ROLE_LOADER) << line.DebugString();
  }
  EXPECT_EQ(data.parts_size(), 0);
}

TEST_F(Loading, ShowsAsManyLinesAsAreAskedFor) {
  AddProcess(1, 0);
  AddProcess(2, 1);
  AddProcess(3, 1);
  Sample(2, 20, kDecode);
  Sample(3, 9, kAugment);
  auto data = Report(2);
  EXPECT_EQ(data.workers().workers(), 2u);
  ASSERT_EQ(data.lines_size(), 2);
  EXPECT_EQ(data.lines(0).site().function(), "Pictures.__getitem__");
  EXPECT_EQ(data.lines(0).samples(), 29u);
  EXPECT_FALSE(data.lines(0).has_total()) << "no shares of 29 samples";
}

}  // namespace
}  // namespace lull::test::loading
