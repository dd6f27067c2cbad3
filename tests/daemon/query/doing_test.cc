// What rows of idle time say of what was done in them: one gap, known samples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "daemon/base/backward_frames.h"
#include "daemon/base/event_views.h"
#include "daemon/base/gpu_event_views.h"
#include "daemon/query/engine.h"
#include "tests/daemon/collector/test_gpu.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/query/pipeline.h"
#include "tests/daemon/units.h"

namespace lull::test {
namespace {

struct DoingFrame {
  const char* function;
  const char* file;
  int line;
};
using DoingStack = std::vector<DoingFrame>;  // innermost first

constexpr char kScript[] = "/home/u/train.py";
constexpr char kPackage[] = "/venv/lib/python3.11/site-packages/PIL/Image.py";
constexpr char kLibrary[] = "/usr/lib/python3.11/json/decoder.py";
constexpr char kFetch[] =
    "/venv/lib/python3.11/site-packages/torch/utils/data/_utils/fetch.py";
constexpr uint64_t kGapStartNs = kJobStartNs + 1100 * kMs;
constexpr uint64_t kGapEndNs = kJobStartNs + 2100 * kMs;

// A kernel, a second of the host's, and the next kernel.
class OneGap {
 public:
  enum class Next { kLine, kNode };  // what the launch that ends the gap has

  explicit OneGap(bool data_wait = false, Next next = Next::kLine)
      : pipeline_(Hello()) {
    batch_.set_sequence(1);
    *batch_.add_processes() = MakeProcess(1, 101, 0);
    AddStacks(batch_, 1);
    AddGpu(batch_, 1);
    TracingView{Put(v1::EVENT_TYPE_GPU_TRACING, kJobStartNs + 1000 * kMs, 0)}.set_state(
        v1::TRACING_STATE_ACTIVE);
    Submit(kJobStartNs + 1010 * kMs, kGapStartNs - 50 * kMs, 50 * kMs, 1);
    if (data_wait) {
      TestEvent& wait = Put(v1::EVENT_TYPE_HOST_WAIT, kGapStartNs + kMs, 998 * kMs);
      wait.api = kApiPoll;
      wait.python = kDataStack;
    }
    if (next == Next::kNode) AddNode();
    Submit(kGapEndNs - 10 * kUs, kGapEndNs, 50 * kMs, 2,
           next == Next::kNode ? kNode : 1);
  }

  // `count` samples of 1 ms, anywhere in the gap.
  void Sample(uint64_t count, const DoingStack& frames, uint64_t quality = 0,
              uint32_t role = 0) {
    lull::v1::Batch::Stacks* stacks = batch_.add_stacks();
    stacks->set_process_key(1);
    lull::v1::StackDef* stack = stacks->add_stacks();
    stack->set_ref(++ref_);
    for (const DoingFrame& from : frames) {
      lull::v1::Frame* frame = stack->add_frames();
      frame->set_function(from.function);
      frame->set_file(from.file);
      frame->set_line(from.line);
    }
    for (uint64_t i = 0; i < count; ++i) {
      TestEvent& event = Put(v1::EVENT_TYPE_HOST_SAMPLE,
                             kGapStartNs + 5 * kMs + ++samples_ * 100 * kUs, 0);
      SampleView{event}.set_weight_ns(kMs).set_look(0, quality).set_role(role);
      event.python = frames.empty() ? 0 : ref_;
    }
  }

  // NAMES, innermost first, over [start, end) after the gap's beginning.
  void Region(const std::vector<std::string>& names, uint64_t start_ms,
              uint64_t end_ms) {
    lull::v1::Batch::Stacks* stacks = batch_.add_stacks();
    stacks->set_process_key(1);
    lull::v1::StackDef* stack = stacks->add_stacks();
    stack->set_ref(++ref_);
    stack->set_native(true);
    for (const std::string& name : names) stack->add_frames()->set_function(name);
    TestEvent& scope = Put(v1::EVENT_TYPE_SCOPE, kGapStartNs + start_ms * kMs,
                           (end_ms - start_ms) * kMs);
    scope.native = ref_;
    ScopeView{scope}.set_place(static_cast<uint32_t>(names.size()), 0);
  }

