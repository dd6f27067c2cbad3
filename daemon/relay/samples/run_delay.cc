#include "daemon/relay/samples/run_delay.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "daemon/base/event_views.h"
#include "daemon/procfs/stat.h"

namespace lull::relay {
namespace {

constexpr uint64_t kTracedPeriodNs = 50'000'000;
constexpr uint64_t kPeriodNs = 200'000'000;
// So little says nothing of any gap: the span goes on, and what moved the thread in it
// is asked for with its end. Two of the three files cost most of a look.
constexpr uint64_t kLittleNs = 100'000;

using Buffer = std::array<char, 4096>;

UniqueFd OpenTaskFile(pid_t pid, uint32_t tid, const char* name) {
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/task/%u/%s", pid, tid, name);
  return UniqueFd(open(path, O_RDONLY | O_CLOEXEC));
}

// "" of a thread that is gone.
absl::string_view ReadTaskFile(const UniqueFd& file, Buffer* buffer) {
  if (!file) return {};
  ssize_t got = pread(file.get(), buffer->data(), buffer->size(), 0);
  return {buffer->data(), static_cast<size_t>(std::max<ssize_t>(got, 0))};
}

}  // namespace

bool ParseSchedstat(absl::string_view text, Scheduling* scheduling) {
  std::vector<absl::string_view> fields =
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  // Whoever is there has run: "0 0 0" is a kernel that does not count (without
  // CONFIG_SCHEDSTATS, and delayacct off), and a count that stays says nothing then.
  return fields.size() == 3 && absl::SimpleAtoi(fields[0], &scheduling->ran_ns) &&
         absl::SimpleAtoi(fields[1], &scheduling->delay_ns) &&
         absl::SimpleAtoi(fields[2], &scheduling->slices) && scheduling->slices > 0;
}

bool ParseProcessor(absl::string_view stat, Scheduling* scheduling) {
  return absl::SimpleAtoi(StatField(stat, kStatProcessor), &scheduling->processor);
}

bool ParseSwitches(absl::string_view status, Scheduling* scheduling) {
  return absl::SimpleAtoi(StatusField(status, "nonvoluntary_ctxt_switches"),
                          &scheduling->involuntary);
}

std::optional<Scheduling> RunDelaySampler::ReadDelay(uint32_t tid) {
  auto [place, first] = files_.try_emplace(tid);
  Files& files = place->second;
  if (first) {
    files = {OpenTaskFile(pid_, tid, "schedstat"), OpenTaskFile(pid_, tid, "stat"),
             OpenTaskFile(pid_, tid, "status")};
  }
  Buffer buffer;
  Scheduling now;
  if (!ParseSchedstat(ReadTaskFile(files.schedstat, &buffer), &now))
    return std::nullopt;
  return now;
}

std::optional<Scheduling> RunDelaySampler::ReadAll(uint32_t tid, Scheduling now) const {
  // A thread that has got no processor since was neither pre-empted nor moved.
  auto known = threads_.find(tid);
  if (known != threads_.end() && known->second.last.slices == now.slices &&
      known->second.last.delay_ns == now.delay_ns) {
    return known->second.last;
  }
  const Files& files = files_.at(tid);
  Buffer buffer;
  bool whole = ParseProcessor(ReadTaskFile(files.stat, &buffer), &now) &&
               ParseSwitches(ReadTaskFile(files.status, &buffer), &now);
  return whole ? std::optional(now) : std::nullopt;
}

bool RunDelaySampler::IsDue(uint64_t now_ns, bool tracing) {
  const uint64_t period_ns = tracing ? kTracedPeriodNs : kPeriodNs;
  if (tracing == tracing_ && now_ns - asked_ns_ < period_ns) return false;
  tracing_ = tracing;
  asked_ns_ = now_ns;
  return true;
}

void RunDelaySampler::Forget(uint32_t tid) {
  threads_.erase(tid);
  files_.erase(tid);
}

std::optional<abi::Event> RunDelaySampler::Sample(uint32_t tid, uint64_t now_ns) {
  std::optional<Scheduling> now = ReadDelay(tid);
  auto known = threads_.find(tid);
  if (now && known != threads_.end() && now_ns - known->second.at_ns < kPeriodNs &&
      now->delay_ns - known->second.last.delay_ns < kLittleNs) {
    return std::nullopt;
  }
  if (now) now = ReadAll(tid, *now);
  if (!now) {
    Forget(tid);
    return std::nullopt;
  }
  return Advance(tid, *now, now_ns);
}

std::optional<abi::Event> RunDelaySampler::Advance(uint32_t tid, const Scheduling& now,
                                                   uint64_t now_ns) {
  auto [entry, fresh] = threads_.try_emplace(tid, Thread{now, now_ns});
  if (fresh) return std::nullopt;
  Thread before = entry->second;
  entry->second = {now, now_ns};
  // Another thread under the same number.
  if (now.delay_ns < before.last.delay_ns || now.slices < before.last.slices ||
      now.involuntary < before.last.involuntary || now_ns < before.at_ns) {
    return std::nullopt;
  }
  abi::Event event{};
  event.type = kRunDelayType;
  event.start_ns = before.at_ns;
  event.duration_ns = now_ns - before.at_ns;
  const RunDelayView delay{event};
  delay.set_delay_ns(now.delay_ns - before.last.delay_ns)
      .set_migrations(now.processor != before.last.processor ? 1 : 0)
      .set_preemptions(static_cast<uint32_t>(
          std::min<uint64_t>(now.involuntary - before.last.involuntary, UINT32_MAX)));
  const bool waited =
      delay.delay_ns() != 0 || delay.migrations() != 0 || delay.preemptions() != 0;
  return waited ? std::optional(event) : std::nullopt;
}

}  // namespace lull::relay
