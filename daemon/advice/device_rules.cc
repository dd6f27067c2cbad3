#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/advice/rules.h"
#include "daemon/advice/thresholds.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

constexpr char kGraphs[] =
    "capture the step in a CUDA graph (torch.compile(mode=\"reduce-overhead\") or "
    "torch.cuda.graphs), fuse operations with torch.compile, or use larger batches";

// What of a kind of gaps lies in CUDA graphs, or before them. Of the rows that are
// listed.
bool IsMostlyOfGraphs(const v1::Gaps& gaps, v1::GapCause cause) {
  uint64_t all_ns = 0, graphs_ns = 0;
  for (const v1::GapRow& gap : gaps.gaps()) {
    if (gap.cause() != cause) continue;
    all_ns += gap.total_ns();
    if (absl::StrContains(gap.culprit_api(), "GraphLaunch"))
      graphs_ns += gap.total_ns();
  }
  return graphs_ns > all_ns / 2;
}

std::string MeanKernel(const v1::Kernels& kernels) {
  if (kernels.total_calls() == 0) return "";
  return absl::StrCat("; its ", FormatCount(kernels.total_calls()), " kernels last ",
                      FormatDuration(kernels.total_ns() / kernels.total_calls()),
                      " on average");
}

// Products and convolutions in single or half precision: those that tensor cores do.
// Double precision and integers are not made faster by AMP.
bool IsMatrixKernel(const v1::KernelRow& row) {
  std::string name = absl::AsciiStrToLower(row.name());
  for (const char* other : {"dgemm", "zgemm", "f64", "double", "igemm"}) {
    if (absl::StrContains(name, other)) return false;
  }
  for (const char* part : {"gemm", "conv", "wgrad", "dgrad", "fprop", "winograd"}) {
    if (absl::StrContains(name, part)) return true;
  }
  return false;
}

// The least of all devices, 0 if one is unknown.
uint32_t Capability(const v1::ReportReply& reply) {
  uint32_t least = UINT32_MAX;
  for (const v1::DeviceRow& device : reply.devices()) {
    if (device.traced_ns() > 0) least = std::min(least, device.compute_capability());
  }
  return least == UINT32_MAX ? 0 : least;
}

bool LaunchedByZeroGrad(const v1::KernelRow& row) {
  if (absl::StrContains(row.site().function(), "zero_grad")) return true;
  return std::any_of(row.stack().begin(), row.stack().end(),
                     [](const v1::Frame& frame) {
                       return absl::StrContains(frame.function(), "zero_grad");
                     });
}

}  // namespace

void LaunchBound(const Evidence& evidence, Findings& found) {
  uint64_t idle = evidence.Idle(v1::GAP_CAUSE_LAUNCH_BOUND);
  if (!evidence.ExceedsTraced(idle, kIdleLaunchPercent)) return;
  AddFinding(
      found, "launch_bound",
      absl::StrCat("the GPU idles ", evidence.OfTraced(idle),
                   " of traced time between launches that the host issues too slowly",
                   MeanKernel(evidence.reply().kernels())),
      kGraphs, idle, true);
}

void LaunchLatency(const Evidence& evidence, Findings& found) {
  const uint64_t idle = evidence.Idle(v1::GAP_CAUSE_LAUNCH_LATENCY);
  const uint64_t times = evidence.IdleCount(v1::GAP_CAUSE_LAUNCH_LATENCY);
  if (!evidence.ExceedsTraced(idle, kIdleLatencyPercent) || times == 0) return;
  const std::string what = absl::StrCat("the GPU idles ", evidence.OfTraced(idle),
                                        " of traced time from a launch to its start, ",
                                        FormatCount(times), " times");
  if (idle / times > kOrdinaryLatencyNs) {
    AddFinding(found, "launch_latency",
               absl::StrCat(what, ", ", FormatDuration(idle / times),
                            " on average; 10 us are usual"),
               "see whether other processes use this GPU (nvidia-smi, time slicing, "
               "MPS): then it takes turns, and is busy for them while this job waits",
               idle, true);
    return;
  }
  const bool of_graphs =
      IsMostlyOfGraphs(evidence.reply().gaps(), v1::GAP_CAUSE_LAUNCH_LATENCY);
  AddFinding(
      found, "launch_latency",
      absl::StrCat(what, of_graphs ? ", mostly between the nodes of CUDA graphs" : "",
                   MeanKernel(evidence.reply().kernels())),
      of_graphs
          ? "fuse operations with torch.compile, or use larger batches: fewer and "
            "longer kernels, as the step is in a CUDA graph already"
          : kGraphs,
      idle, true);
}

