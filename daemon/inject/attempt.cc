#include "daemon/inject/attempt.h"

#include <sys/prctl.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/base/status.h"
#include "daemon/inject/call.h"
#include "daemon/inject/tracee.h"

namespace lull::inject {
namespace {

// A thread that does not stop within this sits in the kernel (vfork, a disk).
constexpr absl::Duration kLongestStop = absl::Milliseconds(200);

class OneAttempt {
 public:
  OneAttempt(const Request& request, const Arch& arch, const Landscape& landscape,
             const ElfImage& identity, ImageCache* images, pid_t tid)
      : request_(request),
        arch_(arch),
        landscape_(landscape),
        identity_(identity),
        images_(images),
        thread_(request.pid, tid, arch) {}

  Attempt Run();

 private:
  void Seize();
  void Look();
  Objection Judge(const Registers& registers, bool* waits);
  absl::Status CallNow();
  absl::StatusOr<uint64_t> FunctionInTarget() const;
  void End(Attempt::End end) { attempt_.end = end; }
  void EndWith(Objection objection);
  void EndWith(const absl::Status& status);

  const Request& request_;
  const Arch& arch_;
  const Landscape& landscape_;
  const ElfImage& identity_;
  ImageCache* const images_;
  Tracee thread_;
  absl::Time begin_;
  Attempt attempt_;
};

void OneAttempt::EndWith(Objection objection) {
  attempt_.end = Attempt::kUnsafe;
  attempt_.objection = objection;
}

void OneAttempt::EndWith(const absl::Status& status) {
  attempt_.end = Attempt::kFailed;
  attempt_.status = status;
}

Attempt OneAttempt::Run() {
  Seize();
  return attempt_;
}

void OneAttempt::Seize() {
  absl::Status seized = thread_.Seize();
  if (absl::IsNotFound(seized)) return End(Attempt::kGone);
  if (!seized.ok()) {
    char state = StateOf(request_.pid, thread_.tid());
    if (state == 0 || state == 'Z' || state == 'X') return End(Attempt::kGone);
    std::string tracer = StatusField(request_.pid, thread_.tid(), "TracerPid");
    if (!tracer.empty() && tracer != "0") {
      return EndWith(Objection{.text = "is traced by another process", .traced = true});
    }
    return EndWith(seized);
  }
  begin_ = absl::Now();
  if (!thread_.Interrupt().ok()) return End(Attempt::kGone);
  for (;;) {
    switch (thread_.Wait(begin_ + kLongestStop)) {
      case Stop::kAsked:
        Look();
        attempt_.stopped = absl::Now() - begin_;
        attempt_.outcome.stopped = attempt_.stopped;
        return;
      case Stop::kSignal:  // goes on to where it was sent, and the stop comes next
      case Stop::kSyscall:
        if (!thread_.Continue().ok()) return End(Attempt::kGone);
        continue;
      case Stop::kGroup:
        return EndWith(Objection{"is stopped by job control"});
      case Stop::kGone:
        return End(Attempt::kGone);
      case Stop::kDeadline:
        return EndWith(Objection{"does not stop"});
    }
  }
}

Objection OneAttempt::Judge(const Registers& registers, bool* waits) {
  Place place = arch_.Where(registers);
  *waits = place.interrupted;
  if (place.interrupted) {
    Objection objection =
        AgainstWait(landscape_, place.call, place.arguments, place.pc);
    if (objection) return objection;
  }
  Objection objection =
      AgainstStack(landscape_, arch_, request_.pid, place.sp, place.tp);
  if (objection) return objection;
  std::vector<uint64_t> stack = ReadStack(landscape_, request_.pid, place.sp);
  if (stack.empty()) return {"has a stack that is new"};
  objection = AgainstPlace(landscape_, arch_, place.pc, stack, place.interrupted);
  if (objection) return objection;
  return AgainstLoader(landscape_, request_.pid, thread_.tid());
}

void OneAttempt::Look() {
  Registers registers;
  if (!thread_.GetRegisters(&registers).ok()) return End(Attempt::kGone);
  Objection objection = Judge(registers, &attempt_.outcome.thread_was_blocked);
  if (!objection) {
    absl::Status called = CallNow();
    if (!called.ok()) return EndWith(called);
    return End(Attempt::kDone);
  }
  EndWith(objection);
  // A wait that this look has ended goes on.
  thread_.SetRegisters(arch_.GivenBack(registers, false)).IgnoreError();
  thread_.LetGo().IgnoreError();
}

absl::Status OneAttempt::CallNow() {
  Call call(arch_, &thread_, landscape_.trampoline);
  LULL_RETURN_IF_ERROR(call.Prepare(request_.library, request_.argument));
  uint64_t function = 0;
  if (const Object* object = FindObject(landscape_, identity_)) {
    auto at = FunctionAddress(*object, request_.function);
    if (!at) {
      return absl::FailedPreconditionError(
          absl::StrCat("another version of ", object->path,
                       " is in the process already, without ", request_.function));
    }
    function = *at;
  } else {
    LULL_RETURN_IF_ERROR(call.Load(landscape_.dlopen, landscape_.dlopen_flags));
    absl::StatusOr<uint64_t> loaded = FunctionInTarget();
    if (!loaded.ok()) {
      LULL_RETURN_IF_ERROR(call.GiveBack());
      std::string refusal = call.Refusal();
      return Annotate(loaded.status(),
                      absl::StrCat("the process could not load ", request_.library,
                                   refusal.empty() ? "" : " (", refusal,
                                   refusal.empty() ? "" : ")"));
    }
    attempt_.outcome.loaded = true;
    function = *loaded;
  }
  LULL_RETURN_IF_ERROR(call.Invoke(function, &attempt_.outcome.result));
  return call.GiveBack();
}

absl::StatusOr<uint64_t> OneAttempt::FunctionInTarget() const {
  std::optional<Symbol> symbol = identity_.Exported(request_.function);
  for (const Mapping& mapping : ReadMaps(request_.pid)) {
    if (!mapping.executable || mapping.inode == 0) continue;
    bool same =
        mapping.path == request_.library ||
        (mapping.inode == identity_.inode() && mapping.device == identity_.device());
    if (!same) continue;
    auto own = identity_.AddressOf(mapping.offset);
    if (own && symbol) return mapping.start - *own + symbol->address;
  }
  return absl::InternalError("it is not mapped after dlopen");
}

}  // namespace

Attempt MakeAttempt(const Request& request, const Arch& arch,
                    const Landscape& landscape,
                    const std::shared_ptr<const ElfImage>& identity, ImageCache* images,
                    pid_t tid) {
  Attempt attempt;
  // A thread of its own: when it ends the kernel frees whatever it still traces.
  std::thread tracer([&] {
    prctl(PR_SET_TIMERSLACK, 1);  // short pauses are short
    attempt = OneAttempt(request, arch, landscape, *identity, images, tid).Run();
  });
  tracer.join();
  return attempt;
}

}  // namespace lull::inject
