// What a job does that is no training step: rows of its set-up, checkpoints, its end.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/base/event_views.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/query/pipeline.h"
#include "tests/daemon/units.h"

namespace lull::test::phase_parts {
namespace {

using lull::v1::PHASE_SETUP;
using lull::v1::PHASE_STEADY;

struct Frame {
  const char* function;
  const char* file;
};
using Frames = std::vector<Frame>;  // innermost first

#define TORCH "/venv/lib/python3.11/site-packages/torch/"
constexpr Frame kProgram = {"main", "/home/u/train.py"};
const Frames kImport = {{"<module>", TORCH "nn/__init__.py"},
                        {"_call_with_frames_removed", "<frozen importlib._bootstrap>"},
                        kProgram};
const Frames kToDevice = {{"Module.convert", TORCH "nn/modules/module.py"},
                          {"Module.to", TORCH "nn/modules/module.py"},
                          kProgram};
const Frames kForward = {{"Module._call_impl", TORCH "nn/modules/module.py"}, kProgram};
const Frames kSave = {{"_save", TORCH "serialization.py"},
                      {"save", TORCH "serialization.py"},
                      {"write_checkpoint", "/home/u/train.py"},
                      kProgram};
const Frames kLoad = {{"load", TORCH "serialization.py"}, kProgram};
const Frames kLightning = {
    {"validation_step", "/home/u/train.py"},
    {"_EvaluationLoop.run",
     "/venv/lib/python3.11/site-packages/lightning/pytorch/loops/evaluation_loop.py"},
    kProgram};
const Frames kOwnLoop = {{"run", "/home/u/loops/evaluation_loop.py"},
                         kProgram};  // nobody knows that one

// The first step ends after 6 s, and one each half second from there on; the process
// is over 3 s after the last.
constexpr uint64_t kFirstMs = 6000, kStepMs = 500, kSteps = 40;
constexpr uint64_t kSteadyMs = kFirstMs + 2 * kStepMs;  // a whole second
constexpr uint64_t kLastMs = kFirstMs + (kSteps - 1) * kStepMs;

class PhaseParts : public ::testing::Test {
 protected:
  PhaseParts() : pipeline_(MakeHello(MakeJobId(1))) {
    batch_.set_sequence(1);
    lull::v1::ProcessInfo info = MakeProcess(1, 101, 0);
    info.set_start_ns(kJobStartNs);
    *batch_.add_processes() = info;
    AddStacks(batch_, 1);
    std::vector<TestEvent> steps;
    for (uint64_t number = 1; number <= kSteps; ++number) {
      TestEvent event;
      event.type = lull::v1::EVENT_TYPE_STEP;
      event.python = 1;
      event.duration_ns = number == 1 ? 0 : kStepMs * kMs;
      event.start_ns =
          kJobStartNs + (kFirstMs + (number - 1) * kStepMs) * kMs - event.duration_ns;
      StepView{event}.set_number(number).set_source(lull::v1::STEP_SOURCE_OPTIMIZER);
      steps.push_back(event);
    }
    AddRun(batch_, 1, 0, 0, steps);
    AddCounters(batch_, 1, 0, steps.size(), kJobStartNs + (kLastMs + 3000) * kMs);
    auto* end = batch_.add_process_ends();
    end->set_process_key(1);
    end->set_end_ns(kJobStartNs + (kLastMs + 3000) * kMs);
  }

  // Returns the stack's reference.
  uint32_t AddStack(const Frames& frames) {
    lull::v1::Batch::Stacks* stacks = batch_.add_stacks();
    stacks->set_process_key(1);
    lull::v1::StackDef* stack = stacks->add_stacks();
    stack->set_ref(++ref_);
    for (const Frame& from : frames) {
      lull::v1::Frame* frame = stack->add_frames();
      frame->set_function(from.function);
      frame->set_file(from.file);
      frame->set_line(1);
    }
    return ref_;
  }

  // A look each 20 ms in [begin, end).
  void Sample(uint64_t begin_ms, uint64_t end_ms, const Frames& frames,
              uint32_t role = 0) {
    const uint32_t stack = AddStack(frames);
    std::vector<TestEvent> events;
    for (uint64_t at = begin_ms; at < end_ms; at += 20) {
      TestEvent event;
      event.type = lull::v1::EVENT_TYPE_HOST_SAMPLE;
      event.start_ns = kJobStartNs + at * kMs;
      SampleView{event}.set_weight_ns(20 * kMs).set_role(role);
      event.python = stack;
      events.push_back(event);
    }
    AddRun(batch_, 1, 65535, samples_, events);
    samples_ += events.size();
  }

  lull::v1::Steps Report() {
    pipeline_.Apply(batch_);
    pipeline_.Commit();
    lull::v1::ReportRequest request;
    request.add_sections(lull::v1::SECTION_STEPS);
    return pipeline_.Report(request).steps();
  }

  static const lull::v1::PhasePart* Part(const lull::v1::Steps& steps,
                                         lull::v1::Phase phase,
                                         lull::v1::PhasePartKind kind) {
    for (const auto& part : steps.phase_parts()) {
      if (part.phase() == phase && part.kind() == kind) return &part;
    }
    return nullptr;
  }

