// GPU truth as people read it: golden files, and what a report says that has none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_split.h"
#include "cli/render/gpu_lines.h"
#include "cli/render/gpu_tables.h"
#include "cli/render/gpu_words.h"
#include "cli/render/human.h"
#include "cli/render/lines.h"
#include "cli/render/summary.h"
#include "daemon/words/enum_key.h"
#include "daemon/words/format.h"
#include "tests/cli/fixed_replies.h"
#include "tests/cli/golden.h"

namespace lull {
namespace {

using namespace testing;  // NOLINT: the fixed replies and the golden files
using ::testing::HasSubstr;
using ::testing::Not;

// A job of which nothing is known about the GPU.
v1::ReportReply WithoutTruth() {
  v1::ReportReply reply;
  *reply.mutable_job() = FixedJob();
  reply.mutable_gpu()->set_mode(v1::GPU_MODE_WINDOW);
  reply.mutable_gpu()->set_missing(kMissing);
  return reply;
}

size_t DisplayWidth(const std::string& line) {
  return static_cast<size_t>(
      std::count_if(line.begin(), line.end(),
                    [](unsigned char byte) { return (byte & 0xc0) != 0x80; }));
}

// Lines of a table, which all begin with two blanks.
void ExpectTablesWithin100Columns(const std::string& text) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (line.substr(0, 2) != "  ") continue;
    EXPECT_LE(DisplayWidth(std::string(line)), 100u) << line;
  }
}

