#include "daemon/attach/inject/inject.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/attach/inject/attempt.h"
#include "daemon/attach/inject/landscape.h"
#include "daemon/attach/inject/proc.h"
#include "daemon/attach/inject/safety.h"
#include "daemon/base/clock.h"
#include "daemon/base/status.h"
#include "daemon/procfs/procfs.h"

namespace lull::inject {
namespace {

constexpr absl::Duration kBackOff = absl::Milliseconds(1);
constexpr absl::Duration kLookAgain = absl::Milliseconds(300);
// What speaks against every thread for good is looked at this often, for each.
constexpr int kTimesForGood = 3;
constexpr int kGoodbyes = 20;
// Another attach holds a thread for milliseconds, a debugger for good.
constexpr absl::Duration kOtherTracer = absl::Seconds(2);

bool IsStopped(char state) { return state == 'T'; }

// What speaks against the process as a whole.
absl::Status AgainstProcess(pid_t pid) {
  char state = StateOf(pid, pid);
  if (state == 0 || (state == 'Z' && Procfs().Threads(pid).size() <= 1)) {
    return absl::NotFoundError(absl::StrCat("there is no process ", pid));
  }
  if (IsStopped(state)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "process ", pid, " is stopped by job control; continue it (kill -CONT ", pid,
        ") and try again"));
  }
  if (StatusOf(pid, pid, "x86_Thread_features").find("shstk") != std::string::npos) {
    return absl::FailedPreconditionError(
        "the process runs with a shadow stack, which forbids calls from outside");
  }
  if (StatusOf(pid, pid, "Seccomp") == "1") {
    return absl::FailedPreconditionError(
        "the process is under strict seccomp and may not load anything");
  }
  return absl::OkStatus();
}

// The main thread may have ended before the others. Then it has no memory any more;
// /proc and the system calls take another thread's number as well.
pid_t LivingThread(pid_t pid) {
  if (StateOf(pid, pid) != 'Z') return pid;
  for (pid_t tid : Procfs().Threads(pid)) {
    if (StateOf(pid, tid) != 'Z') return tid;
  }
  return pid;
}

bool IsGone(pid_t pid) {
  return absl::IsNotFound(AgainstProcess(pid)) || ReadMaps(LivingThread(pid)).empty();
}

class Search {
 public:
  Search(const Request& request, const Arch& arch,
         std::shared_ptr<const ElfImage> identity, ImageCache* images,
         Landscape* landscape, Stops* stops, const std::atomic<bool>& cancel)
      : request_(request),
        given_pid_(request.pid),
        arch_(arch),
        identity_(std::move(identity)),
        cancel_(cancel),
        deadline_(SteadyNow() + request.patience),
        images_(*images),
        landscape_(*landscape),
        stops_(*stops) {
    images_.Add(identity_);
  }

  absl::StatusOr<Outcome> Run();

 private:
  struct Candidate {
    pid_t tid;
    bool blocked;
  };

  std::vector<Candidate> Candidates();
  // True when the search is over: `result_` says how.
  bool Try(const Candidate& candidate);
  void Object(pid_t tid, Objection objection) {
    objections_[tid] = objection;
    int& times = times_for_good_[tid];
    times = objection.for_good ? times + 1 : 0;
  }
  bool AllForGood(const std::vector<pid_t>& threads) const;
  bool AllTraced(const std::vector<pid_t>& threads);
  absl::Status TooLate() const;
  bool IsCancelled() const { return cancel_.load() && !loaded_; }

