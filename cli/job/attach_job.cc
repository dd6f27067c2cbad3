#include "cli/job/attach_job.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/base/exit_code.h"
#include "cli/base/output.h"
#include "cli/client/install.h"
#include "cli/job/attachment.h"
#include "cli/job/job_info.h"
#include "daemon/attach/examine/examination.h"
#include "daemon/attach/examine/foothold.h"
#include "daemon/attach/examine/process_tree.h"
#include "daemon/attach/inject/filters.h"
#include "daemon/base/clock.h"
#include "daemon/base/descriptor_limit.h"
#include "daemon/base/status.h"
#include "daemon/base/unique_fd.h"

namespace lull {
namespace {

std::string InMicroseconds(absl::Duration time) {
  return absl::FormatDuration(absl::Trunc(time, absl::Microseconds(1)));
}

// For a hook to switch GPU tracing off. A process that makes no CUDA call for so long
// has nothing traced either.
constexpr absl::Duration kTracingPatience = absl::Seconds(10);
constexpr absl::Duration kTick = absl::Milliseconds(200);
constexpr absl::Duration kShortly = absl::Milliseconds(5);
constexpr absl::Duration kWakeUp = absl::Seconds(5);
constexpr int kEnding[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

void Say(const std::string& text) {
  fprintf(stderr, "lull attach: %s\n", text.c_str());
}

class Attach {
 public:
  explicit Attach(const AttachOptions& options) : options_(options) {}

  int Execute() {
    absl::Status ready = Prepare();
    if (!ready.ok()) return NotAttached(ready);
    for (const attach::Process& process : chosen_) AttachOne(process);
    if (watched_.empty()) {
      session_->keeper().Abandon();
      return kExitNotAttached;
    }
    Record();
    Announce();
    Watch();
    bool clean = DetachAll();
    GiveSignalsBack();
    session_->Finish(kUnknown);
    return clean ? 0 : kExitFailed;
  }

 private:
  static constexpr int kUnknown = -1;  // the job's exit status is not ours to know

  struct Watched {
    pid_t pid;
    UniqueFd pidfd;
  };

  absl::Status Prepare() {
    LULL_ASSIGN_OR_RETURN(std::string library, FindPreloadLibrary());
    LULL_RETURN_IF_ERROR(Choose());
    LULL_RETURN_IF_ERROR(TakeSignals());
    LULL_ASSIGN_OR_RETURN(session_, Session::Plan("attach", options_.session,
                                                  CommandOf(options_.pids[0])));
    LULL_ASSIGN_OR_RETURN(
        attach::Foothold foothold,
        attach::MakeFoothold(chosen_.front(), {library, session_->runtime()}));
    foothold_.emplace(std::move(foothold));
    session_->relay().attached = true;
    session_->relay().dormant = true;  // until all is in place
    session_->relay().target_user = chosen_.front().users.effective;
    UniqueFd listener;
    if (foothold_->is_copy()) {
      session_->relay().socket_path = foothold_->socket_ours;
      LULL_ASSIGN_OR_RETURN(listener, foothold_->Listen());
    } else {
      session_->relay().socket_path = foothold_->socket_as_target;
    }
    RaiseDescriptorLimit();
    LULL_RETURN_IF_ERROR(session_->ReachCollector());
    LULL_RETURN_IF_ERROR(session_->StartRelay(std::move(listener)));
    // Whose end is the job's end if lull dies before it.
    session_->keeper().JobStarted(options_.pids[0]);
    return absl::OkStatus();
  }

  // Whether one foothold does for both.
  static bool ShareFiles(const attach::Process& a, const attach::Process& b) {
    if (attach::SeesOurFiles(a) && attach::SeesOurFiles(b)) return true;
    Procfs procfs;
    return a.users.effective == b.users.effective &&
           procfs.Link(a.pid, "ns/mnt").text == procfs.Link(b.pid, "ns/mnt").text &&
           procfs.Link(a.pid, "root").text == procfs.Link(b.pid, "root").text;
  }

  // What only a risk stands against is let pass when the user says so.
  attach::Examination ExamineClosely(pid_t pid) {
    attach::ExamineOptions how{.probe = true};
    if (inject::MayReadFilters()) {
      how.read_filters = [this](pid_t process, pid_t tid) {
        return inject::ReadFilters(process, tid, &stops_);
      };
    }
    attach::Examination found = attach::Examine(pid, how);
    if (options_.force) {
      std::erase_if(found.obstacles, [](const attach::Obstacle& obstacle) {
        return obstacle.may_be_forced;
      });
    }
    return found;
  }

  // The processes to attach to, with their obstacles told.
  absl::Status Choose() {
    std::set<pid_t> seen;
    bool any = false;
    for (pid_t named : options_.pids) {
      std::vector<pid_t> workers = attach::FindWorkers(named);
      if (workers.empty()) workers.push_back(named);
      for (pid_t pid : workers) {
        if (!seen.insert(pid).second) continue;
        attach::Examination found = ExamineClosely(pid);
        for (const attach::Obstacle& obstacle : found.obstacles) {
          PrintError("attach", absl::StrCat(obstacle.what, " ", obstacle.advice));
          any = true;
        }
        if (!found.CanBeAttached()) continue;
        for (const attach::Obstacle& note : found.notes) {
          if (note.id == "attached_before") continue;  // nothing to think about
          Say(absl::StrCat(note.what, " ", note.advice));
        }
        if (!chosen_.empty() && !ShareFiles(chosen_.front(), found.process)) {
          return absl::FailedPreconditionError(
              absl::StrCat("process ", pid, " lives among other files than process ",
                           chosen_.front().pid, "; attach to them separately"));
        }
        chosen_.push_back(std::move(found.process));
      }
    }
    if (!chosen_.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        any ? "no process was attached to"
            : "nothing there does GPU work or trains; `lull ps` lists what does");
  }

  absl::Status TakeSignals() {
    sigset_t set;
    sigemptyset(&set);
    for (int ending : kEnding) sigaddset(&set, ending);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    signals_.reset(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    return signals_ ? absl::OkStatus() : ErrnoStatus(errno, "cannot take signals");
  }

  // From here on all that happens is that we wait, and the relay goes on without us.
  void GiveSignalsBack() {
    signalfd_siginfo signal;
    while (read(signals_.get(), &signal, sizeof signal) > 0) {
    }
    sigset_t set;
    sigemptyset(&set);
    for (int ending : kEnding) sigaddset(&set, ending);
    sigprocmask(SIG_UNBLOCK, &set, nullptr);
  }

  static std::string CommandOf(pid_t pid) {
    attach::Process process = attach::ReadProcess(pid, Procfs());
    return process.arguments.empty() ? process.name : CommandText(process.arguments);
  }

  int NotAttached(const absl::Status& status) {
    PrintError("attach", status.message());
    return absl::IsInvalidArgument(status) ? kExitUsage : kExitNotAttached;
  }

  // Drives the relay, and sees whether somebody wants us to stop; waits for either.
  void Serve(absl::Duration time) {
    pollfd wait[] = {{signals_.get(), POLLIN, 0}, {session_->keeper().fd(), POLLIN, 0}};
    timespec limit = absl::ToTimespec(std::max(time, absl::ZeroDuration()));
    ppoll(wait, 2, &limit, nullptr);
    session_->keeper().Poll();
    signalfd_siginfo signal;
    while (read(signals_.get(), &signal, sizeof signal) > 0) stop_ = true;
  }
  lull::Serve Server() {
    return [this](absl::Duration time) { Serve(time); };
  }

  void AttachOne(const attach::Process& process) {
    if (stop_) return;
    UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
    const bool samples = !session_->relay().job.settings().no_host_samples();
    absl::Status done =
        AttachTo(process.pid, *foothold_, samples, stop_, Server(), &stops_);
    if (done.ok()) {
      watched_.push_back({process.pid, std::move(pidfd)});
      return;
    }
    if (!absl::IsCancelled(done)) PrintError("attach", done.message());
    // Half-way in: its slots may be ours already.
    if (!absl::IsNotFound(done)) {
      (void)DetachFrom(process.pid, *foothold_, absl::ZeroDuration(), Server(),
                       &stops_);
    }
  }

  // What is recorded begins when no call goes past us any more.
  void Record() {
    const absl::Time deadline = SteadyNow() + kWakeUp;
    session_->keeper().Wake();
    while (!stop_ && !session_->keeper().status().armed) {
      if (SteadyNow() > deadline) {
        PrintError("attach", "the relay does not begin to record; going on without");
        return;
      }
      Serve(kShortly);
    }
  }

  static std::string InWords(const inject::Held& held) {
    return absl::StrCat(
        InMicroseconds(held.time),
        held.waited > absl::ZeroDuration()
            ? absl::StrCat(", of which it waited ", InMicroseconds(held.waited),
                           " for a processor")
            : "");
  }
  std::string StopsInWords() const {
    const bool ran = stops_.running.time > absl::ZeroDuration();
    const bool waited = stops_.sleeping.time > absl::ZeroDuration();
    return absl::StrCat(
        "no thread that ran was stopped",
        ran ? absl::StrCat(" for longer than ", InWords(stops_.running)) : "",
        waited ? absl::StrCat("; one that was waiting anyway was held for up to ",
                              InWords(stops_.sleeping))
               : "");
  }

  void Announce() const {
    std::string pids = absl::StrJoin(
        watched_, ", ",
        [](std::string* out, const auto& w) { absl::StrAppend(out, w.pid); });
    std::string until = options_.time == absl::InfiniteDuration()
                            ? "until Ctrl-C"
                            : absl::StrCat("for ", absl::FormatDuration(options_.time),
                                           ", or until Ctrl-C");
    Say(absl::StrCat("watching ", watched_.size() == 1 ? "process " : "processes ",
                     pids, " ", until, "; ", StopsInWords()));
  }

  static bool HasEnded(const Watched& watched) {
    pollfd entry{watched.pidfd.get(), POLLIN, 0};
    return watched.pidfd && poll(&entry, 1, 0) == 1;
  }

  void Watch() {
    const absl::Time until = SteadyNow() + options_.time;
    while (!stop_ && SteadyNow() < until) {
      Serve(std::min(until - SteadyNow(), kTick));
      bool alive = false;
      for (const Watched& watched : watched_) alive = alive || !HasEnded(watched);
      if (!alive) return;
    }
  }

  // False: something is still in one of them.
  bool DetachAll() {
    bool clean = true;
    session_->keeper().Sleep();
    for (const Watched& watched : watched_) {
      if (HasEnded(watched)) continue;
      absl::Status done =
          DetachFrom(watched.pid, *foothold_, kTracingPatience, Server(), &stops_);
      if (done.ok()) {
        session_->keeper().Detached(watched.pid);
      } else if (!absl::IsNotFound(done)) {
        clean = false;
        PrintError("attach",
                   absl::StrCat("process ", watched.pid,
                                " could not be detached from: ", done.message()));
      }
    }
    return clean;
  }

  const AttachOptions& options_;
  std::vector<attach::Process> chosen_;
  std::unique_ptr<Session> session_;
  std::optional<attach::Foothold> foothold_;
  UniqueFd signals_;
  std::atomic<bool> stop_{false};
  std::vector<Watched> watched_;
  inject::Stops stops_;
};

}  // namespace

int AttachJob(const AttachOptions& options) { return Attach(options).Execute(); }

}  // namespace lull
