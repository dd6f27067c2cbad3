#include "daemon/aggregate/wait_kind.h"

#include "daemon/aggregate/native_frames.h"

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

// PyTorch's collectives on the host: `c10d::Reducer::finalize_backward`,
// `c10d::ProcessGroup::Work::wait`, `gloo::transport::tcp::UnboundBuffer::waitRecv`.
bool IsOfACollective(const Frame& frame) {
  const std::string_view name = QualifiedName(frame);
  for (std::string_view scope : {"c10d::", "gloo::"}) {
    const size_t at = name.find(scope);
    if (at == std::string_view::npos) continue;
    if (at == 0 || name[at - 1] == ' ' || name[at - 1] == ':') return true;
  }
  return false;
}

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
    case WaitKind::kComm:
      return "comm";
  }
  return "other";
}

WaitKind ClassifyWait(std::string_view api, bool from_python,
                      const std::vector<const Frame*>& python,
                      const std::vector<const Frame*>& native) {
  for (const Frame* frame : python) {
    // Reading the module while it is imported is no wait for data.
    if (frame->file.ends_with(kDataLoader) && frame->function != "<module>") {
      return WaitKind::kData;
    }
  }
  if (from_python && api == "pthread_cond_timedwait") return WaitKind::kGil;
  if (!from_python && api.starts_with("pthread_cond_")) {
    for (const Frame* frame : native) {
      if (IsOfACollective(*frame)) return WaitKind::kComm;
    }
  }
  for (const Prefix& prefix : kPrefixes) {
    if (api.substr(0, prefix.text.size()) == prefix.text) return prefix.kind;
  }
  return WaitKind::kOther;
}

}  // namespace lull::aggregate
