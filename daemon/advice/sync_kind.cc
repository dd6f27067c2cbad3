#include "daemon/advice/sync_kind.h"

#include <initializer_list>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "daemon/advice/thresholds.h"

namespace lull {
namespace {

struct NativeMark {
  const char* text;  // part of a native function's name
  SyncKind kind;
};

// In the order of what says most: indexing with a mask runs nonzero, which runs a copy.
constexpr NativeMark kNativeMarks[] = {
    {"nonzero", SyncKind::kShape},
    {"masked_select", SyncKind::kShape},
    {"unique", SyncKind::kShape},
    {"repeat_interleave", SyncKind::kShape},
    {"bincount", SyncKind::kShape},
    {"_local_scalar_dense", SyncKind::kReadValue},
    {"at::native::item(", SyncKind::kReadValue},
    {"at::native::is_nonzero", SyncKind::kReadValue},
    {"new_from_data", SyncKind::kFromPython},
    {"torch::utils::as_tensor", SyncKind::kFromPython},
    {"torch::utils::tensor_ctor", SyncKind::kFromPython},
    {"torch::utils::new_tensor", SyncKind::kFromPython},
    {"torch::utils::legacy_", SyncKind::kFromPython},
    {"indexing_tensor_from_data", SyncKind::kFromPython},
    {"THPVariable_cpu", SyncKind::kToHost},
    {"THPVariable_numpy", SyncKind::kToHost},
    {"tensor_to_list", SyncKind::kToHost},
    {"THPVariable_tolist", SyncKind::kToHost},
};

struct PythonMark {
  const char* file;      // how the path ends
  const char* function;  // part of the name; "" = any
  SyncKind kind;
};

constexpr PythonMark kPythonMarks[] = {
    {"torch/_tensor_str.py", "", SyncKind::kPrint},
    {"torch/amp/grad_scaler.py", "", SyncKind::kGradScaler},
    {"torch/cuda/amp/grad_scaler.py", "", SyncKind::kGradScaler},
    {"torch/nn/utils/clip_grad.py", "", SyncKind::kClipGrad},
    {"torch/cuda/__init__.py", "synchronize", SyncKind::kExplicit},
    {"torch/cuda/streams.py", "synchronize", SyncKind::kExplicit},
};

struct Words {
  SyncKind kind;
  const char* what_it_is;
  const char* how_to_avoid;
};

// The last one is for what is not known.
constexpr Words kWords[] = {
    {SyncKind::kReadValue, "a value read back (.item(), float(), bool(), `if`)",
     "keep the value on the GPU and add it up there; read it back every few "
     "steps, or decide with torch.where instead of `if`"},
    {SyncKind::kPrint, "a tensor printed",
     "print every few steps, or what was read back already"},
    {SyncKind::kShape,
     "a result whose size depends on values (boolean mask, nonzero, unique)",
     "keep the shape fixed: torch.where or a multiplication with the mask "
     "instead of indexing by it"},
    {SyncKind::kFromPython, "a device tensor made of a Python number or list",
     "make it on the GPU (torch.full, torch.ones_like, torch.zeros with "
     "device=), once before the loop, or leave it a CPU scalar"},
    {SyncKind::kToHost, "a tensor copied to the host",
     "copy into pinned memory with non_blocking=True and look at it a step "
     "later, or every few steps"},
    {SyncKind::kPageableCopy, "a copy from or to pageable memory",
     "use pinned memory: DataLoader(pin_memory=True) or tensor.pin_memory(), "
     "and .to(device, non_blocking=True)"},
    {SyncKind::kCopy, "a copy that blocks",
     "copy asynchronously: .to(device, non_blocking=True) from pinned memory, "
     "or less often"},
    {SyncKind::kExplicit, "an explicit synchronisation",
     "take synchronize() out of the loop, or wait for an event of an earlier "
     "step"},
    {SyncKind::kGradScaler, "the GradScaler's look for overflows",
     "train in bfloat16, which needs no GradScaler"},
    {SyncKind::kClipGrad, "a look at the norm of the gradients",
     "leave error_if_nonfinite off, and log the norm every few steps"},
    {SyncKind::kUnknown, "a wait for the GPU",
     "keep .item(), .cpu(), prints of tensors and synchronize() out of the loop, or do "
     "them every few steps"},
};

const Words& WordsOf(SyncKind kind) {
  const Words* words = kWords;
  while (words->kind != kind && words->kind != SyncKind::kUnknown) ++words;
  return *words;
}

bool IsCopy(const v1::SyncPoint& point) {
  return absl::StrContains(point.api(), "emcpy");
}

// Who called the copy is in the Python frames of the library, where it is of PyTorch.
SyncKind ByPythonFrames(const v1::SyncPoint& point) {
  for (const PythonMark& mark : kPythonMarks) {
    for (const v1::Frame& frame : point.stack()) {
      if (absl::EndsWith(frame.file(), mark.file) &&
          absl::StrContains(frame.function(), mark.function)) {
        return mark.kind;
      }
    }
  }
  return SyncKind::kUnknown;
}

SyncKind ByNativeFrames(const v1::SyncPoint& point) {
  for (const NativeMark& mark : kNativeMarks) {
    for (const v1::Frame& frame : point.native_stack()) {
      if (absl::StrContains(frame.function(), mark.text)) return mark.kind;
    }
  }
  return SyncKind::kUnknown;
}

bool AnyNative(const v1::SyncPoint& point,
               std::initializer_list<absl::string_view> texts) {
  for (const v1::Frame& frame : point.native_stack()) {
    for (absl::string_view text : texts) {
      if (absl::StrContains(frame.function(), text)) return true;
    }
  }
  return false;
}

SyncKind ByCall(const v1::SyncPoint& point) {
  if (IsCopy(point)) {
    if (IsReadBack(point)) return SyncKind::kUnknown;
    return IsAsyncCopy(point) ? SyncKind::kPageableCopy : SyncKind::kCopy;
  }
  // PyTorch's copies wait for their stream by a call of their own.
  if (AnyNative(point, {"at::native::copy_", "copy_kernel_cuda"})) {
    return SyncKind::kCopy;
  }
  bool whole_device = absl::StrContains(point.api(), "DeviceSynchronize") ||
                      absl::StrContains(point.api(), "CtxSynchronize");
  bool by_program =
      !point.native_stack().empty() && !AnyNative(point, {"at::", "torch::"});
  return whole_device || by_program ? SyncKind::kExplicit : SyncKind::kUnknown;
}

}  // namespace

bool IsAsyncCopy(const v1::SyncPoint& point) {
  return IsCopy(point) && absl::StrContains(point.api(), "Async");
}

bool IsReadBack(const v1::SyncPoint& point) {
  return IsCopy(point) && point.bytes() <= kReadBackBytes * point.calls();
}

SyncKind KindOf(const v1::SyncPoint& point) {
  SyncKind kind = ByPythonFrames(point);
  if (kind == SyncKind::kUnknown) kind = ByNativeFrames(point);
  return kind == SyncKind::kUnknown ? ByCall(point) : kind;
}

const char* WhatItIs(SyncKind kind) { return WordsOf(kind).what_it_is; }

const char* HowToAvoid(SyncKind kind) { return WordsOf(kind).how_to_avoid; }

}  // namespace lull
