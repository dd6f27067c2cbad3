#include "cli/base/environment.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "daemon/procfs/procfs.h"
#include "daemon/procfs/stat.h"

namespace lull {
namespace {

constexpr absl::string_view kPreload = "LD_PRELOAD=";
constexpr absl::string_view kSocket = "LULL_SOCKET=";
constexpr absl::string_view kStepRange = "LULL_STEP_RANGE=";
constexpr absl::string_view kSamples = "LULL_SAMPLES=";
constexpr absl::string_view kFilters = "LULL_FILTERS=";
constexpr absl::string_view kNvtx = "NVTX_INJECTION64_PATH=";

bool IsOurs(absl::string_view library) {
  size_t slash = library.rfind('/');
  return library.substr(slash == absl::string_view::npos ? 0 : slash + 1) ==
         "liblull.so";
}

// The value of LD_PRELOAD without our library.
std::string WithoutOurs(absl::string_view value) {
  std::vector<absl::string_view> others;
  for (absl::string_view library :
       absl::StrSplit(absl::string_view(value.data(), value.size()),
                      absl::ByAnyChar(": "), absl::SkipEmpty())) {
    if (!IsOurs(library)) others.push_back(library);
  }
  return absl::StrJoin(others, ":");
}

// The number of seccomp filters on us; "" where the kernel does not say.
std::string OwnFilters() {
  std::string status = Procfs().Read("self/status").text;
  return std::string(StatusField(status, "Seccomp_filters"));
}

}  // namespace

std::vector<std::string> EnvironmentWithShim(absl::string_view library,
                                             absl::string_view socket,
                                             absl::string_view step_range,
                                             bool samples) {
  std::string preload = absl::StrCat(kPreload, library);
  std::string our_socket = absl::StrCat(kSocket, socket);
  bool preload_set = false;
  bool socket_set = false;
  bool nvtx_taken = false;
  std::vector<std::string> result;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    absl::string_view text = *variable;
    if (text.substr(0, kPreload.size()) == kPreload) {
      std::string others = WithoutOurs(text.substr(kPreload.size()));
      result.push_back(others.empty() ? preload : absl::StrCat(preload, ":", others));
      preload_set = true;
    } else if (text.substr(0, kSocket.size()) == kSocket) {
      result.push_back(our_socket);
      socket_set = true;
    } else if (text.substr(0, kStepRange.size()) == kStepRange ||
               text.substr(0, kSamples.size()) == kSamples ||
               text.substr(0, kFilters.size()) == kFilters) {
      continue;  // of a lull around us
    } else if (text.substr(0, kNvtx.size()) == kNvtx) {
      if (IsOurs(text.substr(kNvtx.size()))) continue;
      nvtx_taken = true;
      result.emplace_back(text);
    } else {
      result.emplace_back(text);
    }
  }
  if (!preload_set) result.push_back(preload);
  if (!socket_set) result.push_back(our_socket);
  if (std::string filters = OwnFilters(); !filters.empty() && filters != "0") {
    result.push_back(absl::StrCat(kFilters, filters));
  }
  if (!step_range.empty()) result.push_back(absl::StrCat(kStepRange, step_range));
  if (!samples) result.push_back(absl::StrCat(kSamples, "0"));
  if (!nvtx_taken) result.push_back(absl::StrCat(kNvtx, library));
  return result;
}

std::vector<std::string> EnvironmentWithoutShim() {
  std::vector<std::string> result;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    absl::string_view text = *variable;
    if (text.substr(0, kSocket.size()) == kSocket) continue;
    if (text.substr(0, kPreload.size()) == kPreload) {
      std::string others = WithoutOurs(text.substr(kPreload.size()));
      if (!others.empty()) result.push_back(absl::StrCat(kPreload, others));
      continue;
    }
    if (text.substr(0, kNvtx.size()) == kNvtx && IsOurs(text.substr(kNvtx.size()))) {
      continue;
    }
    result.emplace_back(text);
  }
  return result;
}

std::string Variable(const char* name) {
  const char* value = getenv(name);
  return value != nullptr ? value : "";
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

void CloseFrom(unsigned first) {
  if (syscall(SYS_close_range, first, ~0u, 0u) == 0) return;
  // Before Linux 5.9. All of ours are close-on-exec; this is for what a library
  // opened without.
  for (unsigned fd = first; fd < 4096; ++fd) close(static_cast<int>(fd));
}

}  // namespace lull
