#include "daemon/aggregate/site.h"

#include <cstddef>

namespace lull::aggregate {
namespace {

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// What follows ".../lib/python3.11/" (or lib64, python3, python311.zip), or "" when
// `file` does not lie in a Python library folder.
std::string_view InsidePythonLibrary(std::string_view file) {
  for (size_t at = file.find("/python3"); at != std::string_view::npos;
       at = file.find("/python3", at + 1)) {
    std::string_view before = file.substr(0, at);
    size_t slash = before.rfind('/');
    std::string_view folder =
        slash == std::string_view::npos ? before : before.substr(slash + 1);
    if (!StartsWith(folder, "lib")) continue;
    size_t end = at + std::string_view("/python3").size();
    while (end < file.size() && (IsDigit(file[end]) || file[end] == '.')) ++end;
    if (StartsWith(file.substr(end), "t/")) ++end;  // free-threaded builds
    if (StartsWith(file.substr(end), "zip/")) end += 3;
    if (end < file.size() && file[end] == '/') return file.substr(end + 1);
  }
  return {};
}

template <typename Predicate>
const Frame* Innermost(const std::vector<const Frame*>& stack, Predicate skip) {
  for (const Frame* frame : stack) {
    if (!skip(*frame)) return frame;
  }
  return stack.empty() ? nullptr : stack.front();
}

}  // namespace

bool IsPythonInfrastructure(std::string_view file) {
  if (StartsWith(file, "<frozen ") || file == "<string>") return true;
  for (std::string_view torch : {"/site-packages/torch/", "/dist-packages/torch/"}) {
    if (file.find(torch) != std::string_view::npos) return true;
  }
  std::string_view inside = InsidePythonLibrary(file);
  return !inside.empty() && !StartsWith(inside, "site-packages/") &&
         !StartsWith(inside, "dist-packages/");
}

bool IsNativeInfrastructure(std::string_view module) {
  std::string_view name = module.substr(module.rfind('/') + 1);
  for (std::string_view prefix :
       {"libcudart.so", "libcudart-", "libcuda.so", "libc.so", "libc-2",
        "libpthread.so", "libpthread-2", "liblull.so", "ld-linux", "ld-2", "ld.so",
        "ld64.so"}) {
    if (StartsWith(name, prefix)) return true;
  }
  return false;
}

bool IsRuntimeHeader(const Frame& frame) {
  std::string_view file = frame.file;
  if (StartsWith(file.substr(file.rfind('/') + 1), "cuda_runtime")) return true;
  // Without a line table: "cudaError cudaMalloc<float>(float**, unsigned long)".
  std::string_view name = frame.function;
  size_t bracket = name.find_first_of("<(");
  if (bracket == std::string_view::npos || name[bracket] != '<') return false;
  name = name.substr(0, bracket);
  name = name.substr(name.rfind(' ') + 1);
  return StartsWith(name, "cuda") && name.size() > 4 && name[4] >= 'A' &&
         name[4] <= 'Z';
}

const Frame* SelectSite(const std::vector<const Frame*>& python,
                        const std::vector<const Frame*>& native) {
  if (!python.empty()) {
    return Innermost(python,
                     [](const Frame& f) { return IsPythonInfrastructure(f.file); });
  }
  return Innermost(native, [](const Frame& f) {
    return IsNativeInfrastructure(f.module) || IsRuntimeHeader(f);
  });
}

}  // namespace lull::aggregate
