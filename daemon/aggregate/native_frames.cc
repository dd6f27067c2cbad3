#include "daemon/aggregate/native_frames.h"

#include <cstddef>
#include <string>

#include "daemon/base/text.h"

namespace lull::aggregate {
namespace {

constexpr std::string_view kStub = "__device_stub_";
constexpr std::string_view kWrapper = "__wrapper__device_stub_";

// Where the arguments of a template or the parameters begin, or the end of the name; a
// scope "(anonymous namespace)::" is part of the name.
size_t EndOfName(std::string_view function) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  size_t end = function.find_first_of("<(");
  while (end != std::string_view::npos &&
         function.substr(end).starts_with(kAnonymous)) {
    end = function.find_first_of("<(", end + kAnonymous.size());
  }
  return end == std::string_view::npos ? function.size() : end;
}

// "fill" of "void ns::fill<float>(float*, float, int)".
std::string_view BaseName(const Frame& frame) {
  const std::string_view name = QualifiedName(frame);
  size_t scope = name.find_last_of(": ");
  return scope == std::string_view::npos ? name : name.substr(scope + 1);
}

// "cudaError cudaMalloc<float>(float**, unsigned long)": inline functions of the
// runtime's headers, where there is no line table to say so.
bool IsRuntimeTemplate(const Frame& frame) {
  size_t end = EndOfName(frame.function);
  if (end == frame.function.size() || frame.function[end] != '<') return false;
  std::string_view name = BaseName(frame);
  return name.starts_with("cuda") && name.size() > 4 && name[4] >= 'A' &&
         name[4] <= 'Z';
}

bool IsLaunchStub(const Frame& frame) {
  std::string_view name = BaseName(frame);
  return name.starts_with(kStub) || name.starts_with(kWrapper);
}

bool IsGenerated(const Frame& frame) {
  return IsLaunchStub(frame) || BaseName(frame).starts_with("__cudaLaunch") ||
         Contains(frame.file, ".cudafe1.") || Contains(frame.file, "/tmpxft_") ||
         frame.file.starts_with("tmpxft_") || frame.function == "_start";
}

// For a CUDA runtime that is linked into the program. The names of its own functions
// are hashes (numbers before CUDA 12).
bool IsInsideStaticRuntime(const Frame& frame) {
  std::string_view name = frame.function;
  if (name.starts_with("libcudart_static_")) return true;
  constexpr std::string_view kOld = "__cudart";
  return name.starts_with(kOld) && name.find_first_of("0123456789") == kOld.size();
}

// Looks like one that such a runtime exports: those have their names, and no line.
bool IsNamedLikeTheRuntime(const Frame& frame) {
  std::string_view name = frame.function;
  return frame.file.empty() && name.starts_with("cuda") && name.size() > 4 &&
         name[4] >= 'A' && name[4] <= 'Z' && EndOfName(name) == name.size() &&
         !Contains(name, ":");
}

// How many frames `native` begins with of a runtime that is linked into the program.
// None of the functions that it exports calls the driver by itself, so what has such a
// name and is innermost is the program's.
size_t InStaticRuntime(const std::vector<const Frame*>& native) {
  size_t count = 0;
  while (count < native.size() &&
         (IsInsideStaticRuntime(*native[count]) ||
          (count > 0 && IsNamedLikeTheRuntime(*native[count])))) {
    ++count;
  }
  return count;
}

// Whether `frame` is the function that stands for the kernel on the host: its stub,
// which has been seen further in, has the kernel's mangled name
// (..._stub__Z4axpyfPfS_i) or, in a wrapper and in C, the name itself.
bool IsKernelOf(const Frame& frame, const Frame& stub) {
  std::string_view kernel = BaseName(frame);
  std::string_view name = BaseName(stub);
  if (name.starts_with(kWrapper)) return name.substr(kWrapper.size()) == kernel;
  name = name.substr(kStub.size());
  if (name.starts_with("_")) name = name.substr(1);
  return name == kernel ||
         Contains(name, std::to_string(kernel.size()) + std::string(kernel));
}

}  // namespace

std::string_view QualifiedName(const Frame& frame) {
  const std::string_view name = frame.function;
  return name.substr(0, EndOfName(name));
}

bool IsNativeInfrastructure(std::string_view module) {
  std::string_view name = module.substr(module.rfind('/') + 1);
  for (std::string_view prefix :
       {"libcudart.so", "libcudart-", "libcuda.so", "libc.so", "libc-2",
        "libpthread.so", "libpthread-2", "liblull.so", "ld-linux", "ld-2", "ld.so",
        "ld64.so", "libstdc++.so", "libc10.so", "libc10_", "libtorch.so",
        "libtorch_"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

bool IsLibraryHeader(std::string_view file) {
  if (file.substr(file.rfind('/') + 1).starts_with("cuda_runtime")) return true;
  if (file.starts_with("/usr/include/")) return true;
  if (file.starts_with("/usr/local/cuda") && Contains(file, "/include/")) return true;
  if (Contains(file, "/targets/") && Contains(file, "-linux/include/")) return true;
  for (std::string_view folder :
       {"/include/c++/", "/lib/gcc/", "/lib/clang/",           // compilers
        "/include/crt/", "/include/thrust/", "/include/cub/",  // a toolkit elsewhere
        "/include/cuda/std/", "/include/cccl/", "/site-packages/nvidia/",
        "/dist-packages/nvidia/", "/torch/include/"}) {
    if (Contains(file, folder)) return true;
  }
  return false;
}

const Frame* FirstWritten(const std::vector<const Frame*>& native) {
  const Frame* stub = nullptr;  // of the launch that the stack begins with
  for (size_t i = InStaticRuntime(native); i < native.size(); ++i) {
    const Frame* frame = native[i];
    if (IsLaunchStub(*frame)) {
      stub = frame;
      continue;
    }
    if (IsGenerated(*frame) || IsNativeInfrastructure(frame->module) ||
        IsLibraryHeader(frame->file) || IsRuntimeTemplate(*frame)) {
      continue;
    }
    if (stub != nullptr && IsKernelOf(*frame, *stub)) {
      stub = nullptr;  // a function that launches may have the kernel's name, too
      continue;
    }
    return frame;
  }
  return nullptr;
}

}  // namespace lull::aggregate