TEST(StepCostText, SaysWhatStaysAfterAWindowOnlyWhereItIsHardlyChance) {
  v1::ReportReply reply = testing::FixedSteps();
  v1::StepCost* cost = reply.mutable_overhead()->mutable_step_cost();
  v1::Overhead controlled = reply.overhead();
  controlled.mutable_step_cost()->set_control_one_in(20);
  controlled.mutable_step_cost()->set_control_steps(5);
  EXPECT_THAT(
      StepCostLine(controlled),
      ::testing::StartsWith(
          "Cost of recording on the wall clock: not known, as 5 control steps "
          "could be compared with the steps beside them. Six are needed, one in "
          "20 was asked for. Cost on the wall clock: +1.90 %"));
  v1::Estimate* recorded = controlled.mutable_step_cost()->mutable_recorded_longer();
  recorded->set_percent(1.2);
  recorded->set_low_percent(0.4);
  recorded->set_high_percent(2.1);
  controlled.mutable_step_cost()->clear_paid();
  EXPECT_EQ(
      StepCostLine(controlled),
      "Cost of recording on the wall clock: +1.20 % on a step (+0.40 to +2.10 %): 5 "
      "control steps, in which hooks rested, against the steps beside them, rank 0.");
  v1::StepCost* sampled = controlled.mutable_step_cost();
  sampled->set_sampled(true);
  sampled->clear_traced_longer();
  sampled->set_recorded_steps(1'250);
  sampled->set_rested_steps(8'750);
  EXPECT_EQ(
      StepCostLine(controlled),
      "Recorded to hold the budget: 1,250 of 10,000 steps, rank 0. What that costs "
      "on the wall clock is not known: too few of either kind could be compared.");
  *sampled->mutable_recording_paid() = *recorded;
  sampled->mutable_recording_paid()->set_percent(0.15);
  sampled->set_sampled_from_step(1'940);
  EXPECT_EQ(
      StepCostLine(controlled),
      "Recorded to hold the budget, from step 1,940 on: 1,250 of 10,000 steps. Cost of "
      "recording on the wall clock: +0.15 % on the job (+0.40 to +2.10 %), +1.20 % on "
      "a recorded "
      "step (+0.40 to +2.10 %), rank 0.");
  EXPECT_EQ(
      StepCostLine(reply.overhead()),
      "Cost on the wall clock: +1.90 % on the job (+1.52 to +2.31 %), +9.10 % on a "
      "traced step (+7.20 to +11.04 %): 56 windows of tracing against the steps "
      "beside them, rank 0.");
  cost->mutable_between_longer()->set_percent(14);
  cost->mutable_between_longer()->set_low_percent(12.5);
  cost->mutable_between_longer()->set_high_percent(15);
  EXPECT_THAT(StepCostLine(reply.overhead()),
              ::testing::EndsWith(
                  " Not in it: +14.00 % on steps between windows (+12.50 to +15.00 %) "
                  "against those before the first, which may have other reasons. If "
                  "windows left it behind, runs with `--gpu host` do not have it."));
  cost->clear_paid();
  EXPECT_EQ(StepCostLine(reply.overhead()), "");
}

TEST(GpuReport, ShowsIdleTimeByCauseAndThenByLine) {
  std::string text = GapsText(FixedGaps(), v1::GROUP_BY_LINE);
  ExpectGolden("gaps", text);
  ExpectTablesWithin100Columns(text);
}

TEST(GpuReport, ShowsWhatLiesInARegionThatIsAskedFor) {
  v1::ReportReply reply = FixedGaps();
  v1::Gaps& gaps = *reply.mutable_gaps();
  gaps.set_region("forward");
  gaps.mutable_gaps()->DeleteSubrange(2, gaps.gaps_size() - 2);
  gaps.mutable_gaps()->DeleteSubrange(0, 1);
  gaps.mutable_causes()->DeleteSubrange(2, gaps.causes_size() - 2);
  gaps.mutable_causes()->DeleteSubrange(0, 1);
  ExpectGolden("gaps_of_region", GapsText(reply, v1::GROUP_BY_LINE));
}

TEST(GpuReport, NamesFunctionsOfAGapWhenGroupedByThem) {
  ExpectGolden("gaps_by_function", GapsText(FixedGaps(), v1::GROUP_BY_FUNCTION));
}

TEST(GpuReport, ShowsTheStackOfWhatIsToBlameWhenGroupedByStack) {
  ExpectGolden("gaps_by_stack", GapsText(FixedGaps(), v1::GROUP_BY_STACK));
}

v1::RegionRow* AddRegion(v1::ReportReply& reply, const char* name,
                         std::initializer_list<const char*> path, uint64_t count,
                         uint64_t total_ms) {
  v1::RegionRow* row = reply.mutable_regions()->add_regions();
  row->set_name(name);
  for (const char* outer : path) row->add_path(outer);
  row->set_count(count);
  row->set_total_ns(total_ms * 1'000'000);
  row->mutable_site()->set_file("train.py");
  row->mutable_site()->set_line(44);
  return row;
}

v1::ReportReply FixedRegions() {
  v1::ReportReply reply = FixedGaps();
  reply.clear_gaps();
  v1::RegionRow* step = AddRegion(reply, "step", {}, 120, 12'000);
  step->set_traced_ns(6'000'000'000);
  step->set_gpu_busy_ns(4'500'000'000);
  v1::CauseRow* data = step->add_causes();
  data->set_cause(v1::GAP_CAUSE_DATA_WAIT);
  data->set_total_ns(1'200'000'000);
  v1::CauseRow* sync = step->add_causes();
  sync->set_cause(v1::GAP_CAUSE_SYNC);
  sync->set_total_ns(300'000'000);
  AddRegion(reply, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
            {"step"}, 120, 3'000);
  AddRegion(reply, "forward\x1b", {"step", "model"}, 120, 2'000);
  reply.mutable_regions()->set_unnamed(3);
  reply.mutable_regions()->set_unopened(4);
  reply.mutable_regions()->set_unavailable(1);
  return reply;
}

TEST(GpuReport, ShowsRegionsBelowThoseAroundThem) {
  std::string text = RegionsText(FixedRegions(), v1::GROUP_BY_LINE);
  ExpectGolden("regions", text);
  ExpectTablesWithin100Columns(text);
}

TEST(GpuReport, SaysWhereThereAreNoRegions) {
  EXPECT_THAT(RegionsText(WithoutTruth(), v1::GROUP_BY_LINE),
              HasSubstr("No region ended"));
}

TEST(GpuReport, ShowsOperatorsByTheirOwnTimeAndBytes) {
  std::string text = OperatorsText(FixedOperators(), v1::GROUP_BY_LINE);
  ExpectGolden("operators", text);
  ExpectTablesWithin100Columns(text);
}

TEST(GpuReport, SaysWhereNoOperatorIsKnown) {
  EXPECT_THAT(OperatorsText(WithoutTruth(), v1::GROUP_BY_LINE),
              HasSubstr("No operator of PyTorch is known"));
}

TEST(GpuReport, ShowsKernelsByTimeAndCopiesByDirection) {
  std::string text = KernelsText(FixedKernels(), v1::GROUP_BY_LINE);
  ExpectGolden("kernels", text);
  ExpectTablesWithin100Columns(text);
}

TEST(GpuReport, ShowsTheWholeNameOfAKernelWhenGroupedByStack) {
  EXPECT_THAT(KernelsText(FixedKernels(), v1::GROUP_BY_STACK),
              HasSubstr(FixedKernels().kernels().kernels(1).name()));
}

TEST(GpuReport, ShowsTheMedianStepAndTheNewestOnes) {
  std::string text = StepsText(FixedSteps(), v1::GROUP_BY_LINE);
  ExpectGolden("steps", text);
  ExpectTablesWithin100Columns(text);
}

TEST(GpuReport, LeavesThePartsOfTheDeviceOutOfStepsThatWereNotTraced) {
  v1::ReportReply reply = FixedSteps();
  reply.mutable_steps()->mutable_median()->set_traced(false);
  reply.mutable_overhead()->clear_step_cost();
  reply.mutable_steps()->mutable_steps()->DeleteSubrange(0, 2);
  ExpectGolden("steps_untraced", StepsText(reply, v1::GROUP_BY_LINE));
}

TEST(GpuReport, ShowsWhatASyncNeededAndWasted) {
  ExpectGolden("syncs_gpu", SyncsText(FixedGpuSyncs(), v1::GROUP_BY_LINE));
}

TEST(GpuReport, PutsTheThreeAnswersFirstOnThePage) {
  ExpectGolden("report_gpu", ReportText(FixedGpuReport(), v1::GROUP_BY_LINE));
}

TEST(GpuReport, SaysInOneLineWhyThereIsNoGpuTruthAndGuessesNothing) {
  std::string expected = "No GPU truth: no CUPTI library was found";
  for (const std::string& text : {GapsText(WithoutTruth(), v1::GROUP_BY_LINE),
                                  KernelsText(WithoutTruth(), v1::GROUP_BY_LINE),
                                  StepsText(WithoutTruth(), v1::GROUP_BY_LINE),
                                  ReportText(WithoutTruth(), v1::GROUP_BY_LINE)}) {
    EXPECT_THAT(text, HasSubstr(expected));
    EXPECT_THAT(text, Not(HasSubstr("GPU busy")));
    EXPECT_THAT(text, Not(HasSubstr("Idle:")));
    EXPECT_THAT(text, Not(HasSubstr("tensor cores")));
  }
  ExpectGolden("gaps_missing", GapsText(WithoutTruth(), v1::GROUP_BY_LINE));
}

TEST(GpuReport, TellsWhatWouldBringGpuTruth) {
  v1::Gpu gpu;
  gpu.set_missing("tracing of the GPU is off (--gpu host)");
  EXPECT_EQ(
      MissingLine(gpu),
      "No GPU truth: tracing of the GPU is off (--gpu host); record with: lull run "
      "--gpu window.");
  gpu.set_mode(v1::GPU_MODE_WINDOW);
  gpu.set_missing("the CUPTI library is too old (version 17)");
  EXPECT_THAT(MissingLine(gpu), HasSubstr("lull doctor"));
  gpu.set_missing("no window of tracing came (schedule wait=20)");
  EXPECT_THAT(MissingLine(gpu), HasSubstr("--gpu continuous"));
  gpu.set_missing("no GPU work was seen");
  EXPECT_EQ(MissingLine(gpu), "No GPU truth: no GPU work was seen.");
}

TEST(GpuReport, SaysWhichPartOfTheRunOneWindowCovers) {
  v1::Gpu gpu;
  gpu.set_devices(1);
  gpu.set_traced_ns(2'000'000'000);
  v1::TracingSpan* span = gpu.add_spans();
  span->set_start_ns(5'000'000'000);
  span->set_duration_ns(2'000'000'000);
  span->set_state(v1::TRACING_STATE_ACTIVE);
  EXPECT_EQ(CoverageLine(FixedJob(), gpu),
            "GPU truth for 2.00 s of 62.4 s, from 5.00 s to 7.00 s");
}

TEST(GpuReport, CountsOnlyWindowsInWhichOperationsWereRecorded) {
  EXPECT_EQ(ActiveWindows(FixedGpu()), 18u);  // and not the span that was yielded
}

TEST(GpuReport, SaysForWhomItStoodAside) {
  v1::Gpu gpu = FixedGpu();
  EXPECT_EQ(StoodAsideLine(gpu),
            "Stood aside for another profiler for 2.10 s: 58.0 s to 60.1 s (pid 4312)");
  gpu.mutable_spans(18)->set_reason(v1::TRACING_REASON_FOREIGN_CLOCK);
  EXPECT_THAT(StoodAsideLine(gpu), HasSubstr("another profiler's clock"));
  EXPECT_EQ(StoodAsideLine({}), "");
}

TEST(GpuReport, SaysWhatIsMissingWithinTracedTime) {
  EXPECT_EQ(
      GpuLossesLine(FixedGpu()),
      "GPU records: 120 lost for want of room; 200 ms of idle time that cannot be "
      "judged");
  EXPECT_EQ(GpuLossesLine({}), "");
}

TEST(GpuReport, NeverPassesControlCharactersOfKernelsToTheTerminal) {
  v1::ReportReply reply = FixedKernels();
  reply.mutable_kernels()->mutable_kernels(0)->set_name("a\x1b[2Jb");
  reply.mutable_kernels()->mutable_kernels(0)->set_operator_name("c\x1b[31md");
  reply.mutable_kernels()->mutable_copies(0)->set_direction("e\x07");
  reply.mutable_gpu()->set_verdict("f\x1b");
  std::string text = KernelsText(reply, v1::GROUP_BY_STACK);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\x07")));
}

TEST(GpuSummary, AnswersThreeQuestionsInAboutTenLines) {
  std::string text = SummaryText(FixedGpuReport(), false);
  ExpectGolden("summary_gpu", text);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 14);
}

TEST(GpuSummary, TellsNoStepOfANonFiniteValueThatHasNone) {
  v1::NonFinite first = FixedGpuReport().non_finite(0);
  EXPECT_EQ(NonFiniteLine(first),
            "First nan read back at train.py:42 train_step: step 812, 51.2 s after the "
            "start (rank 1)");
  first.set_step_known(false);
  first.set_rank(-1);
  EXPECT_EQ(
      NonFiniteLine(first),
      "First nan read back at train.py:42 train_step: 51.2 s after the start (pid "
      "4313)");
}

TEST(GpuWords, AreTheNamesOfTheProtoInLowerCase) {
  EXPECT_EQ(KeyOf(v1::GPU_MODE_CONTINUOUS), "continuous");
  EXPECT_EQ(KeyOf(v1::TRACING_STATE_WARM_UP), "warm_up");
  EXPECT_EQ(KeyOf(v1::TRACING_REASON_FOREIGN_CLOCK), "foreign_clock");
  EXPECT_EQ(KeyOf(v1::CUPTI_STATE_NO_LIBRARY), "no_library");
  EXPECT_EQ(KeyOf(v1::PHASE_PART_MODEL_TO_DEVICE), "model_to_device");
  EXPECT_EQ(KeyOf(static_cast<v1::CuptiState>(77)), "unknown");
  EXPECT_EQ(KeyOf(static_cast<v1::HostSampleRole>(77), "other"), "other");
}

TEST(GpuWords, AreReadAsTheyAreWritten) {
  EXPECT_EQ(FromKey<v1::HostSampleRole>("autograd"), v1::HOST_SAMPLE_ROLE_AUTOGRAD);
  EXPECT_EQ(FromKey<v1::GroupBy>("stack"), v1::GROUP_BY_STACK);
  EXPECT_EQ(FromKey<v1::GroupBy>(""), std::nullopt);
  EXPECT_EQ(FromKey<v1::GroupBy>("Stack"), std::nullopt);
}

TEST(GpuWords, HaveOneForEveryCause) {
  EXPECT_EQ(CauseKey(v1::GAP_CAUSE_UNKNOWN), "unknown");
  EXPECT_EQ(CauseKey(v1::GAP_CAUSE_DATA_WAIT), "data");
  EXPECT_EQ(CauseKey(v1::GAP_CAUSE_HOST_CODE), "host_code");
  EXPECT_EQ(CauseName(v1::GAP_CAUSE_DATA_WAIT), "data");
  EXPECT_EQ(CauseName(v1::GAP_CAUSE_HOST_CODE), "host code");
  EXPECT_EQ(CauseName(v1::GAP_CAUSE_GC), "GC pause");
  EXPECT_EQ(CauseName(static_cast<v1::GapCause>(77)), "unknown");
}

TEST(GpuWords, ReadBothWaysInWhichCuptiCountsItsVersions) {
  EXPECT_EQ(CudaVersionOfCupti(0), "");
  EXPECT_EQ(CudaVersionOfCupti(18), "11.8");
  EXPECT_EQ(CudaVersionOfCupti(22), "12.4");
  EXPECT_EQ(CudaVersionOfCupti(130001), "13.0");
  EXPECT_EQ(CudaVersionOfCupti(130300), "13.3");
  EXPECT_EQ(CudaVersionOfCupti(99), "API 99");
}

TEST(CompactSite, KeepsTheEndOfALongPath) {
  v1::Site site;
  site.set_file("/home/ada/experiments/resnet/loaders/batches.py");
  site.set_line(17);
  site.set_function("to_device");
  EXPECT_EQ(CompactSite(site, v1::GROUP_BY_LINE), "loaders/batches.py:17");
  EXPECT_EQ(CompactSite(site, v1::GROUP_BY_FUNCTION), "to_device");
  EXPECT_EQ(CompactSite({}, v1::GROUP_BY_LINE), "(unknown)");
  site.set_file("/app/train.py");
  EXPECT_EQ(CompactSite(site, v1::GROUP_BY_LINE), "/app/train.py:17") << "the whole";
  site.set_file("app/train.py");
  EXPECT_EQ(CompactSite(site, v1::GROUP_BY_LINE), "app/train.py:17");
}

// Wilson's interval of a few samples reaches much farther up than down.
TEST(StepsText, TellsAnIntervalThatIsWiderThanItsFigureByItsEnds) {
  v1::Steps steps;
  steps.set_setup_ns(5'000'000'000);
  v1::PhasePart* part = steps.add_phase_parts();
  part->set_phase(v1::PHASE_STEADY);
  part->set_kind(v1::PHASE_PART_CHECKPOINT);
  part->set_time_ns(200'000'000);
  part->mutable_share()->set_percent(2);
  part->mutable_share()->set_low_percent(0.5);
  part->mutable_share()->set_high_percent(6);
  EXPECT_THAT(PhasePartsText(steps),
              HasSubstr("checkpoints 200 ms (50.0 ms to 600 ms)."));
  part->mutable_share()->set_high_percent(3.5);
  EXPECT_THAT(PhasePartsText(steps), HasSubstr("checkpoints 200 ms ± 150 ms."));
}

}  // namespace
}  // namespace lull