  lull::v1::ReportReply Report(const std::string& region = "",
                               lull::v1::Section section = lull::v1::SECTION_GAPS,
                               uint32_t top = 0) {
    AddRun(batch_, 1, 0, 0, events_);
    AddCounters(batch_, 1, 0, events_.size(), kJobStartNs + 3 * kSecond);
    batch_.add_process_ends()->set_process_key(1);
    batch_.mutable_process_ends(0)->set_end_ns(kJobStartNs + 3 * kSecond);
    pipeline_.Apply(batch_);
    pipeline_.Commit();
    lull::v1::ReportRequest request;
    request.add_sections(section);
    request.set_region(region);
    request.set_top(top);
    return pipeline_.Report(request);
  }

  absl::Status Ask(const std::string& region) {
    Report();
    lull::v1::ReportRequest request;
    request.add_sections(lull::v1::SECTION_GAPS);
    request.set_region(region);
    lull::v1::ReportReply reply;
    return query::Report(
        pipeline_.store(), [](const std::string&) { return true; }, request, &reply);
  }

  lull::v1::GapRow Row(lull::v1::GapCause cause = lull::v1::GAP_CAUSE_HOST_CODE,
                       uint32_t top = 0) {
    const lull::v1::ReportReply reply = Report("", lull::v1::SECTION_GAPS, top);
    for (const auto& row : reply.gaps().gaps()) {
      if (row.cause() == cause) return row;
    }
    ADD_FAILURE() << "no such row: " << reply.gaps().ShortDebugString();
    return {};
  }

 private:
  static lull::v1::Hello Hello() {
    lull::v1::Hello hello = MakeHello(MakeJobId(1));
    hello.mutable_job()->set_gpu_mode(lull::v1::GPU_MODE_CONTINUOUS);
    return hello;
  }

  // GeluBackward0, of train.py:110, made at model.py:44.
  void AddNode() {
    lull::v1::Batch::Stacks* stacks = batch_.add_stacks();
    stacks->set_process_key(1);
    lull::v1::StackDef* stack = stacks->add_stacks();
    stack->set_ref(kNode);
    auto add = [&](const char* function, const char* file, int line,
                   const char* module) {
      lull::v1::Frame* frame = stack->add_frames();
      frame->set_function(function);
      frame->set_file(file);
      frame->set_line(line);
      frame->set_module(module);
    };
    add("GeluBackward0", "", 0, kNodeModule);
    add("backward", "/venv/lib/python3.11/site-packages/torch/_tensor.py", 626, "");
    add("train", kScript, 110, "");
    add(kForwardFunction, "", 0, kForwardModule);
    add("forward", "/home/u/model.py", 44, "");
  }

  TestEvent& Put(uint32_t type, uint64_t start_ns, uint64_t duration_ns) {
    TestEvent event;
    event.type = type;
    event.start_ns = start_ns;
    event.duration_ns = duration_ns;
    events_.push_back(event);
    return events_.back();
  }

  void Submit(uint64_t called_ns, uint64_t start_ns, uint64_t duration_ns,
              uint32_t correlation, uint32_t python = 1) {
    TestEvent& launch = Put(v1::EVENT_TYPE_LAUNCH, called_ns - kUs, 4 * kUs);
    launch.api = kApiLaunch;
    launch.python = python;
    const uint32_t launcher = launch.tid;  // the next Put moves it
    TestEvent& call = Put(v1::EVENT_TYPE_API_CALL, called_ns, 2 * kUs);
    call.api = kApiCudaLaunch;
    ApiCallView{call}
        .set_caller(ThreadId{launcher})
        .set_correlation(CorrelationId{correlation});
    TestEvent& kernel = Put(v1::EVENT_TYPE_GPU_KERNEL, start_ns, duration_ns);
    kernel.python = kernel.native = 1;
    OperationView{kernel}.set_correlation(CorrelationId{correlation});
  }

  static constexpr uint32_t kNode = 400;

