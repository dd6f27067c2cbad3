#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/advice/rules.h"
#include "daemon/advice/thresholds.h"
#include "daemon/words/format.h"
#include "daemon/words/sample_words.h"

namespace lull {
namespace {

// ", most at train.py:37 main (poll)"
std::string MostAt(const v1::GapRow* worst) {
  if (worst == nullptr) return "";
  std::string at = absl::StrCat(", most at ", FormatSite(worst->culprit()));
  if (!worst->culprit_api().empty()) {
    absl::StrAppend(&at, " (", Shortened(worst->culprit_api(), 40), ")");
  }
  // Data that the training loads itself.
  if (worst->cause() == v1::GAP_CAUSE_DATA_WAIT && !worst->doing().empty() &&
      worst->doing(0).has_own()) {
    absl::StrAppend(&at, ": ", DoingWords(worst->doing(0)));
  }
  return at;
}

// A rule of the simplest kind: one cause, one threshold, one change.
void OneCause(const Evidence& evidence, Findings& found, v1::GapCause cause,
              double percent, const char* rule, absl::string_view what,
              std::string advice) {
  uint64_t idle = evidence.Idle(cause);
  if (!evidence.ExceedsTraced(idle, percent)) return;
  const v1::GapRow* worst = evidence.WorstGap(cause);
  v1::Finding& finding =
      AddFinding(found, rule,
                 absl::StrCat("the GPU idles ", evidence.OfTraced(idle),
                              " of traced time ", what, MostAt(worst)),
                 std::move(advice), idle, true);
  if (worst != nullptr) *finding.mutable_site() = worst->culprit();
}

bool HasFrame(const v1::GapRow* gap, absl::string_view function) {
  return gap != nullptr &&
         std::any_of(gap->stack().begin(), gap->stack().end(),
                     [&](const v1::Frame& frame) {
                       return absl::StrContains(frame.function(), function);
                     });
}

// The line that took the time where samples say so; else the lines around it.
std::string WhatItDid(const v1::GapRow& gap) {
  if (gap.doing().empty() || !gap.doing(0).has_own()) {
    return absl::StrCat(" between ", FormatSite(gap.before()), " and ",
                        FormatSite(gap.after()));
  }
  return absl::StrCat(", ", DoingWords(gap.doing(0)));
}

// Are these the allocations of PyTorch's own caching allocator?
bool ThroughTorch(const v1::ReportReply& reply, const v1::GapRow* worst) {
  if (worst != nullptr && !worst->native_stack().empty()) {
    return std::any_of(worst->native_stack().begin(), worst->native_stack().end(),
                       [](const v1::Frame& frame) {
                         return absl::StrContains(frame.function(), "c10::cuda::");
                       });
  }
  const auto& sites = reply.allocations().allocation_sites();
  return std::any_of(sites.begin(), sites.end(), [](const v1::AllocationSite& site) {
    return site.allocator() == "torch_cuda";
  });
}

const char* AllocatorAdvice(const Evidence& evidence, const v1::GapRow* worst) {
  if (HasFrame(worst, "empty_cache")) {
    return "take torch.cuda.empty_cache() out of the loop";
  }
  if (ThroughTorch(evidence.reply(), worst)) {
    return "keep shapes the same from step to step, set PYTORCH_CUDA_ALLOC_CONF="
           "expandable_segments:True, and leave memory free for the cache";
  }
  return "allocate once before the loop, or use a caching allocator or cudaMallocAsync";
}

// Full collections look at every object there is; young ones are many.
bool MostlyFull(const v1::GcPauses& gc) {
  uint64_t full = 0;
  uint64_t young = 0;
  for (const v1::GcPause& pause : gc.gc_pauses()) {
    (pause.generation() == 2 ? full : young) += pause.total_ns();
  }
  return full >= young;
}

}  // namespace

void IdleForData(const Evidence& evidence, Findings& found) {
  OneCause(evidence, found, v1::GAP_CAUSE_DATA_WAIT, kIdleDataPercent, "data_wait",
           "waiting for data",
           "give the DataLoader more workers (num_workers) that run ahead "
           "(prefetch_factor, pin_memory=True), or make loading a sample cheaper");
}

void IdleForGc(const Evidence& evidence, Findings& found) {
  uint64_t pauses = evidence.IdleCount(v1::GAP_CAUSE_GC);
  OneCause(evidence, found, v1::GAP_CAUSE_GC, kIdleGcPercent, "gc",
           absl::StrCat("in garbage collections (", FormatCount(pauses), " gaps)"),
           MostlyFull(evidence.reply().gc())
               ? "call gc.freeze() after set-up, or gc.disable() and gc.collect() "
                 "between steps"
               : "raise the threshold of young collections, gc.set_threshold(100_000), "
                 "or make fewer objects in the step");
}

void IdleForAllocator(const Evidence& evidence, Findings& found) {
  const v1::GapRow* worst = evidence.WorstGap(v1::GAP_CAUSE_ALLOCATOR);
  OneCause(evidence, found, v1::GAP_CAUSE_ALLOCATOR, kIdleAllocatorPercent, "allocator",
           "while the host allocates or frees memory",
           AllocatorAdvice(evidence, worst));
}

void IdleForLaunchCall(const Evidence& evidence, Findings& found) {
  OneCause(
      evidence, found, v1::GAP_CAUSE_LAUNCH_CALL, kIdleLaunchCallPercent, "launch_call",
      absl::StrCat(
          "inside calls that launch, which load modules, compile or set up first (",
          FormatCount(evidence.IdleCount(v1::GAP_CAUSE_LAUNCH_CALL)), " gaps)"),
      "run each shape once before the loop, or load all modules at the start "
      "(CUDA_MODULE_LOADING=EAGER)");
}

void IdleForProcessor(const Evidence& evidence, Findings& found) {
  OneCause(evidence, found, v1::GAP_CAUSE_RUN_QUEUE, kIdleRunQueuePercent, "run_queue",
           "because the launching thread waits for a processor",
           "give the job processors of its own (taskset, numactl, the container's "
           "limit), with fewer DataLoader workers and OMP_NUM_THREADS than there are");
}

void IdleForGil(const Evidence& evidence, Findings& found) {
  OneCause(evidence, found, v1::GAP_CAUSE_GIL_WAIT, kIdleGilPercent, "gil_wait",
           "because another Python thread has the GIL",
           "move the work of that thread into a process, or out of the step");
}

void IdleForHostWait(const Evidence& evidence, Findings& found) {
  OneCause(evidence, found, v1::GAP_CAUSE_HOST_WAIT, kIdleHostWaitPercent, "host_wait",
           "because the launching thread waits on the host",
           "take this wait out of the step: hand the work to another thread, or do it "
           "every few steps");
}

void IdleForHostCode(const Evidence& evidence, Findings& found) {
  for (const v1::GapRow& gap : evidence.reply().gaps().gaps()) {
    if (gap.cause() != v1::GAP_CAUSE_HOST_CODE) continue;
    if (gap.count() < kLoopCalls) continue;  // set-up, not a loop
    if (!evidence.ExceedsTraced(gap.total_ns(), kIdleHostCodePercent)) continue;
    *AddFinding(
         found, "host_code",
         absl::StrCat("the GPU idles ", evidence.OfTraced(gap.total_ns()),
                      " of traced time for host code", WhatItDid(gap), " (",
                      FormatCount(gap.count()), " times)"),
         "make this code cheaper, do it in a DataLoader worker, or launch GPU work "
         "before it",
         gap.total_ns(), true)
         .mutable_site() = gap.culprit();
  }
}

}  // namespace lull