void Dependencies(const Evidence& evidence, Findings& found) {
  uint64_t idle = evidence.Idle(v1::GAP_CAUSE_DEPENDENCY);
  if (!evidence.ExceedsTraced(idle, kIdleDependencyPercent)) return;
  const v1::GapRow* worst = evidence.WorstGap(v1::GAP_CAUSE_DEPENDENCY);
  AddFinding(
      found, "dependency",
      absl::StrCat("the GPU idles ", evidence.OfTraced(idle),
                   " of traced time because one stream waits for another",
                   worst == nullptr
                       ? ""
                       : absl::StrCat(", most before ", FormatSite(worst->after()))),
      "start copies and communication earlier, on streams of their own, and wait for "
      "their events as late as possible",
      idle, true);
}

void TensorCoresUnused(const Evidence& evidence, Findings& found) {
  const v1::ReportReply& reply = evidence.reply();
  uint32_t capability = Capability(reply);
  if (!evidence.gpu_truth() || capability < kTensorCoreCapability) return;
  if (reply.steps().tensor_core_percent() > 0) return;
  uint64_t matrix = 0;
  const v1::KernelRow* worst = nullptr;
  for (const v1::KernelRow& row : reply.kernels().kernels()) {
    if (row.tensor_core()) return;
    if (!IsMatrixKernel(row)) continue;
    matrix += row.total_ns();
    if (worst == nullptr) worst = &row;
  }
  uint64_t all = reply.kernels().total_ns();
  if (worst == nullptr || Percent(D(matrix), D(all)) <= kMatrixPercent) return;
  v1::Finding& finding = AddFinding(
      found, "tensor_cores",
      absl::StrCat("matrix products and convolutions take ",
                   FormatShare(D(matrix), D(all)), " of kernel time (",
                   FormatDuration(matrix), "), none on tensor cores, most at ",
                   FormatSite(worst->site())),
      capability >= kTf32Capability
          ? "allow TF32 (torch.set_float32_matmul_precision(\"high\"), "
            "torch.backends.cudnn.allow_tf32), or run the model under "
            "torch.autocast(\"cuda\", dtype=torch.bfloat16)"
          : "run the model under torch.autocast(\"cuda\", dtype=torch.float16) with a "
            "GradScaler",
      matrix, true);
  finding.set_win_ns(matrix / kTensorCoreSpeedUp);
  *finding.mutable_site() = worst->site();
}

void GradientsFilledWithZero(const Evidence& evidence, Findings& found) {
  uint64_t total = 0;
  uint64_t calls = 0;
  const v1::KernelRow* worst = nullptr;
  for (const v1::KernelRow& row : evidence.reply().kernels().kernels()) {
    if (!LaunchedByZeroGrad(row)) continue;
    total += row.total_ns();
    calls += row.calls();
    if (worst == nullptr) worst = &row;
  }
  if (calls < kLoopCalls || !evidence.ExceedsTraced(total, kZeroGradPercent)) return;
  *AddFinding(
       found, "zero_grad",
       absl::StrCat("filling gradients with zeros takes ", evidence.OfTraced(total),
                    " of traced time (", FormatCount(calls), " kernels) at ",
                    FormatSite(worst->site())),
       "optimizer.zero_grad(set_to_none=True)", total, true)
       .mutable_site() = worst->site();
}

void CommunicationNotHidden(const Evidence& evidence, Findings& found) {
  if (!evidence.gpu_truth()) return;
  const v1::Steps& steps = evidence.reply().steps();
  uint64_t per_step = steps.median().communication_ns();
  uint64_t step = steps.median().duration_ns();
  if (Percent(D(per_step), D(step)) <= kCommunicationPercent) return;
  uint64_t total = per_step * steps.count();
  AddFinding(found, "communication",
             absl::StrCat("communication that no computation hides takes ",
                          FormatShare(D(per_step), D(step)), " of the median step (",
                          FormatDuration(per_step), " of ", FormatDuration(step), ")"),
             "overlap it: larger gradient buckets (bucket_cap_mb), "
             "gradient_as_bucket_view=True, no_sync() while gradients accumulate",
             total, true);
}

}  // namespace lull
