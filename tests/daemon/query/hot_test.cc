// `lull hot`: samples of known stacks, through ingest, store and query.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/base/backward_frames.h"
#include "daemon/base/event_views.h"
#include "daemon/query/engine.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/query/pipeline.h"
#include "tests/daemon/units.h"

namespace lull::test {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kRunning = 0, kReady = 1, kBlocked = 2;
constexpr uint32_t kExact = 0, kCut = 2, kNoState = 3, kFailed = 4;
constexpr uint32_t kMain = 0, kLoader = 3;

constexpr uint32_t kRecursive = 100;  // walk calls itself: root, then three times walk
constexpr uint32_t kLeaf = 101;       // root, walk, leaf

void AddPythonStack(lull::v1::Batch& batch, uint64_t process, uint32_t ref,
                    const std::vector<std::pair<std::string, int>>& frames) {
  lull::v1::Batch::Stacks* stacks = batch.add_stacks();
  stacks->set_process_key(process);
  lull::v1::StackDef* stack = stacks->add_stacks();
  stack->set_ref(ref);
  for (const auto& [function, line] : frames) {
    lull::v1::Frame* frame = stack->add_frames();
    frame->set_function(function);
    frame->set_file("/home/u/walk.py");
    frame->set_line(line);
  }
}

TestEvent Sample(uint64_t at_ms, uint32_t stack, uint32_t state, uint32_t quality,
                 uint32_t role, uint64_t weight_ns = 5 * kMs) {
  TestEvent event;
  event.type = lull::v1::EVENT_TYPE_HOST_SAMPLE;
  event.start_ns = kJobStartNs + at_ms * kMs;
  SampleView{event}.set_weight_ns(weight_ns).set_look(state, quality).set_role(role);
  event.python = stack;
  return event;
}

class Hot : public ::testing::Test {
 protected:
  static constexpr uint32_t kRelayRing = 65535;

  explicit Hot(bool no_samples = false,
               lull::v1::GpuMode mode = lull::v1::GPU_MODE_HOST)
      : pipeline_(Hello(no_samples, mode)) {
    batch_.set_sequence(1);
    for (uint64_t key : {1, 2}) {
      lull::v1::ProcessInfo info =
          MakeProcess(key, 100 + static_cast<uint32_t>(key), 0);
      info.set_python_version("3.11");
      if (key == 2) info.set_worker_of(1);
      *batch_.add_processes() = info;
      AddPythonStack(batch_, key, kRecursive,
                     {{"walk", 7}, {"walk", 7}, {"walk", 7}, {"root", 3}});
      AddPythonStack(batch_, key, kLeaf, {{"leaf", 20}, {"walk", 7}, {"root", 3}});
    }
  }

  static lull::v1::Hello Hello(bool no_samples, lull::v1::GpuMode mode) {
    lull::v1::Hello hello = MakeHello(MakeJobId(1));
    hello.mutable_job()->set_gpu_mode(mode);
    hello.mutable_job()->set_no_host_samples(no_samples);
    return hello;
  }

  void Add(uint64_t process, const std::vector<TestEvent>& events) {
    AddRun(batch_, process, kRelayRing, 0, events);
    lull::v1::ProcessCounters* counters = batch_.add_counters();
    counters->set_process_key(process);
    // The worker of a loader does no work of the kind that is recorded.
    if (process == 1) counters->set_gpu_calls(1);
    counters->set_as_of_ns(kJobStartNs + 100 * kSecond);
    counters->mutable_host_samples()->set_taken(events.size());
    counters->mutable_host_samples()->set_late(3);
  }
  void Apply() {
    pipeline_.Apply(batch_);
    pipeline_.Commit();
  }

  absl::StatusOr<lull::v1::Hot> Ask(
      const std::function<void(lull::v1::ReportRequest&)>& set = nullptr) {
    lull::v1::ReportRequest request;
    request.add_sections(lull::v1::SECTION_HOT);
    if (set) set(request);
    lull::v1::ReportReply reply;
    absl::Status status = query::Report(
        pipeline_.store(), [](const std::string&) { return true; }, request, &reply);
    if (!status.ok()) return status;
    return reply.hot();
  }

