#include "daemon/relay/control/gpu_plan.h"

#include <sys/mman.h>

#include <array>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "daemon/base/status.h"

namespace lull::relay {
namespace {

constexpr uint32_t kMaxCount = 1'000'000'000;
constexpr absl::Duration kMaxTime = absl::Hours(24);

// One word of a schedule, and where its value goes.
struct Word {
  absl::string_view name;
  uint32_t GpuPlan::Steps::*steps;
  uint64_t GpuPlan::Clock::*time_ns;
};
constexpr std::array kWords = {
    Word{"skip_first", &GpuPlan::Steps::skip_first, &GpuPlan::Clock::skip_first_ns},
    Word{"wait", &GpuPlan::Steps::wait, &GpuPlan::Clock::wait_ns},
    Word{"warmup", &GpuPlan::Steps::warmup, &GpuPlan::Clock::warmup_ns},
    Word{"active", &GpuPlan::Steps::active, &GpuPlan::Clock::active_ns},
};

const Word* FindWord(absl::string_view name) {
  for (const Word& word : kWords) {
    if (word.name == name) return &word;
  }
  return nullptr;
}

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

std::optional<uint32_t> Count(absl::string_view text) {
  uint32_t count = 0;
  bool plain = !text.empty() && absl::ascii_isdigit(text.front());
  if (!plain || !absl::SimpleAtoi(text, &count) || count > kMaxCount)
    return std::nullopt;
  return count;
}

std::optional<uint64_t> TimeNs(absl::string_view text) {
  absl::Duration time;
  if (text.empty() || !absl::ascii_isdigit(text.front()) ||
      !absl::ParseDuration(text, &time) || time > kMaxTime) {
    return std::nullopt;
  }
  return static_cast<uint64_t>(absl::ToInt64Nanoseconds(time));
}

// Which of the two a schedule speaks of; the first value with a meaning decides.
enum class Unit { kNotKnown, kSteps, kTime };

absl::Status Take(absl::string_view name, absl::string_view value, Unit* unit,
                  GpuPlan* plan) {
  std::optional<uint32_t> count = Count(value);
  if (name == "repeat") {
    if (!count) return Invalid("repeat=", value, " is not a number of windows");
    plan->repeat = *count;
    return absl::OkStatus();
  }
  if (name == "finalize") {
    if (!count || *count > 1) return Invalid("finalize=", value, " is neither 0 nor 1");
    plan->finalize = *count == 1;
    return absl::OkStatus();
  }
  const Word* word = FindWord(name);
  if (word == nullptr) {
    return Invalid(
        "\"", name,
        "\" is none of skip_first, wait, warmup, active, repeat and finalize");
  }
  std::optional<uint64_t> time = count ? std::nullopt : TimeNs(value);
  if (!count && !time) {
    return Invalid(name, "=", value,
                   " is neither a number of steps nor a time like 500ms or 2s");
  }
  if (count == 0u) {  // nothing of either
    plan->steps.*(word->steps) = 0;
    plan->clock.*(word->time_ns) = 0;
    return absl::OkStatus();
  }
  Unit now = count ? Unit::kSteps : Unit::kTime;
  if (*unit != Unit::kNotKnown && *unit != now) {
    return Invalid(name, "=", value, ": steps and times cannot be mixed");
  }
  *unit = now;
  if (count) {
    plan->steps.*(word->steps) = *count;
  } else {
    plan->clock.*(word->time_ns) = *time;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<lull::v1::GpuMode> ParseGpuMode(absl::string_view text) {
  if (text == "host") return lull::v1::GPU_MODE_HOST;
  if (text == "window") return lull::v1::GPU_MODE_WINDOW;
  if (text == "continuous") return lull::v1::GPU_MODE_CONTINUOUS;
  return Invalid("\"", text, "\" is none of host, window and continuous");
}

absl::StatusOr<GpuPlan> ParseGpuSchedule(absl::string_view text) {
  GpuPlan plan;
  Unit unit = Unit::kNotKnown;
  std::set<absl::string_view> named;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    std::pair<absl::string_view, absl::string_view> word =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (part.find('=') == absl::string_view::npos) {
      return Invalid("\"", part, "\" is not of the form wait=20");
    }
    if (!named.insert(word.first).second) {
      return Invalid(word.first, " is there twice");
    }
    LULL_RETURN_IF_ERROR(Take(word.first, word.second, &unit, &plan));
  }
  plan.always_by_clock = unit == Unit::kTime;
  const GpuPlan fallback;
  if (!plan.always_by_clock) {
    // A 0 among steps says nothing of processes without steps.
    plan.clock = fallback.clock;
    if (plan.steps.active == 0) return Invalid("active=0 would never trace");
  } else {
    plan.steps = fallback.steps;
    if (plan.clock.active_ns == 0) return Invalid("active=0 would never trace");
  }
  return plan;
}

std::string ScheduleText(const GpuPlan& plan) {
  if (plan.mode != lull::v1::GPU_MODE_WINDOW) return "";
  std::vector<std::string> parts;
  for (const Word& word : kWords) {
    parts.push_back(
        plan.always_by_clock
            ? absl::StrCat(word.name, "=",
                           absl::FormatDuration(absl::Nanoseconds(
                               static_cast<int64_t>(plan.clock.*(word.time_ns)))))
            : absl::StrCat(word.name, "=", plan.steps.*(word.steps)));
  }
  parts.push_back(absl::StrCat("repeat=", plan.repeat));
  if (plan.finalize) parts.emplace_back("finalize=1");
  return absl::StrJoin(parts, ",");
}

void WriteGpuPlan(const GpuPlan& plan, abi::ControlBlock* control) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  control->gpu_mode.store(plan.mode, kRelaxed);
  control->gpu_skip_first.store(plan.steps.skip_first, kRelaxed);
  control->gpu_wait.store(plan.steps.wait, kRelaxed);
  control->gpu_warmup.store(plan.steps.warmup, kRelaxed);
  control->gpu_active.store(plan.steps.active, kRelaxed);
  control->gpu_repeat.store(plan.repeat, kRelaxed);
  control->gpu_finalize.store(plan.finalize ? 1 : 0, kRelaxed);
}

void PutToSleep(uint64_t now_ns, abi::ControlBlock* control) {
  control->asleep_since_ns.store(now_ns, std::memory_order_relaxed);
  control->armed.store(0, std::memory_order_release);
}

bool PrepareControl(const GpuPlan& plan, bool armed, uint64_t now_ns, int memfd) {
  // From the start: the block itself need not begin at a page of this machine.
  constexpr size_t kSize = abi::kControlOffset + sizeof(abi::ControlBlock);
  void* base = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
  if (base == MAP_FAILED) return false;
  abi::ControlBlock* control = &abi::SegmentView(base).control();
  WriteGpuPlan(plan, control);
  if (!armed) PutToSleep(now_ns, control);
  munmap(base, kSize);
  return true;
}

}  // namespace lull::relay
