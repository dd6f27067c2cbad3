#include "daemon/aggregate/wait_kind.h"

namespace lull::aggregate {
namespace {

struct Prefix {
  std::string_view text;
  WaitKind kind;
};

// The first match counts.
constexpr Prefix kPrefixes[] = {
    {"sem_", WaitKind::kLock},
    {"lock.", WaitKind::kLock},         // of imported traces
    {"run_backward", WaitKind::kLock},  // for the threads of PyTorch's engine
    {"pthread_cond_", WaitKind::kLock},
    {"pthread_mutex_", WaitKind::kLock},
    {"poll", WaitKind::kIo},
    {"ppoll", WaitKind::kIo},
    {"__poll", WaitKind::kIo},
    {"__ppoll", WaitKind::kIo},
    {"select", WaitKind::kIo},
    {"pselect", WaitKind::kIo},
    {"epoll_", WaitKind::kIo},
    {"read", WaitKind::kIo},
    {"__read", WaitKind::kIo},
    {"recv", WaitKind::kIo},
    {"__recv", WaitKind::kIo},
    {"pread", WaitKind::kIo},
    {"nanosleep", WaitKind::kSleep},
    {"clock_nanosleep", WaitKind::kSleep},
    {"usleep", WaitKind::kSleep},
    {"sleep", WaitKind::kSleep},
    {"wait", WaitKind::kProcess},
};

constexpr std::string_view kDataLoader = "torch/utils/data/dataloader.py";

}  // namespace

const char* WaitKindName(WaitKind kind) {
  switch (kind) {
    case WaitKind::kOther:
      break;
    case WaitKind::kData:
    case WaitKind::kWithinData:
      return "data";
    case WaitKind::kGil:
      return "gil";
    case WaitKind::kLock:
      return "lock";
    case WaitKind::kIo:
      return "io";
    case WaitKind::kSleep:
      return "sleep";
    case WaitKind::kProcess:
      return "process";
  }
  return "other";
}

WaitKind ClassifyWait(std::string_view api, bool from_python,
                      const std::vector<const Frame*>& python) {
  for (const Frame* frame : python) {
    // Reading the module while it is imported is no wait for data.
    if (frame->file.ends_with(kDataLoader) && frame->function != "<module>") {
      return WaitKind::kData;
    }
  }
  if (from_python && api == "pthread_cond_timedwait") return WaitKind::kGil;
  for (const Prefix& prefix : kPrefixes) {
    if (api.substr(0, prefix.text.size()) == prefix.text) return prefix.kind;
  }
  return WaitKind::kOther;
}

}  // namespace lull::aggregate