  lull::v1::Batch batch_;
  Pipeline pipeline_;
  uint32_t ref_ = 100;
  uint64_t samples_ = 0;
};

TEST_F(PhaseParts, OfSetUpAreImportsMovesAndTheFirstSteps) {
  Sample(0, 3500, kImport);
  Sample(3500, 4200, kToDevice);
  Sample(4200, kSteadyMs, kForward);
  lull::v1::Steps steps = Report();
  EXPECT_EQ(steps.setup_ns(), kSteadyMs * kMs);
  const auto* imports = Part(steps, PHASE_SETUP, lull::v1::PHASE_PART_IMPORTS);
  ASSERT_NE(imports, nullptr);
  EXPECT_DOUBLE_EQ(imports->share().percent(), 50);
  EXPECT_EQ(imports->time_ns(), 3500 * kMs);
  EXPECT_EQ(imports->samples(), 175u);
  EXPECT_LT(imports->share().low_percent(), 50);
  const auto* moved = Part(steps, PHASE_SETUP, lull::v1::PHASE_PART_MODEL_TO_DEVICE);
  ASSERT_NE(moved, nullptr);
  EXPECT_EQ(moved->time_ns(), 700 * kMs);
  const auto* first = Part(steps, PHASE_SETUP, lull::v1::PHASE_PART_FIRST_STEPS);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->time_ns(), 2 * kStepMs * kMs)
      << "nobody knows how long the first took";
  EXPECT_FALSE(first->has_share()) << "that is exact";
}

TEST_F(PhaseParts, OfTheSteadyStateAreCheckpointsEvaluationAndTheEnd) {
  Sample(0, kSteadyMs, kImport);
  Sample(kSteadyMs, kSteadyMs + 1000, kSave);
  Sample(kSteadyMs + 1000, kSteadyMs + 3000, kLightning);
  Sample(kSteadyMs + 3000, kLastMs, kForward);
  Sample(kLastMs, kLastMs + 3000, kSave);  // belongs to the end
  lull::v1::Steps steps = Report();
  const auto* saved = Part(steps, PHASE_STEADY, lull::v1::PHASE_PART_CHECKPOINT);
  ASSERT_NE(saved, nullptr);
  EXPECT_NEAR(static_cast<double>(saved->time_ns()), 1e9, 1e3);
  const auto* evaluated = Part(steps, PHASE_STEADY, lull::v1::PHASE_PART_EVALUATION);
  ASSERT_NE(evaluated, nullptr);
  EXPECT_NEAR(static_cast<double>(evaluated->time_ns()), 2e9, 1e3);
  const auto* end = Part(steps, PHASE_STEADY, lull::v1::PHASE_PART_END);
  ASSERT_NE(end, nullptr);
  EXPECT_EQ(end->time_ns(), 3000 * kMs);
  EXPECT_EQ(Part(steps, PHASE_SETUP, lull::v1::PHASE_PART_MODEL_TO_DEVICE), nullptr);
}

TEST_F(PhaseParts, AreNotGuessed) {
  Sample(0, kSteadyMs, kLoad);
  Sample(kSteadyMs, kLastMs, kOwnLoop);
  Sample(0, kSteadyMs, kImport, 1);  // of another thread
  lull::v1::Steps steps = Report();
  for (const auto& part : steps.phase_parts()) {
    EXPECT_TRUE(part.kind() == lull::v1::PHASE_PART_FIRST_STEPS ||
                part.kind() == lull::v1::PHASE_PART_END)
        << part.ShortDebugString();
  }
}

TEST_F(PhaseParts, ReadsOfImportsAreOneRow) {
  Frames other = kImport;
  other[0].file = TORCH "cuda/__init__.py";
  std::vector<TestEvent> reads;
  for (const Frames& frames : {kImport, other, kLoad}) {
    TestEvent event;
    event.type = v1::EVENT_TYPE_HOST_WAIT;  // a wait of the host
    event.api = kApiPoll;
    event.python = AddStack(frames);
    event.start_ns = kJobStartNs + 10 * kMs;
    event.duration_ns = 5 * kMs;
    reads.push_back(event);
  }
  AddRun(batch_, 1, 1, 0, reads);
  pipeline_.Apply(batch_);
  pipeline_.Commit();
  lull::v1::ReportRequest request;
  request.add_sections(lull::v1::SECTION_WAITS);
  request.set_phase(lull::v1::PHASE_ALL);
  lull::v1::HostWaits waits = pipeline_.Report(request).waits();
  ASSERT_EQ(waits.host_waits_size(), 2) << waits.ShortDebugString();
  EXPECT_EQ(waits.host_waits(0).site().function(), "(imports)");
  EXPECT_EQ(waits.host_waits(0).count(), 2u);
  EXPECT_EQ(waits.host_waits(0).kind(), "io");
  EXPECT_EQ(waits.host_waits(0).total_ns(), 10 * kMs);
  EXPECT_EQ(waits.host_waits(1).count(), 1u);
}

TEST_F(PhaseParts, TellNothingOfTheTimeBeforeTheFirstLook) {
  Sample(3500, kSteadyMs, kImport);
  const auto steps = Report();
  const auto* imports = Part(steps, PHASE_SETUP, lull::v1::PHASE_PART_IMPORTS);
  ASSERT_NE(imports, nullptr);
  EXPECT_EQ(imports->time_ns(), 3500 * kMs);
}

TEST_F(PhaseParts, AreNotToldOfFewSamples) {
  Sample(0, 500, kImport);
  EXPECT_EQ(Part(Report(), PHASE_SETUP, lull::v1::PHASE_PART_IMPORTS), nullptr);
}

}  // namespace
}  // namespace lull::test::phase_parts