  static const lull::v1::HotLine* Line(const lull::v1::Hot& hot,
                                       const std::string& function,
                                       uint32_t role = kMain) {
    for (const auto& line : hot.lines()) {
      if (line.site().function() == function &&
          static_cast<uint32_t>(line.role()) == role)
        return &line;
    }
    return nullptr;
  }

  lull::v1::Batch batch_;
  Pipeline pipeline_;
};

// 60 in the recursion, running; 30 in the leaf, blocked; 10 in the leaf, ready.
std::vector<TestEvent> HundredSamples(uint32_t role, uint64_t from_ms = 0) {
  std::vector<TestEvent> events;
  for (uint64_t i = 0; i < 60; ++i) {
    events.push_back(Sample(from_ms + i * 10, kRecursive, kRunning, kExact, role));
  }
  for (uint64_t i = 60; i < 90; ++i) {
    events.push_back(Sample(from_ms + i * 10, kLeaf, kBlocked, kExact, role));
  }
  for (uint64_t i = 90; i < 100; ++i) {
    events.push_back(Sample(from_ms + i * 10, kLeaf, kReady, kExact, role));
  }
  return events;
}

TEST_F(Hot, CountsALineOnceASampleAlsoWhereItCallsItself) {
  Add(1, HundredSamples(kMain));
  Apply();
  auto hot = Ask();
  ASSERT_TRUE(hot.ok()) << hot.status();
  ASSERT_EQ(hot->lines_size(), 3);
  const lull::v1::HotLine* walk = Line(*hot, "walk");
  EXPECT_EQ(walk->samples(), 100u);
  EXPECT_EQ(walk->self_samples(), 60u);
  EXPECT_DOUBLE_EQ(walk->total().percent(), 100);
  EXPECT_DOUBLE_EQ(walk->self().percent(), 60);
  // Three of a hundred looks were late.
  EXPECT_NEAR(walk->self().low_percent(), 48.40, 0.01);
  EXPECT_NEAR(walk->self().high_percent(), 70.26, 0.01);
  EXPECT_EQ(walk->running_ns(), 300 * kMs);
  EXPECT_EQ(walk->blocked_ns(), 150 * kMs);
  EXPECT_EQ(walk->ready_ns(), 50 * kMs);
  const lull::v1::HotLine* leaf = Line(*hot, "leaf");
  EXPECT_EQ(leaf->self_samples(), 40u);
  EXPECT_EQ(leaf->site().line(), 20);
  EXPECT_EQ(leaf->running_ns(), 0u);
  const lull::v1::HotLine* root = Line(*hot, "root");
  EXPECT_EQ(root->self_samples(), 0u);
  EXPECT_DOUBLE_EQ(root->total().percent(), 100);
  EXPECT_EQ(hot->lines(0).site().function(), "walk") << "most own time first";
  ASSERT_EQ(hot->roles_size(), 1);
  EXPECT_EQ(hot->roles(0).samples(), 100u);
  EXPECT_EQ(hot->roles(0).time_ns(), 500 * kMs);
  EXPECT_EQ(hot->roles(0).blocked_ns(), 150 * kMs);
  EXPECT_EQ(hot->counters().late(), 3u);
}

TEST_F(Hot, ByFunctionLeavesLinesOutAndByStackShowsThem) {
  Add(1, HundredSamples(kMain));
  Apply();
  auto functions = Ask([](auto& r) { r.set_group_by(lull::v1::GROUP_BY_FUNCTION); });
  ASSERT_TRUE(functions.ok()) << functions.status();
  ASSERT_EQ(functions->lines_size(), 3);
  EXPECT_EQ(Line(*functions, "walk")->site().line(), 0);
  EXPECT_EQ(Line(*functions, "walk")->samples(), 100u);
  auto stacks = Ask([](auto& r) { r.set_group_by(lull::v1::GROUP_BY_STACK); });
  ASSERT_TRUE(stacks.ok()) << stacks.status();
  ASSERT_EQ(stacks->lines_size(), 2);
  EXPECT_EQ(stacks->lines(0).stack_size(), 4);
  EXPECT_EQ(stacks->lines(0).samples(), 60u);
  EXPECT_EQ(stacks->lines(1).stack(0).function(), "leaf");
  EXPECT_EQ(stacks->lines(1).stack(2).function(), "root");
}

TEST_F(Hot, ClipsToTheRangeExactly) {
  Add(1, HundredSamples(kMain, 700));  // from 700 to 1690 ms
  Apply();
  auto hot = Ask([](auto& r) {
    r.set_since_ns(1290 * kMs);  // the last of the 60 is at 1290
    r.set_until_ns(1600 * kMs);  // the first that is ready
  });
  ASSERT_TRUE(hot.ok()) << hot.status();
  EXPECT_EQ(hot->roles(0).samples(), 31u);
  EXPECT_EQ(hot->roles(0).ready_ns(), 0u);
  EXPECT_EQ(Line(*hot, "walk")->self_samples(), 1u);
  EXPECT_EQ(Line(*hot, "leaf")->self_samples(), 30u);
  auto none = Ask([](auto& r) { r.set_since_ns(50 * kSecond); });
  EXPECT_EQ(none.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(none.status().message(), HasSubstr("none lies in what is shown"));
}

TEST_F(Hot, OfACutStackNoLineIsInnermost) {
  std::vector<TestEvent> events = HundredSamples(kMain);
  for (uint64_t i = 0; i < 100; ++i) {
    events.push_back(Sample(2000 + i, kLeaf, kRunning, kCut, kMain));
  }
  Add(1, events);
  Apply();
  auto hot = Ask();
  ASSERT_TRUE(hot.ok()) << hot.status();
  EXPECT_EQ(Line(*hot, "leaf")->samples(), 140u);
  EXPECT_EQ(Line(*hot, "leaf")->self_samples(), 40u);
  EXPECT_DOUBLE_EQ(Line(*hot, "leaf")->self().percent(), 20);
  EXPECT_EQ(hot->roles(0).cut_ns(), 500 * kMs);
  auto stacks = Ask([](auto& r) { r.set_group_by(lull::v1::GROUP_BY_STACK); });
  ASSERT_TRUE(stacks.ok()) << stacks.status();
  ASSERT_EQ(stacks->lines_size(), 3) << "a cut stack is not the whole one";
  EXPECT_TRUE(stacks->lines(0).cut());
  EXPECT_FALSE(stacks->lines(1).cut());
}

TEST_F(Hot, ShowsTimeWithoutALineAndPutsItOnNone) {
  std::vector<TestEvent> events = HundredSamples(kMain);
  for (uint64_t i = 0; i < 60; ++i) {
    events.push_back(Sample(2000 + i, 0, kRunning, kNoState, kMain));
  }
  for (uint64_t i = 0; i < 40; ++i) {  // whatever it says of a stack
    events.push_back(Sample(3000 + i, kLeaf, kRunning, kFailed, kMain));
  }
  Add(1, events);
  Apply();
  auto hot = Ask();
  ASSERT_TRUE(hot.ok()) << hot.status();
  EXPECT_EQ(hot->roles(0).no_python_ns(), 300 * kMs);
  EXPECT_EQ(hot->roles(0).failed_ns(), 200 * kMs);
  EXPECT_EQ(Line(*hot, "leaf")->samples(), 40u);
  EXPECT_DOUBLE_EQ(Line(*hot, "root")->total().percent(), 50);
}

TEST_F(Hot, WeighsSamplesByWhatTheyStandFor) {
  std::vector<TestEvent> events = HundredSamples(kMain);
  for (uint64_t i = 0; i < 5; ++i) {  // outside of windows, one for twenty
    events.push_back(Sample(2000 + i, kLeaf, kRunning, kExact, kMain, 100 * kMs));
  }
  Add(1, events);
  Apply();
  auto hot = Ask();
  ASSERT_TRUE(hot.ok()) << hot.status();
  EXPECT_EQ(hot->roles(0).time_ns(), 1000 * kMs);
  EXPECT_DOUBLE_EQ(Line(*hot, "leaf")->self().percent(), 70);
  EXPECT_DOUBLE_EQ(Line(*hot, "walk")->self().percent(), 30);
}

TEST_F(Hot, ShowsTheWorkersOfALoaderWithSharesOfTheirOwn) {
  Add(1, HundredSamples(kMain));
  std::vector<TestEvent> worker;
  for (uint64_t i = 0; i < 50; ++i) {
    worker.push_back(Sample(i * 10, kLeaf, kRunning, kExact, kLoader));
  }
  Add(2, worker);
  Apply();
  auto hot = Ask();
  ASSERT_TRUE(hot.ok()) << hot.status();
  ASSERT_EQ(hot->roles_size(), 2);
  EXPECT_EQ(Line(*hot, "leaf")->self_samples(), 40u);
  EXPECT_DOUBLE_EQ(Line(*hot, "leaf", kLoader)->self().percent(), 100);
  auto loader = Ask([](auto& r) { r.set_role(lull::v1::HOST_SAMPLE_ROLE_LOADER); });
  ASSERT_TRUE(loader.ok()) << loader.status();
  ASSERT_EQ(loader->roles_size(), 1);
  EXPECT_EQ(Line(*loader, "walk"), nullptr);
  auto worker_alone = Ask([](auto& r) { r.set_pid(102); });
  ASSERT_TRUE(worker_alone.ok()) << worker_alone.status();
  EXPECT_EQ(worker_alone->roles_size(), 1);
  auto other_rank = Ask([](auto& r) { r.set_rank(5); });
  EXPECT_FALSE(other_rank.ok());
}

TEST_F(Hot, TellsNoSharesOfFewSamples) {
  std::vector<TestEvent> events = HundredSamples(kMain);
  events.resize(29);
  Add(1, events);
  Apply();
  auto hot = Ask();
  ASSERT_TRUE(hot.ok()) << hot.status();
  EXPECT_EQ(hot->lines(0).samples(), 29u);
  EXPECT_FALSE(hot->lines(0).has_total());
  EXPECT_FALSE(hot->lines(0).has_self());
}

TEST_F(Hot, SaysWhyThereIsNothing) {
  Add(1, {});
  Apply();
  auto hot = Ask();
  EXPECT_EQ(hot.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(hot.status().message(), HasSubstr("older lull"));
}

TEST_F(Hot, SaysThatItMayNotRead) {
  Add(1, {});
  batch_.mutable_counters(0)->mutable_host_samples()->set_access(
      lull::v1::HOST_SAMPLE_ACCESS_DENIED);
  Apply();
  EXPECT_THAT(Ask().status().message(), HasSubstr("may not read the memory"));
}

TEST_F(Hot, SaysThatItDoesNotKnowTheInterpreter) {
  Add(1, {});
  batch_.mutable_counters(0)->mutable_host_samples()->set_access(
      lull::v1::HOST_SAMPLE_ACCESS_LAYOUT);
  Apply();
  EXPECT_THAT(Ask().status().message(), HasSubstr("does not know the interpreter"));
}

TEST_F(Hot, IsNoPartOfTheOverview) {
  Add(1, {});
  Apply();
  EXPECT_FALSE(pipeline_.Report({}).has_hot());
}

class HotOff : public Hot {
 protected:
  HotOff() : Hot(true) {}
};

TEST_F(HotOff, IsSaid) {
  Add(1, {});
  Apply();
  pipeline_.Restart();  // as the store has it
  EXPECT_THAT(Ask().status().message(), HasSubstr("--no-samples"));
}

// Threads of PyTorch's engine have no frames: the nodes that they launch for have.
class HotOfTheEngine : public Hot {
 protected:
  static constexpr uint32_t kAutograd = 2, kLinear = 200, kGelu = 201, kEngine = 55;

  HotOfTheEngine() : Hot(false, lull::v1::GPU_MODE_WINDOW) {}

  void AddNode(uint32_t ref, const char* node, int forward_line) {
    lull::v1::Batch::Stacks* stacks = batch_.add_stacks();
    stacks->set_process_key(1);
    lull::v1::StackDef* stack = stacks->add_stacks();
    stack->set_ref(ref);
    auto add = [&](const char* function, const char* file, int line,
                   const char* module) {
      lull::v1::Frame* frame = stack->add_frames();
      frame->set_function(function);
      frame->set_file(file);
      frame->set_line(line);
      frame->set_module(module);
    };
    add(node, "", 0, kNodeModule);
    add("train", "/home/u/train.py", 110, "");
    add(kForwardFunction, "", 0, kForwardModule);
    add("forward", "/home/u/model.py", forward_line, "");
  }

  static TestEvent Of(TestEvent event) {
    event.tid = kEngine;
    return event;
  }
  static TestEvent Launch(uint64_t at_ms, uint32_t stack) {
    TestEvent event;
    event.type = lull::v1::EVENT_TYPE_LAUNCH;
    event.start_ns = kJobStartNs + at_ms * kMs;
    event.duration_ns = kUs;
    event.api = kApiLaunch;
    event.python = stack;
    event.tid = kEngine;
    return event;
  }

  // 40 samples on the way to a linear layer's node, 60 on that to a gelu's, 20 that
  // wait.
  void Run() {
    AddNode(kLinear, "AddmmBackward0", 30);
    AddNode(kGelu, "GeluBackward0", 44);
    std::vector<TestEvent> launches = {Launch(999, kGelu), Launch(1500, kLinear),
                                       Launch(2500, kGelu), Launch(4000, kGelu)};
    std::vector<TestEvent> samples;
    for (uint64_t i = 0; i < 40; ++i) {
      samples.push_back(Of(Sample(1000 + i * 10, 0, kRunning, kNoState, kAutograd)));
    }
    for (uint64_t i = 0; i < 60; ++i) {
      samples.push_back(Of(Sample(1600 + i * 10, 0, kRunning, kNoState, kAutograd)));
    }
    for (uint64_t i = 0; i < 20; ++i) {
      samples.push_back(Of(Sample(3000 + i * 10, 0, kBlocked, kNoState, kAutograd)));
    }
    AddRun(batch_, 1, 0, 0, launches);
    Add(1, samples);
    batch_.add_process_ends()->set_process_key(1);
    batch_.mutable_process_ends(0)->set_end_ns(kJobStartNs + 101 * kSecond);
    Apply();
  }
};

TEST_F(HotOfTheEngine, ItsTimeHasNodesAndTheirCaller) {
  Run();
  auto hot = Ask();
  ASSERT_TRUE(hot.ok()) << hot.status();
  ASSERT_EQ(hot->roles_size(), 1);
  EXPECT_EQ(hot->roles(0).samples(), 120u);
  EXPECT_EQ(hot->roles(0).no_python_ns(), 100 * kMs) << "what waits";
  const lull::v1::HotLine* gelu = Line(*hot, "GeluBackward0", kAutograd);
  ASSERT_NE(gelu, nullptr) << hot->ShortDebugString();
  EXPECT_EQ(gelu->self_samples(), 60u);
  EXPECT_EQ(gelu->self_ns(), 300 * kMs);
  EXPECT_DOUBLE_EQ(gelu->self().percent(), 50);
  EXPECT_EQ(gelu->site().line(), 110);
  EXPECT_EQ(gelu->site().backward_of().function(), "train");
  EXPECT_EQ(gelu->site().forward_site().line(), 44);
  const lull::v1::HotLine* train = Line(*hot, "train", kAutograd);
  ASSERT_NE(train, nullptr);
  EXPECT_EQ(train->samples(), 100u);
  EXPECT_EQ(train->self_samples(), 0u);
  EXPECT_EQ(Line(*hot, "forward", kAutograd), nullptr) << "it does not run";
}

TEST_F(HotOfTheEngine, ByStackTheyAreBelowTheirCaller) {
  Run();
  auto hot = Ask([](lull::v1::ReportRequest& request) {
    request.set_group_by(lull::v1::GROUP_BY_STACK);
  });
  ASSERT_TRUE(hot.ok()) << hot.status();
  ASSERT_EQ(hot->lines_size(), 2);
  ASSERT_EQ(hot->lines(0).stack_size(), 2);
  EXPECT_EQ(hot->lines(0).stack(0).function(), "GeluBackward0");
  EXPECT_EQ(hot->lines(0).stack(1).line(), 110);
  EXPECT_EQ(hot->lines(1).self_samples(), 40u);
}

}  // namespace
}  // namespace lull::test
