#include "cli/render/gpu_words.h"

#include <array>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

constexpr const char* kModes[] = {"host", "window", "continuous"};
constexpr const char* kStates[] = {"off", "warm_up", "active", "yielded"};
constexpr const char* kReasons[] = {"schedule",      "other_user", "budget",
                                    "foreign_clock", "error",      "process_end",
                                    "disarmed"};
constexpr const char* kCuptiStates[] = {"unused", "no_library", "too_old", "failed",
                                        "ready",  "tracing",    "yielded"};

struct CauseWords {
  const char* key;
  const char* name;
};
constexpr CauseWords kCauses[] = {
    {"unknown", "unknown"},
    {"dependency", "dependency"},
    {"launch_latency", "launch latency"},
    {"gc", "GC pause"},
    {"allocator", "allocator"},
    {"data", "data"},
    {"gil_wait", "GIL wait"},
    {"host_wait", "host wait"},
    {"sync", "sync"},
    {"run_queue", "run queue"},
    {"launch_bound", "launch-bound"},
    {"host_code", "host code"},
};

template <size_t kSize>
const char* At(const char* const (&words)[kSize], uint32_t number) {
  return number < kSize ? words[number] : "unknown";
}

const CauseWords& WordsOf(v1::GapCause cause) {
  auto number = static_cast<size_t>(cause);
  return number < std::size(kCauses) ? kCauses[number] : kCauses[0];
}

// Up to CUDA 12.9 CUPTI counts its versions (cupti_version.h); since 13.0 the number
// holds that of CUDA.
struct Numbered {
  uint32_t number;
  const char* cuda;
};
constexpr Numbered kNumbered[] = {
    {13, "11.0"}, {14, "11.1"}, {15, "11.2"}, {16, "11.5"}, {17, "11.6"},
    {18, "11.8"}, {19, "12.0"}, {20, "12.2"}, {21, "12.3"}, {22, "12.4"},
    {23, "12.5"}, {24, "12.6"}, {26, "12.8"}, {27, "12.9"}, {28, "12.9"},
};

}  // namespace

const char* GpuModeKey(uint32_t mode) { return At(kModes, mode); }
const char* TracingStateKey(uint32_t state) { return At(kStates, state); }
const char* TracingReasonKey(uint32_t reason) { return At(kReasons, reason); }
const char* CuptiStateKey(uint32_t state) { return At(kCuptiStates, state); }
const char* CauseKey(v1::GapCause cause) { return WordsOf(cause).key; }
const char* CauseName(v1::GapCause cause) { return WordsOf(cause).name; }

std::string VerdictText(absl::string_view verdict) {
  if (verdict.empty()) return "";
  return absl::StrCat(Shortened(verdict, 20), "-bound");
}

std::string CudaVersionOfCupti(uint32_t version) {
  if (version == 0) return "";
  if (version >= 100'000) {
    return absl::StrCat(version / 10'000, ".", version / 100 % 100);
  }
  for (const Numbered& known : kNumbered) {
    if (known.number == version) return known.cuda;
  }
  return absl::StrCat("API ", version);
}

}  // namespace lull