  Request request_;  // its pid: of a thread that lives
  const pid_t given_pid_;
  const Arch& arch_;
  const std::shared_ptr<const ElfImage> identity_;
  const std::atomic<bool>& cancel_;
  absl::Time deadline_;
  ImageCache& images_;
  Landscape& landscape_;
  Stops& stops_;
  std::vector<uint64_t> stack_ = std::vector<uint64_t>(kStackLooked / sizeof(uint64_t));
  std::map<pid_t, Objection> objections_;  // the latest for each thread
  // In a row: a thread that has just begun, or is about to end, is believed later.
  std::map<pid_t, int> times_for_good_;
  // Of threads that were looked at, as /proc does not tell them. A thread that sleeps
  // on another stack than its own is stopped once to see that, and then left alone.
  std::map<pid_t, uint64_t> thread_pointers_;
  // Those whose stack must be seen stopped to be judged; they sleep, so not too often.
  std::map<pid_t, absl::Time> looked_at_;
  absl::Time not_traced_at_ = SteadyNow();  // when last not all threads were
  bool loaded_ = false;  // by us, and the function is still to be called
  absl::Duration loading_;
  absl::Duration longest_other_;
  int looks_ = 0;
  absl::StatusOr<Outcome> result_ = absl::UnknownError("");
};

std::vector<Search::Candidate> Search::Candidates() {
  std::vector<Candidate> blocked;
  std::vector<Candidate> running;
  std::vector<Candidate> doubtful;
  for (pid_t tid : Procfs().Threads(request_.pid)) {
    std::optional<Sleeping> at = SleepingIn(request_.pid, tid);
    if (!at) {
      if (StateOf(request_.pid, tid) == 'R') running.push_back({tid, false});
      continue;
    }
    Objection objection = AgainstWait(landscape_, at->call, at->arguments, at->pc);
    if (!objection) {
      objection = AgainstStack(landscape_, arch_, request_.pid, tid, at->sp,
                               thread_pointers_[tid]);
    }
    bool doubt = false;
    if (!objection) {
      Words stack = {at->sp, ReadStack(landscape_, request_.pid, at->sp, stack_)};
      objection = AgainstPlace(landscape_, arch_, at->pc, stack, true);
      stack.newest_record = Words::kToBeSeen;
      doubt = objection && !AgainstPlace(landscape_, arch_, at->pc, stack, true);
    }
    if (!objection) blocked.push_back({tid, true});
    if (objection) Object(tid, objection);
    if (doubt && SteadyNow() - looked_at_[tid] > kLookAgain) {
      doubtful.push_back({tid, true});
    }
  }
  if (!blocked.empty()) return blocked;
  for (const Candidate& candidate : doubtful) {
    looked_at_[candidate.tid] = SteadyNow();
    running.push_back(candidate);
  }
  return running;
}

bool Search::Try(const Candidate& candidate) {
  Attempt attempt = MakeAttempt(request_, arch_, landscape_, *identity_, stack_,
                                candidate.tid, loaded_);
  if (attempt.tp != 0) thread_pointers_[candidate.tid] = attempt.tp;
  stops_.Add(attempt.held, attempt.outcome.thread_was_blocked);
  switch (attempt.end) {
    case Attempt::kDone:
      result_ = attempt.outcome;
      result_->loaded |= loaded_;
      result_->tid = candidate.tid;
      result_->looks = looks_;
      result_->loading = loading_;
      result_->longest_other = longest_other_;
      return true;
    case Attempt::kFailed:
      result_ = attempt.status;
      return true;
    case Attempt::kUnsafe:
      Object(candidate.tid, attempt.objection);
      longest_other_ = std::max(longest_other_, attempt.held.time);
      ++looks_;
      return false;
    case Attempt::kLoaded:
      loaded_ = true;
      loading_ = attempt.held.time;
      deadline_ += loading_;
      return false;
    case Attempt::kGone:
      return false;
  }
  return false;
}

bool Search::AllForGood(const std::vector<pid_t>& threads) const {
  return std::all_of(threads.begin(), threads.end(), [&](pid_t tid) {
    auto at = times_for_good_.find(tid);
    return (at != times_for_good_.end() && at->second >= kTimesForGood) ||
           StateOf(request_.pid, tid) == 'Z';
  });
}

bool Search::AllTraced(const std::vector<pid_t>& threads) {
  for (pid_t tid : threads) {
    auto at = objections_.find(tid);
    if (at == objections_.end() || !at->second.traced) not_traced_at_ = SteadyNow();
  }
  return SteadyNow() - not_traced_at_ > kOtherTracer;
}