  lull::v1::Batch batch_;
  Pipeline pipeline_;
  std::vector<TestEvent> events_;
  uint32_t ref_ = 500;
  uint64_t samples_ = 0;
};

const DoingFrame kLoop = {"<module>", kScript, 90};

TEST(Doing, NamesTheUsersLineAndWhatItCalls) {
  OneGap gap;
  gap.Sample(60, {{"resize", kPackage, 2365}, {"load", kScript, 44}, kLoop});
  gap.Sample(20, {{"crop", kPackage, 1200}, {"load", kScript, 44}, kLoop});
  gap.Sample(10, {{"load", kScript, 44}, kLoop});
  gap.Sample(10, {{"raw_decode", kLibrary, 353}, kLoop});
  lull::v1::GapRow row = gap.Row();
  EXPECT_EQ(row.samples(), 100u);
  ASSERT_EQ(row.doing_size(), 2);
  const lull::v1::DoingLine& load = row.doing(0);
  EXPECT_EQ(load.site().line(), 44);
  EXPECT_EQ(load.callee().function(), "resize");
  EXPECT_EQ(load.samples(), 90u);
  EXPECT_DOUBLE_EQ(load.own().percent(), 90);
  EXPECT_DOUBLE_EQ(load.share().percent(), 90);
  EXPECT_DOUBLE_EQ(load.self().percent(), 10);
  EXPECT_NEAR(load.share().low_percent(), 82.56, 0.01);
  EXPECT_NEAR(load.share().high_percent(), 94.48, 0.01);
  // It calls the other line's: in all stacks, and innermost of the user's in some.
  EXPECT_EQ(row.doing(1).site().line(), 90);
  EXPECT_EQ(row.doing(1).callee().file(), kLibrary);
  EXPECT_DOUBLE_EQ(row.doing(1).own().percent(), 10);
  EXPECT_DOUBLE_EQ(row.doing(1).share().percent(), 100);
  EXPECT_EQ(row.culprit().line(), 44);
  EXPECT_EQ(row.after().line(), 11) << "the launch stays what it was";
}

TEST(Doing, OfADataSetIsWhatTheLoaderFetches) {
  OneGap gap;
  // The data set is a package's: its line, and not that of the loop.
  gap.Sample(40, {{"find", kPackage, 7}, {"fetch", kFetch, 54}, kLoop});
  gap.Sample(20, {{"loads", kLibrary, 9}, {"fetch", kFetch, 54}, kLoop});
  lull::v1::GapRow row = gap.Row();
  ASSERT_EQ(row.doing_size(), 2);
  EXPECT_EQ(row.doing(0).site().file(), kPackage);
  EXPECT_EQ(row.doing(1).site().file(), kLibrary);
}

TEST(Doing, OfWaitingForWorkersIsNothing) {
  OneGap gap(true);
  gap.Sample(60, {{"wait", kLibrary, 930}, kLoop});
  lull::v1::GapRow row = gap.Row(lull::v1::GAP_CAUSE_DATA_WAIT);
  EXPECT_TRUE(row.doing().empty());
  EXPECT_EQ(row.culprit().line(), 12) << "of the wait itself";
}

TEST(Doing, OfALoaderWithoutWorkersIsTheDataSet) {
  OneGap gap(true);
  gap.Sample(50, {{"load", kScript, 44}, {"fetch", kFetch, 54}, kLoop});
  gap.Sample(50, {{"wait", kLibrary, 930}, kLoop});
  lull::v1::GapRow row = gap.Row(lull::v1::GAP_CAUSE_DATA_WAIT);
  ASSERT_EQ(row.doing_size(), 2);
  EXPECT_EQ(row.doing(0).site().line(), 44);
  EXPECT_EQ(row.culprit().line(), 12) << "that asked for data";
}

TEST(Doing, HasNoSharesOfFewSamples) {
  OneGap gap;
  gap.Sample(4, {{"load", kScript, 44}, kLoop});
  lull::v1::GapRow row = gap.Row();
  ASSERT_EQ(row.doing_size(), 1);
  EXPECT_EQ(row.doing(0).samples(), 4u);
  EXPECT_FALSE(row.doing(0).has_share());
  EXPECT_EQ(row.culprit().line(), 11) << "four are no reason to name another line";
}

constexpr int kLines = 14;

lull::v1::GapRow RowOfManyLines(uint32_t top) {
  OneGap gap;
  for (int line = 1; line <= kLines; ++line) {
    gap.Sample(static_cast<uint64_t>(line), {{"work", kScript, line}, kLoop});
  }
  return gap.Row(lull::v1::GAP_CAUSE_HOST_CODE, top);
}

TEST(Doing, LeavesNothingOutWhereAllIsAskedFor) {
  const lull::v1::GapRow row = RowOfManyLines(0);
  EXPECT_EQ(row.doing_size(), kLines);
  uint64_t samples = 0;
  for (const lull::v1::DoingLine& line : row.doing()) samples += line.samples();
  EXPECT_EQ(samples, row.samples()) << "who adds up lines has the whole";
}

TEST(Doing, IsTheLinesWithMostTimeWhereRowsAreFew) {
  const lull::v1::GapRow row = RowOfManyLines(20);
  ASSERT_EQ(row.doing_size(), 10);
  EXPECT_EQ(row.doing(0).samples(), static_cast<uint64_t>(kLines));
  EXPECT_EQ(row.doing(9).samples(), 5u);
}

TEST(Doing, TakesACutStackForWhatIsLeftOfIt) {
  OneGap gap;
  gap.Sample(50, {{"load", kScript, 44}, kLoop}, 2);
  gap.Sample(50, {}, 3);
  lull::v1::GapRow row = gap.Row();
  ASSERT_EQ(row.doing_size(), 1);
  EXPECT_DOUBLE_EQ(row.doing(0).own().percent(), 50);
  EXPECT_DOUBLE_EQ(row.doing(0).self().percent(), 0);
  EXPECT_FALSE(row.doing(0).has_callee());
}

TEST(Explained, IsTheShareOfSamplesThatHaveALine) {
  OneGap gap;
  gap.Sample(30, {{"load", kScript, 44}, kLoop});
  gap.Sample(10, {}, 3);
  lull::v1::ReportReply reply = gap.Report();
  uint64_t code = 0, idle = 0;
  for (const auto& row : reply.gaps().causes()) {
    if (row.cause() == lull::v1::GAP_CAUSE_HOST_CODE) code = row.total_ns();
    idle += row.total_ns();
  }
  EXPECT_GT(code, 990 * kMs);
  // The rest is from the launch to the start, and the launch has a line.
  EXPECT_NEAR(static_cast<double>(reply.gpu().explained_ns()),
              static_cast<double>(idle) - 0.25 * static_cast<double>(code), 50e6);
}

TEST(Explained, IsNothingOfCodeWithoutSamples) {
  OneGap gap;
  lull::v1::ReportReply reply = gap.Report();
  EXPECT_LT(reply.gpu().explained_ns(), 60 * kMs);
}

constexpr uint64_t kOfNoState = 3, kOfFailure = 4;
constexpr uint32_t kOnMain = 0, kOnAutograd = 2;

TEST(Doing, ALaunchOfTheEngineHasTheLineOfItsCallerItsNodeAndWhoMadeIt) {
  OneGap gap(false, OneGap::Next::kNode);
  gap.Sample(1, {{"load", kScript, 44}, kLoop});
  const lull::v1::Site after = gap.Row().after();
  EXPECT_EQ(after.file(), kScript);
  EXPECT_EQ(after.line(), 110);
  EXPECT_EQ(after.function(), "GeluBackward0");
  EXPECT_EQ(after.backward_of().line(), 110);
  EXPECT_EQ(after.backward_of().function(), "train");
  EXPECT_EQ(after.forward_site().file(), "/home/u/model.py");
  EXPECT_EQ(after.forward_site().line(), 44);
  EXPECT_EQ(after.forward_site().function(), "forward");
}

TEST(Doing, TheEnginesOwnTimeIsThatOfItsCaller) {
  OneGap gap(false, OneGap::Next::kNode);
  gap.Sample(75, {}, kOfNoState, kOnAutograd);
  gap.Sample(25, {{"hook", kScript, 44}, kLoop}, 0, kOnAutograd);
  const lull::v1::ReportReply reply = gap.Report();
  ASSERT_GT(reply.gaps().gaps_size(), 0);
  const lull::v1::GapRow& row = reply.gaps().gaps(0);  // most time first
  EXPECT_EQ(row.cause(), lull::v1::GAP_CAUSE_HOST_CODE);
  ASSERT_EQ(row.doing_size(), 2);
  EXPECT_EQ(row.doing(0).site().line(), 110);
  EXPECT_EQ(row.doing(0).site().function(), "GeluBackward0");
  EXPECT_EQ(row.doing(0).samples(), 75u);
  EXPECT_DOUBLE_EQ(row.doing(0).own().percent(), 75);
  EXPECT_EQ(row.doing(1).site().line(), 44);
  EXPECT_EQ(row.culprit().line(), 110);
  EXPECT_GE(reply.gpu().explained_ns(), row.total_ns());
}

TEST(Doing, AMainThreadWithoutAStackIsNotTheEngine) {
  OneGap gap(false, OneGap::Next::kNode);
  gap.Sample(50, {}, kOfFailure, kOnMain);
  EXPECT_EQ(gap.Row().doing_size(), 0);
}

TEST(Doing, AThreadWithoutAStackThatLaunchesForNobodyHasNoLine) {
  OneGap gap;
  gap.Sample(50, {}, kOfNoState, kOnAutograd);
  EXPECT_EQ(gap.Row().doing_size(), 0);
}

// Of 1000 ms of idle time [100, 600) lies in load, of which [200, 300) in crop.
struct WithRegions : OneGap {
  WithRegions() {
    Region({"crop", "load"}, 200, 300);
    Region({"load"}, 100, 600);
  }
};

TEST(GapRegions, ARowSaysInWhichInnermostRegionsItsTimeLies) {
  WithRegions gap;
  lull::v1::GapRow row = gap.Row();
  ASSERT_EQ(row.regions_size(), 2) << row.ShortDebugString();
  EXPECT_EQ(row.regions(0).name(), "load");
  EXPECT_TRUE(row.regions(0).path().empty());
  EXPECT_EQ(row.regions(0).total_ns(), 400 * kMs);
  EXPECT_EQ(row.regions(1).name(), "crop");
  EXPECT_THAT(row.regions(1).path(), ::testing::ElementsAre("load"));
  EXPECT_EQ(row.regions(1).total_ns(), 100 * kMs);
}

TEST(GapRegions, OfARegionThereIsWhatLiesInItAndInThoseWithin) {
  for (const auto& [name, ms] : {std::pair("load", 500), std::pair("crop", 100)}) {
    WithRegions gap;
    // 0.1 ms apart from 5 ms on: 950 before load, 1000 in it before crop, 50 in crop.
    gap.Sample(2000, {{"work", kScript, 44}, kLoop});
    lull::v1::ReportReply reply = gap.Report(name);
    const lull::v1::Gaps& gaps = reply.gaps();
    EXPECT_EQ(gaps.region(), name);
    ASSERT_EQ(gaps.gaps_size(), 1) << gaps.ShortDebugString();
    EXPECT_EQ(gaps.gaps(0).total_ns(), ms * kMs);
    ASSERT_EQ(gaps.causes_size(), 1);
    EXPECT_EQ(gaps.causes(0).total_ns(), ms * kMs);
    EXPECT_EQ(gaps.gaps(0).samples(), ms == 500 ? 1051u : 51u);
    EXPECT_GE(reply.gpu().idle_ns(), 1000 * kMs) << "of the whole";
  }
}

TEST(GapRegions, HotOfARegionHasTheSamplesWithin) {
  WithRegions gap;
  gap.Sample(2000, {{"work", kScript, 44}, kLoop});
  lull::v1::ReportReply reply = gap.Report("load", lull::v1::SECTION_HOT);
  EXPECT_EQ(reply.hot().region(), "load");
  ASSERT_EQ(reply.hot().roles_size(), 1);
  EXPECT_EQ(reply.hot().roles(0).samples(), 1051u);
  EXPECT_EQ(reply.hot().lines(0).self_samples(), 1051u);
}

TEST(GapRegions, ARegionThatNobodyOpenedIsAnError) {
  WithRegions gap;
  absl::Status status = gap.Ask("nothing");
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("called nothing"));
}

}  // namespace
}  // namespace lull::test
