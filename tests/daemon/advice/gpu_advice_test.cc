// Every rule of GPU truth: silent below its threshold, and above it with the numbers
// that prove it and the change that it asks for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/advice/advice.h"
#include "daemon/advice/sync_kind.h"
#include "daemon/advice/thresholds.h"
#include "tests/cli/fixed_replies.h"
#include "tests/daemon/advice/findings.h"

namespace lull {
namespace {

using testing::FindingsOf;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr uint64_t kTracedNs = 100'000'000'000;

uint64_t PercentNs(double percent) {
  return static_cast<uint64_t>(percent * static_cast<double>(kTracedNs) / 100);
}

// Traced for kTracedNs, and nothing met.
v1::ReportReply TracedReport() {
  v1::ReportReply reply;
  reply.mutable_gpu()->set_devices(1);
  reply.mutable_gpu()->set_traced_ns(kTracedNs);
  v1::DeviceRow* device = reply.add_devices();
  device->set_traced_ns(kTracedNs);
  device->set_compute_capability(80);
  return reply;
}

void AddIdle(v1::ReportReply& reply, v1::GapCause cause, double percent) {
  v1::CauseRow* row = reply.mutable_gaps()->add_causes();
  row->set_cause(cause);
  // What a launch takes is some microseconds.
  row->set_count(cause == v1::GAP_CAUSE_LAUNCH_LATENCY ? PercentNs(percent) / 10'000
                                                       : 100);
  row->set_total_ns(PercentNs(percent));
  v1::GapRow* gap = reply.mutable_gaps()->add_gaps();
  gap->set_cause(cause);
  gap->set_count(100);
  gap->set_total_ns(PercentNs(percent));
  gap->mutable_before()->set_file("train.py");
  gap->mutable_before()->set_line(41);
  gap->mutable_after()->set_file("train.py");
  gap->mutable_after()->set_line(44);
  gap->mutable_culprit()->set_file("train.py");
  gap->mutable_culprit()->set_line(42);
}

v1::SyncPoint* AddSync(v1::ReportReply& reply, double wasted_percent) {
  v1::SyncPoint* point = reply.mutable_syncs()->add_sync_points();
  point->set_api("cudaStreamSynchronize");
  point->set_calls(1000);
  point->set_judged_calls(1000);
  point->set_wasted_ns(PercentNs(wasted_percent));
  point->mutable_site()->set_file("train.py");
  point->mutable_site()->set_line(42);
  return point;
}

v1::KernelRow* AddKernel(v1::ReportReply& reply, const std::string& name,
                         double percent) {
  v1::KernelRow* row = reply.mutable_kernels()->add_kernels();
  row->set_name(name);
  row->set_calls(1000);
  row->set_total_ns(PercentNs(percent));
  reply.mutable_kernels()->set_total_ns(reply.kernels().total_ns() +
                                        PercentNs(percent));
  reply.mutable_kernels()->set_total_calls(reply.kernels().total_calls() + 1000);
  return row;
}

struct CauseRule {
  v1::GapCause cause;
  double threshold;
  const char* rule;
  const char* change;
};

class IdleRule : public ::testing::TestWithParam<CauseRule> {};

TEST_P(IdleRule, SpeaksAboveItsThresholdAndSaysHowMuchAndWhere) {
  const CauseRule& rule = GetParam();
  v1::ReportReply below = TracedReport();
  AddIdle(below, rule.cause, rule.threshold);
  EXPECT_THAT(FindingsOf(below), IsEmpty());

  v1::ReportReply above = TracedReport();
  AddIdle(above, rule.cause, rule.threshold + 1);
  std::vector<v1::Finding> advice = FindingsOf(above);
  ASSERT_THAT(advice, SizeIs(1));
  EXPECT_EQ(advice[0].rule(), rule.rule);
  EXPECT_EQ(advice[0].time_ns(), PercentNs(rule.threshold + 1));
  EXPECT_TRUE(advice[0].of_gpu_time());
  EXPECT_THAT(advice[0].finding(), HasSubstr(" % ("));
  EXPECT_THAT(advice[0].advice(), HasSubstr(rule.change));
}

INSTANTIATE_TEST_SUITE_P(
    EveryCause, IdleRule,
    ::testing::Values(CauseRule{v1::GAP_CAUSE_DATA_WAIT, kIdleDataPercent, "data_wait",
                                "num_workers"},
                      CauseRule{v1::GAP_CAUSE_GC, kIdleGcPercent, "gc", "gc.freeze()"},
                      CauseRule{v1::GAP_CAUSE_ALLOCATOR, kIdleAllocatorPercent,
                                "allocator", "allocate once"},
                      CauseRule{v1::GAP_CAUSE_RUN_QUEUE, kIdleRunQueuePercent,
                                "run_queue", "taskset"},
                      CauseRule{v1::GAP_CAUSE_GIL_WAIT, kIdleGilPercent, "gil_wait",
                                "process"},
                      CauseRule{v1::GAP_CAUSE_HOST_WAIT, kIdleHostWaitPercent,
                                "host_wait", "another thread"},
                      CauseRule{v1::GAP_CAUSE_HOST_CODE, kIdleHostCodePercent,
                                "host_code", "cheaper"},
                      CauseRule{v1::GAP_CAUSE_LAUNCH_BOUND, kIdleLaunchPercent,
                                "launch_bound", "CUDA graph"},
                      CauseRule{v1::GAP_CAUSE_LAUNCH_LATENCY, kIdleLatencyPercent,
                                "launch_latency", "CUDA graph"},
                      CauseRule{v1::GAP_CAUSE_LAUNCH_CALL, kIdleLaunchCallPercent,
                                "launch_call", "CUDA_MODULE_LOADING"},
                      CauseRule{v1::GAP_CAUSE_DEPENDENCY, kIdleDependencyPercent,
                                "dependency", "earlier"}),
    [](const auto& info) { return std::string(info.param.rule); });

// Thirty processes on one H100 had launches begin after 56 us on average, where one alone
// has 10: no CUDA graph helps there.
TEST(GpuAdvice, ADeviceThatBeginsLateIsSharedAndNoReasonForACudaGraph) {
  v1::ReportReply reply = TracedReport();
  AddIdle(reply, v1::GAP_CAUSE_LAUNCH_LATENCY, 20);
  v1::CauseRow* row = reply.mutable_gaps()->mutable_causes(0);
  row->set_count(PercentNs(20) / 56'500);
  const v1::Finding finding = FindingsOf(reply)[0];
  EXPECT_THAT(finding.finding(), HasSubstr("us on average; 10 us are usual"));
  EXPECT_THAT(finding.advice(), HasSubstr("other processes use this GPU"));
  EXPECT_THAT(finding.advice(), Not(HasSubstr("CUDA graph")));
}

TEST(GpuAdvice, AStepThatIsInACudaGraphIsNotToBeCapturedInOne) {
  v1::ReportReply reply = TracedReport();
  AddIdle(reply, v1::GAP_CAUSE_LAUNCH_LATENCY, 20);
  reply.mutable_gaps()->mutable_causes(0)->set_count(PercentNs(20) / 2'000);
  reply.mutable_gaps()->mutable_gaps(0)->set_culprit_api("cudaGraphLaunch");
  const v1::Finding finding = FindingsOf(reply)[0];
  EXPECT_EQ(finding.rule(), "launch_latency");
  EXPECT_THAT(finding.finding(), HasSubstr("between the nodes of CUDA graphs"));
  EXPECT_THAT(finding.advice(), Not(HasSubstr("capture")));
}

TEST(GpuAdvice, IsEmptyWithoutEvidence) {
  EXPECT_THAT(FindingsOf(TracedReport()), IsEmpty());
}

TEST(GpuAdvice, SaysNothingOfIdleTimeThatCannotBeJudged) {
  v1::ReportReply reply = TracedReport();
  AddIdle(reply, v1::GAP_CAUSE_UNKNOWN, 90);
  EXPECT_THAT(FindingsOf(reply), IsEmpty());
}

TEST(GpuAdvice, NamesTheLinesOfHostCode) {
  v1::ReportReply reply = TracedReport();
  AddIdle(reply, v1::GAP_CAUSE_HOST_CODE, 20);
  EXPECT_THAT(FindingsOf(reply)[0].finding(),
              HasSubstr("between train.py:41 and train.py:44 (100 times)"));
}

TEST(GpuAdvice, NamesTheLineThatTookTheTimeOfHostCode) {
  v1::ReportReply reply = TracedReport();
  AddIdle(reply, v1::GAP_CAUSE_HOST_CODE, 20);
  v1::GapRow* gap = reply.mutable_gaps()->mutable_gaps(0);
  v1::DoingLine* line = gap->add_doing();
  line->set_samples(12);
  line->mutable_site()->set_file("dataset.py");
  line->mutable_site()->set_line(44);
  *gap->mutable_culprit() = line->site();
  EXPECT_THAT(FindingsOf(reply)[0].finding(), HasSubstr("between train.py:41"))
      << "12 samples say where, and not how much";
  line->mutable_own()->set_percent(62);
  line->mutable_own()->set_low_percent(58);
  line->mutable_own()->set_high_percent(66);
  v1::Finding finding = FindingsOf(reply)[0];
  EXPECT_THAT(finding.finding(),
              HasSubstr("for host code, 62 % ± 4 in dataset.py:44 (100 times)"));
  EXPECT_EQ(finding.site().line(), 44);
}

TEST(GpuAdvice, NamesTheLineOfADataSetThatTheTrainingLoadsItself) {
  v1::ReportReply reply = TracedReport();
  AddIdle(reply, v1::GAP_CAUSE_DATA_WAIT, 20);
  v1::DoingLine* line = reply.mutable_gaps()->mutable_gaps(0)->add_doing();
  line->mutable_site()->set_file("dataset.py");
  line->mutable_site()->set_line(44);
  line->mutable_own()->set_percent(62);
  line->mutable_own()->set_low_percent(58);
  line->mutable_own()->set_high_percent(66);
  EXPECT_THAT(FindingsOf(reply)[0].finding(), HasSubstr(": 62 % ± 4 in dataset.py:44"));
}

TEST(GpuAdvice, LeavesHostCodeThatRanOnceAlone) {
  v1::ReportReply reply = TracedReport();
  AddIdle(reply, v1::GAP_CAUSE_HOST_CODE, 20);
  reply.mutable_gaps()->mutable_gaps(0)->set_count(kLoopCalls - 1);
  EXPECT_THAT(FindingsOf(reply), IsEmpty());
}

TEST(GpuAdvice, PutsTheCostOfALinesTwoSyncsTogether) {
  v1::ReportReply reply = TracedReport();
  AddSync(reply, 0.6)->set_api("cudaMemcpyAsync");
  EXPECT_THAT(FindingsOf(reply), IsEmpty());
  v1::SyncPoint* wait = AddSync(reply, 0.7);
  wait->add_native_stack()->set_function(
      "at::native::_local_scalar_dense_cuda(at::Tensor const&)");
  std::vector<v1::Finding> advice = FindingsOf(reply);
  ASSERT_THAT(advice, SizeIs(1));
  EXPECT_THAT(advice[0].finding(), AllOf(HasSubstr("train.py:42"), HasSubstr("1.30 %"),
                                         HasSubstr(".item()")));
  EXPECT_EQ(advice[0].time_ns(), PercentNs(0.6) + PercentNs(0.7));
}

TEST(GpuAdvice, IsSilentAboutSyncsThatWasteNothing) {
  v1::ReportReply reply = TracedReport();
  v1::SyncPoint* point = AddSync(reply, 0);
  point->set_blocked_ns(PercentNs(90));
  point->set_judged_blocked_ns(PercentNs(90));
  point->set_needed_ns(PercentNs(90));
  EXPECT_THAT(FindingsOf(reply), IsEmpty());
}

TEST(GpuAdvice, AsksForAHigherThresholdWhenYoungCollectionsPrevail) {
  v1::ReportReply reply = TracedReport();
  AddIdle(reply, v1::GAP_CAUSE_GC, 5);
  v1::GcPause* young = reply.mutable_gc()->add_gc_pauses();
  young->set_generation(0);
  young->set_total_ns(10);
  EXPECT_THAT(FindingsOf(reply)[0].advice(), HasSubstr("gc.set_threshold"));
  v1::GcPause* full = reply.mutable_gc()->add_gc_pauses();
  full->set_generation(2);
  full->set_total_ns(11);
  EXPECT_THAT(FindingsOf(reply)[0].advice(), HasSubstr("gc.freeze()"));
}

TEST(GpuAdvice, TellsPyTorchsAllocatorFromAPrograms) {
  v1::ReportReply reply = TracedReport();
  AddIdle(reply, v1::GAP_CAUSE_ALLOCATOR, 5);
  EXPECT_THAT(FindingsOf(reply)[0].advice(), HasSubstr("cudaMallocAsync"));
  v1::GapRow* gap = reply.mutable_gaps()->mutable_gaps(0);
  gap->add_native_stack()->set_function("c10::cuda::CUDACachingAllocator::malloc()");
  EXPECT_THAT(FindingsOf(reply)[0].advice(), HasSubstr("expandable_segments"));
  gap->add_stack()->set_function("empty_cache");
  EXPECT_THAT(FindingsOf(reply)[0].advice(), HasSubstr("empty_cache() out of"));
}

TEST(GpuAdvice, SaysHowShortTheKernelsAreWhenLaunchBound) {
  v1::ReportReply reply = TracedReport();
  AddIdle(reply, v1::GAP_CAUSE_LAUNCH_BOUND, 40);
  AddKernel(reply, "add", 1)->set_calls(1000);
  EXPECT_THAT(FindingsOf(reply)[0].finding(),
              HasSubstr("1,000 kernels last 1.00 ms on average"));
}

TEST(GpuAdvice, AsksForTensorCoresOnlyWhereThereAreSomeAndNoneIsUsed) {
  v1::ReportReply reply = TracedReport();
  AddKernel(reply, "ampere_sgemm_128x64_tn", 40);
  AddKernel(reply, "elementwise", 20);
  ASSERT_THAT(FindingsOf(reply), SizeIs(1));
  EXPECT_THAT(FindingsOf(reply)[0].finding(), HasSubstr("66.7 %"));
  EXPECT_THAT(FindingsOf(reply)[0].advice(), HasSubstr("TF32"));

  reply.mutable_devices(0)->set_compute_capability(70);
  EXPECT_THAT(FindingsOf(reply)[0].advice(),
              AllOf(HasSubstr("autocast"), Not(HasSubstr("TF32"))));
  reply.mutable_devices(0)->set_compute_capability(61);
  EXPECT_THAT(FindingsOf(reply), IsEmpty());
  reply.mutable_devices(0)->set_compute_capability(80);
  reply.mutable_kernels()->mutable_kernels(1)->set_tensor_core(true);
  EXPECT_THAT(FindingsOf(reply), IsEmpty());
}

TEST(GpuAdvice, DoesNotAskForTensorCoresInDoublePrecisionOrForFewProducts) {
  v1::ReportReply reply = TracedReport();
  AddKernel(reply, "volta_dgemm_64x64_nn", 40);
  EXPECT_THAT(FindingsOf(reply), IsEmpty());
  AddKernel(reply, "ampere_sgemm_128x64_tn", 10);
  EXPECT_THAT(FindingsOf(reply), IsEmpty());  // a fifth of kernel time
}

TEST(GpuAdvice, SeesGradientsThatAreFilledWithZeros) {
  v1::ReportReply reply = TracedReport();
  v1::KernelRow* fill =
      AddKernel(reply, "vectorized_elementwise_kernel<FillFunctor>", 3);
  EXPECT_THAT(FindingsOf(reply), IsEmpty());  // launched by who knows what
  fill->add_stack()->set_function("Optimizer.zero_grad");
  ASSERT_THAT(FindingsOf(reply), SizeIs(1));
  EXPECT_THAT(FindingsOf(reply)[0].advice(), HasSubstr("set_to_none=True"));
}

TEST(GpuAdvice, SeesCommunicationThatNothingHides) {
  v1::ReportReply reply = TracedReport();
  v1::StepRow* median = reply.mutable_steps()->mutable_median();
  reply.mutable_steps()->set_count(100);
  median->set_duration_ns(100'000'000);
  median->set_communication_ns(10'000'000);
  EXPECT_THAT(FindingsOf(reply), IsEmpty());
  median->set_communication_ns(11'000'000);
  ASSERT_THAT(FindingsOf(reply), SizeIs(1));
  EXPECT_THAT(FindingsOf(reply)[0].advice(), HasSubstr("bucket_cap_mb"));
}

TEST(GpuAdvice, IgnoresHostTimeThatTheGpuDidNotMiss) {
  v1::ReportReply reply = testing::FixedReport();  // full of host-level findings
  ASSERT_THAT(FindingsOf(reply), Not(IsEmpty()));
  reply.mutable_gpu()->clear_missing();
  reply.mutable_gpu()->set_traced_ns(kTracedNs);
  reply.mutable_gpu()->set_busy_ns(kTracedNs);
  EXPECT_THAT(FindingsOf(reply), IsEmpty());
}

TEST(GpuAdvice, RanksByGpuTimeToWin) {
  std::vector<v1::Finding> advice = FindingsOf(testing::FixedGpuReport());
  ASSERT_GE(advice.size(), 4u);
  EXPECT_EQ(advice[0].rule(), "data_wait");
  EXPECT_EQ(advice[1].rule(), "sync");
  for (size_t i = 1; i < advice.size(); ++i) {
    EXPECT_GE(advice[i - 1].win_ns(), advice[i].win_ns());
    EXPECT_TRUE(advice[i].of_gpu_time());
  }
}

v1::SyncPoint Point(const std::string& api, const std::string& native) {
  v1::SyncPoint point;
  point.set_api(api);
  point.set_calls(10);
  if (!native.empty()) point.add_native_stack()->set_function(native);
  return point;
}

TEST(SyncKind, IsToldByNativeFrames) {
  const char* kWait = "cudaStreamSynchronize";
  EXPECT_EQ(KindOf(Point(kWait, "at::native::item(at::Tensor const&)")),
            SyncKind::kReadValue);
  EXPECT_EQ(KindOf(Point(kWait, "at::_ops::nonzero::call(at::Tensor const&)")),
            SyncKind::kShape);
  EXPECT_EQ(KindOf(Point(kWait, "torch::utils::as_tensor(c10::DispatchKey, ...)")),
            SyncKind::kFromPython);
  EXPECT_EQ(KindOf(Point(kWait, "torch::autograd::THPVariable_cpu(_object*)")),
            SyncKind::kToHost);
  EXPECT_EQ(KindOf(Point(kWait, "at::native::copy_(at::Tensor&, at::Tensor const&)")),
            SyncKind::kCopy);
  EXPECT_EQ(KindOf(Point(kWait, "at::native::something_else")), SyncKind::kUnknown);
  EXPECT_EQ(KindOf(Point(kWait, "Solver::iterate()")), SyncKind::kExplicit);
  EXPECT_EQ(KindOf(Point(kWait, "")), SyncKind::kUnknown);
}

TEST(SyncKind, OfAMaskIsTheShapeAlthoughItCopies) {
  v1::SyncPoint point = Point("cudaMemcpyAsync", "at::native::copy_(at::Tensor&)");
  point.add_native_stack()->set_function("at::native::nonzero_out_cuda()");
  EXPECT_EQ(KindOf(point), SyncKind::kShape);
}

TEST(SyncKind, IsToldByTheFramesOfPyTorchsPythonSide) {
  struct Case {
    const char* file;
    const char* function;
    SyncKind kind;
  };
  for (const Case& c :
       {Case{"/x/torch/cuda/__init__.py", "synchronize", SyncKind::kExplicit},
        Case{"/x/torch/amp/grad_scaler.py", "GradScaler._maybe_opt_step",
             SyncKind::kGradScaler},
        Case{"/x/torch/nn/utils/clip_grad.py", "clip_grad_norm_", SyncKind::kClipGrad},
        Case{"/x/torch/_tensor_str.py", "_str", SyncKind::kPrint}}) {
    v1::SyncPoint point = Point("cudaStreamSynchronize", "at::native::item()");
    v1::Frame* frame = point.add_stack();
    frame->set_file(c.file);
    frame->set_function(c.function);
    EXPECT_EQ(KindOf(point), c.kind) << c.file;
  }
}

TEST(SyncKind, TellsLargePageableCopiesFromValuesReadBack) {
  v1::SyncPoint point = Point("cudaMemcpyAsync", "");
  point.set_bytes(10 << 20);
  EXPECT_EQ(KindOf(point), SyncKind::kPageableCopy);
  point.set_bytes(40);
  EXPECT_EQ(KindOf(point), SyncKind::kUnknown);
}

TEST(SyncKind, HasWordsForEveryKind) {
  for (int kind = 0; kind <= static_cast<int>(SyncKind::kClipGrad); ++kind) {
    EXPECT_STRNE(WhatItIs(static_cast<SyncKind>(kind)), "") << kind;
    EXPECT_STRNE(HowToAvoid(static_cast<SyncKind>(kind)), "") << kind;
  }
}

}  // namespace
}  // namespace lull
