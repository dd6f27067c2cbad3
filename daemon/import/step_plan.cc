#include "daemon/import/step_plan.h"

#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

namespace lull::imports {
namespace {

std::optional<uint64_t> NumberOf(absl::string_view name) {
  constexpr absl::string_view kStep = "ProfilerStep#";
  uint64_t number = 0;
  if (!absl::StartsWith(name, kStep) ||
      !absl::SimpleAtoi(name.substr(kStep.size()), &number)) {
    return std::nullopt;
  }
  return number;
}

uint64_t DoneAt(const Trace& trace, const PlannedStep& step) {
  absl::flat_hash_set<uint32_t> launched;
  uint64_t done_ns = step.end_ns;
  for (const Record& record : trace.records) {
    if (record.start_ns < step.start_ns || record.correlation == 0) continue;
    if (record.kind == Kind::kCall && record.start_ns < step.end_ns) {
      launched.insert(record.correlation);
    } else if (IsOfDevice(record.kind) && launched.contains(record.correlation)) {
      done_ns = std::max(done_ns, record.end_ns);
    }
  }
  return done_ns;
}

}  // namespace

bool NamesStep(absl::string_view name) { return NumberOf(name).has_value(); }

std::vector<PlannedStep> StepsOf(const Trace& trace) {
  std::vector<PlannedStep> steps;
  absl::flat_hash_map<uint32_t, std::optional<uint64_t>> numbers;  // by name
  for (const Record& record : trace.records) {
    if (record.kind != Kind::kAnnotation) continue;
    auto [number, fresh] = numbers.try_emplace(record.name);
    if (fresh) number->second = NumberOf(trace.strings[record.name]);
    if (!number->second) continue;
    const PlannedStep step{*number->second, record.start_ns, record.end_ns, record.tid};
    if (steps.empty() || record.start_ns >= steps.back().end_ns) {
      if (!steps.empty()) steps.back().end_ns = record.start_ns;
      steps.push_back(step);
    } else {  // within the one before: the inner one counts
      steps.back() = step;
    }
  }
  if (!steps.empty()) steps.back().end_ns = DoneAt(trace, steps.back());
  return steps;
}

}  // namespace lull::imports
