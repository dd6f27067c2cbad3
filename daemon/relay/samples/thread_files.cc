#include "daemon/relay/samples/thread_files.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "daemon/procfs/stat.h"

namespace lull::relay {
namespace {

// wchan does not tell that a thread is blocked: it fell asleep just now, or, after so
// many times in a row, it never tells.
constexpr int kMostInVain = 4;
// A thread waited for processors for more than one in so many parts of its time.
constexpr uint64_t kContended = 20;

// Between the end of its slice and the begin of ours, by two readings of one clock.
constexpr uint64_t kSwitchNs = 50'000;

using FileText = std::array<char, 4096>;

absl::string_view ReadAgain(const UniqueFd& file, FileText* buffer) {
  if (!file) return {};
  ssize_t got = pread(file.get(), buffer->data(), buffer->size(), 0);
  return got <= 0 ? absl::string_view()
                  : absl::string_view(buffer->data(), static_cast<size_t>(got));
}

UniqueFd OpenProc(const std::string& path) {
  return UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

}  // namespace

char ParseState(absl::string_view stat) {
  absl::string_view state = StatField(stat, kStatState);
  return state.empty() ? '\0' : state[0];
}

bool ParseAllSwitches(absl::string_view status, uint64_t* switches) {
  uint64_t voluntary = 0;
  uint64_t involuntary = 0;
  if (!absl::SimpleAtoi(StatusField(status, "voluntary_ctxt_switches"), &voluntary) ||
      !absl::SimpleAtoi(StatusField(status, "nonvoluntary_ctxt_switches"),
                        &involuntary)) {
    return false;
  }
  *switches = voluntary + involuntary;
  return true;
}

bool ParseLastRun(absl::string_view sched, uint64_t* last_run_ns) {
  constexpr absl::string_view kName = "se.exec_start";
  const size_t at = sched.find(kName);
  if (at == absl::string_view::npos) return false;
  absl::string_view line = sched.substr(at + kName.size());
  line = line.substr(0, line.find('\n'));
  const size_t colon = line.find(':'), point = line.find('.');
  // "<ms>.<six digits>"
  uint64_t ms = 0, ns = 0;
  if (colon == absl::string_view::npos || point == absl::string_view::npos ||
      point < colon ||
      !absl::SimpleAtoi(line.substr(colon + 1, point - colon - 1), &ms) ||
      !absl::SimpleAtoi(line.substr(point + 1), &ns) || ns >= 1'000'000) {
    return false;
  }
  *last_run_ns = ms * 1'000'000 + ns;
  return true;
}

ThreadFiles::ThreadFiles(pid_t pid, uint32_t tid)
    : path_(absl::StrCat("/proc/", pid, "/task/", tid, "/")),
      schedstat_(OpenProc(path_ + "schedstat")),
      wchan_(OpenProc(path_ + "wchan")),
      stat_(OpenProc(path_ + "stat")) {}

bool ThreadFiles::Slices(Scheduling* scheduling) {
  FileText buffer;
  return ParseSchedstat(ReadAgain(schedstat_, &buffer), scheduling);
}

bool ThreadFiles::Moves(Scheduling* scheduling, bool* waits) {
  if (!status_) status_ = OpenProc(path_ + "status");
  FileText stat, status;
  const absl::string_view of_stat = ReadAgain(stat_, &stat);
  const absl::string_view of_status = ReadAgain(status_, &status);
  uint64_t switches = 0;
  if (!ParseProcessor(of_stat, scheduling) || !ParseSwitches(of_status, scheduling) ||
      !ParseAllSwitches(of_status, &switches)) {
    return false;
  }
  *waits = ParseState(of_stat) == 'R' && scheduling->slices <= switches;
  return true;
}

bool ThreadFiles::Blocked(bool* blocked) {
  FileText buffer;
  if (in_vain_ < kMostInVain) {
    // "0" of a thread that is not blocked, or whose kernel stack may not be seen.
    absl::string_view where = ReadAgain(wchan_, &buffer);
    if (!where.empty() && where != "0") {
      in_vain_ = 0;
      *blocked = true;
      return true;
    }
  }
  absl::string_view stat = ReadAgain(stat_, &buffer);
  const char state = ParseState(stat);
  if (state == '\0' || state == 'Z' || state == 'X') return false;
  *blocked = state != 'R';
  if (*blocked && in_vain_ < kMostInVain) ++in_vain_;
  Scheduling where;
  processor_ = ParseProcessor(stat, &where) ? where.processor : -1;
  return true;
}

v1::HostSampleState ThreadFiles::RunningOrReady(uint64_t awake_ns) {
  FileText buffer;
  if (processor_ == sched_getcpu()) {
    thread_local const UniqueFd own = OpenProc("/proc/thread-self/sched");
    if (!sched_) sched_ = OpenProc(path_ + "sched");
    uint64_t its_ns = 0, our_ns = 0;
    const bool told = ParseLastRun(ReadAgain(sched_, &buffer), &its_ns) &&
                      ParseLastRun(ReadAgain(own, &buffer), &our_ns);
    return told && our_ns > its_ns && our_ns - its_ns > awake_ns + kSwitchNs
               ? v1::HOST_SAMPLE_STATE_READY
               : v1::HOST_SAMPLE_STATE_RUNNING;
  }
  if (!status_) status_ = OpenProc(path_ + "status");
  Scheduling before, after;
  uint64_t switches = 0;
  if (!ParseSchedstat(ReadAgain(schedstat_, &buffer), &before) ||
      !ParseAllSwitches(ReadAgain(status_, &buffer), &switches) ||
      !ParseSchedstat(ReadAgain(schedstat_, &buffer), &after) ||
      before.slices != after.slices) {
    return v1::HOST_SAMPLE_STATE_RUNNING;  // it began to run meanwhile
  }
  return before.slices > switches ? v1::HOST_SAMPLE_STATE_RUNNING
                                  : v1::HOST_SAMPLE_STATE_READY;
}

v1::HostSampleState ThreadFiles::RunningOrReady(const LastLook& last,
                                                const Scheduling& now, uint64_t at_ns,
                                                uint64_t awake_ns) {
  const bool same_slice = now.slices == last.scheduling.slices;
  const uint64_t ran_ns = now.ran_ns - std::min(now.ran_ns, last.scheduling.ran_ns);
  // It had no processor then and has got none since. (Had it got one between two of the
  // files, the next tick of its clock says so.)
  if (same_slice && ran_ns == 0 && last.state != v1::HOST_SAMPLE_STATE_RUNNING) {
    return v1::HOST_SAMPLE_STATE_READY;
  }
  // A delay counts from its end on; until then there is only that it did not run.
  const uint64_t since_ns = at_ns - last.at_ns;
  const uint64_t delayed_ns =
      now.delay_ns - std::min(now.delay_ns, last.scheduling.delay_ns);
  const bool contended =
      delayed_ns > since_ns / kContended || (same_slice && ran_ns < since_ns / 2);
  return contended ? RunningOrReady(awake_ns) : v1::HOST_SAMPLE_STATE_RUNNING;
}

std::string ThreadFiles::Name() const {
  FileText buffer;
  std::string name(ReadAgain(OpenProc(path_ + "comm"), &buffer));
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

}  // namespace lull::relay
