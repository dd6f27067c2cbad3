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

const char* WhatItIs(SyncKind kind) {
  switch (kind) {
    case SyncKind::kReadValue:
      return "a value read back (.item(), float(), bool(), `if`)";
    case SyncKind::kPrint:
      return "a tensor printed";
    case SyncKind::kShape:
      return "a result whose size depends on values (boolean mask, nonzero, unique)";
    case SyncKind::kFromPython:
      return "a device tensor made of a Python number or list";
    case SyncKind::kToHost:
      return "a tensor copied to the host";
    case SyncKind::kPageableCopy:
      return "a copy from or to pageable memory";
    case SyncKind::kCopy:
      return "a copy that blocks";
    case SyncKind::kExplicit:
      return "an explicit synchronisation";
    case SyncKind::kGradScaler:
      return "the GradScaler's look for overflows";
    case SyncKind::kClipGrad:
      return "a look at the norm of the gradients";
    case SyncKind::kUnknown:
      break;
  }
  return "a wait for the GPU";
}

const char* HowToAvoid(SyncKind kind) {
  switch (kind) {
    case SyncKind::kReadValue:
      return "keep the value on the GPU and add it up there; read it back every few "
             "steps, or decide with torch.where instead of `if`";
    case SyncKind::kPrint:
      return "print every few steps, or what was read back already";
    case SyncKind::kShape:
      return "keep the shape fixed: torch.where or a multiplication with the mask "
             "instead of indexing by it";
    case SyncKind::kFromPython:
      return "make it on the GPU (torch.full, torch.ones_like, torch.zeros with "
             "device=), once before the loop, or leave it a CPU scalar";
    case SyncKind::kToHost:
      return "copy into pinned memory with non_blocking=True and look at it a step "
             "later, or every few steps";
    case SyncKind::kPageableCopy:
      return "use pinned memory: DataLoader(pin_memory=True) or tensor.pin_memory(), "
             "and .to(device, non_blocking=True)";
    case SyncKind::kCopy:
      return "copy asynchronously: .to(device, non_blocking=True) from pinned memory, "
             "or less often";
    case SyncKind::kExplicit:
      return "take synchronize() out of the loop, or wait for an event of an earlier "
             "step";
    case SyncKind::kGradScaler:
      return "train in bfloat16, which needs no GradScaler";
    case SyncKind::kClipGrad:
      return "leave error_if_nonfinite off, and log the norm every few steps";
    case SyncKind::kUnknown:
      break;
  }
  return "keep .item(), .cpu(), prints of tensors and synchronize() out of the loop, "
         "or "
         "do them every few steps";
}

}  // namespace lull