absl::Status Search::TooLate() const {
  std::map<std::string, int> counts;
  for (pid_t tid : Procfs().Threads(request_.pid)) {
    auto at = objections_.find(tid);
    if (at != objections_.end()) ++counts[at->second.text];
  }
  std::string list;
  for (const auto& [text, count] : counts) {
    absl::StrAppend(&list, list.empty() ? "" : ", ", text, " (", count,
                    count == 1 ? " thread)" : " threads)");
  }
  return absl::DeadlineExceededError(absl::StrCat(
      "no thread of process ", request_.pid, " was at a safe place within ",
      absl::FormatDuration(request_.patience), ": ",
      list.empty() ? "none could be looked at" : list,
      "; try again, or with more patience"));
}

absl::StatusOr<Outcome> Search::Run() {
  for (int round = 1;; ++round) {
    LULL_RETURN_IF_ERROR(AgainstProcess(given_pid_));
    request_.pid = LivingThread(given_pid_);
    LULL_ASSIGN_OR_RETURN(landscape_, Refresh(request_.pid, arch_, &images_,
                                              std::exchange(landscape_, Landscape{})));
    if (!request_.load && !MayHold(landscape_, *identity_, request_.library)) {
      Outcome absent;
      absent.absent = true;
      return absent;
    }
    const bool loaded = loaded_;
    for (const Candidate& candidate : Candidates()) {
      if (IsCancelled()) return absl::CancelledError("cancelled before the call");
      if (Try(candidate)) return result_;
      if (loaded_ != loaded || SteadyNow() >= deadline_) break;
    }
    if (loaded_ != loaded) continue;  // the landscape has the library now
    std::vector<pid_t> threads = Procfs().Threads(request_.pid);
    if (threads.empty()) continue;  // gone: AgainstProcess() says so
    if (round >= kTimesForGood && AllForGood(threads)) {
      const auto why =
          std::find_if(objections_.begin(), objections_.end(),
                       [](const auto& objection) { return objection.second.for_good; });
      return absl::FailedPreconditionError(
          absl::StrCat("no thread of process ", request_.pid, " can do it: each ",
                       why == objections_.end() ? "has ended" : why->second.text));
    }
    if (AllTraced(threads)) {
      return absl::FailedPreconditionError(
          absl::StrCat("process ", request_.pid, " is traced by process ",
                       StatusOf(request_.pid, threads.front(), "TracerPid"),
                       " (a debugger, strace?); end that first"));
    }
    if (IsCancelled()) return absl::CancelledError("cancelled before the call");
    if (SteadyNow() >= deadline_) return TooLate();
    absl::SleepFor(kBackOff);
  }
}

}  // namespace

struct Injector::Known {
  ImageCache images;
  Landscape landscape;
};

Injector::Injector() : known_(std::make_unique<Known>()) {}
Injector::~Injector() = default;

absl::StatusOr<Outcome> Injector::Call(const Request& request,
                                       const std::atomic<bool>& cancel) {
  if (request.argument.size() > kMaxArgument) {
    return absl::InvalidArgumentError("the argument is longer than 4 KiB");
  }
  std::shared_ptr<const ElfImage> identity = ElfImage::Open(request.identity);
  if (identity == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read the library ", request.identity));
  }
  auto function = identity->Exported(request.function);
  if (!function || !function->is_function) {
    return absl::InvalidArgumentError(
        absl::StrCat(request.identity, " exports no function ", request.function));
  }
  absl::StatusOr<Outcome> outcome =
      Search(request, ThisArch(), std::move(identity), &known_->images,
             &known_->landscape, &stops_, cancel)
          .Run();
  // Whatever went wrong: with the process gone, that is the reason. A process that is
  // killed goes thread by thread.
  for (int i = 0;
       i < kGoodbyes && !outcome.ok() && !absl::IsCancelled(outcome.status()); ++i) {
    if (IsGone(request.pid)) {
      return absl::NotFoundError(
          absl::StrCat("there is no process ", request.pid, " (any more)"));
    }
    absl::SleepFor(kBackOff);
  }
  return outcome;
}

}  // namespace lull::inject
