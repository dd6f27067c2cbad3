#include "daemon/check/metrics.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/words/cause_words.h"
#include "google/protobuf/descriptor.h"

namespace lull::check {
namespace {

// What the host waits for, and allocators, as answers name them (query.proto).
constexpr const char* kHostWaits[] = {"data", "gil",   "lock",    "comm", "io",
                                      "gc",   "sleep", "process", "sync"};
constexpr const char* kAllocators[] = {"cuda", "pinned", "torch_cuda", "torch_cpu",
                                       "torch_other"};

std::vector<Metric> AllMetrics() {
  std::vector<Metric> all = {
      {"sync.calls_per_step", "", Measure::kSyncCalls, ""},
      {"sync.blocked_ms_per_step", "ms", Measure::kSyncBlocked, ""},
      {"sync.wasted_ms_per_step", "ms", Measure::kSyncWasted, ""},
      {"sync.wasted_percent", "%", Measure::kSyncWastedPercent, ""},
      {"step_ms", "ms", Measure::kStepMs, ""},
      {"step_ms.change_percent", "%", Measure::kStepChange, ""},
      {"gpu.idle_percent", "%", Measure::kIdlePercent, ""},
      {"gpu.idle_ms_per_step", "ms", Measure::kIdleMs, ""}};
  const auto& causes = *v1::GapCause_descriptor();
  for (int i = 0; i < causes.value_count(); ++i) {
    const std::string key =
        CauseKey(static_cast<v1::GapCause>(causes.value(i)->number()));
    all.push_back(
        {absl::StrCat("cause.", key, ".ms_per_step"), "ms", Measure::kIdleMs, key});
    all.push_back(
        {absl::StrCat("cause.", key, ".percent"), "%", Measure::kIdlePercent, key});
  }
  for (const char* wait : kHostWaits) {
    all.push_back(
        {absl::StrCat("host.", wait, ".ms_per_step"), "ms", Measure::kHostMs, wait});
  }
  for (const char* allocator : kAllocators) {
    const std::string memory = absl::StrCat("memory.", allocator);
    all.push_back(
        {absl::StrCat(memory, ".peak_mib"), "MiB", Measure::kPeakMiB, allocator});
    all.push_back({absl::StrCat(memory, ".reserved_mib"), "MiB", Measure::kReservedMiB,
                   allocator});
  }
  return all;
}

}  // namespace

const std::vector<Metric>& Metrics() {
  static const auto& all = *new std::vector<Metric>(AllMetrics());
  return all;
}

const Metric* FindMetric(absl::string_view name) {
  const auto& all = Metrics();
  auto found = std::find_if(all.begin(), all.end(),
                            [name](const Metric& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace lull::check
