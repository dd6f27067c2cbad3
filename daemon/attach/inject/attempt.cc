#include "daemon/attach/inject/attempt.h"

#include <dlfcn.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/attach/inject/call.h"
#include "daemon/attach/inject/sleep.h"
#include "daemon/attach/inject/tracee.h"
#include "daemon/base/clock.h"
#include "daemon/base/status.h"

namespace lull::inject {
namespace {

// A thread that does not stop within this sits in the kernel (vfork, a disk). One that
// merely waits for a processor must not be left: its wait has been interrupted, and
// only a stop lets us have it begun again.
constexpr absl::Duration kLongestStop = absl::Seconds(3);

constexpr int kTries = 5;

constexpr size_t kCodeLooked = 16;  // bytes at the beginning of a function

class OneAttempt {
 public:
  OneAttempt(const Request& request, const Arch& arch, const Landscape& landscape,
             const ElfImage& identity, std::span<uint64_t> stack, pid_t tid,
             bool loaded)
      : request_(request),
        arch_(arch),
        landscape_(landscape),
        identity_(identity),
        stack_(stack),
        loaded_(loaded),
        thread_(request.pid, tid, arch) {}

  Attempt Run();

 private:
  bool Tracer() const;  // whether there is one, other than us
  void Seize();
  void Look();
  Objection Judge(const Registers& registers, bool* waits);
  absl::StatusOr<Attempt::End> CallNow(const Registers& registers);
  // The thread is stopped, and nothing of it has been changed.
  void LetGoOn(const Registers& registers);
  absl::StatusOr<uint64_t> FunctionIn(const Object& object) const;
  absl::StatusOr<uint64_t> FunctionInTarget() const;
  // What is mapped may be another file than the one that we know: a library that was
  // replaced or unloaded meanwhile.
  bool IsCode(uint64_t at, std::string_view code) const;
  void End(Attempt::End end) { attempt_.end = end; }
  void EndWith(Objection objection);
  void EndWith(const absl::Status& status);

  const Request& request_;
  const Arch& arch_;
  const Landscape& landscape_;
  const ElfImage& identity_;
  const std::span<uint64_t> stack_;
  const bool loaded_;
  bool called_ = false;
  Tracee thread_;
  std::optional<Sleep> sleep_;
  Attempt attempt_;
};

bool OneAttempt::Tracer() const {
  std::string tracer = StatusOf(request_.pid, thread_.tid(), "TracerPid");
  return !tracer.empty() && tracer != "0";
}

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
  for (int i = 0; i < kTries && !seized.ok(); ++i) {
    char state = StateOf(request_.pid, thread_.tid());
    bool gone = state == 0 || state == 'Z' || state == 'X';
    if (gone || absl::IsNotFound(seized)) return End(Attempt::kGone);
    if (Tracer()) {
      return EndWith(Objection{.text = "is traced by another process", .traced = true});
    }
    // Another attach may have held the thread a moment ago.
    absl::SleepFor(absl::Milliseconds(1));
    seized = thread_.Seize();
  }
  if (!seized.ok()) return EndWith(seized);
  sleep_.emplace(arch_, request_.pid, thread_.tid());
  const absl::Time deadline = SteadyNow() + kLongestStop;
  if (!thread_.Interrupt().ok()) return End(Attempt::kGone);
  for (;;) {
    switch (thread_.Wait(deadline)) {
      case Stop::kAsked: {
        absl::Time begin = thread_.last_seen_running();
        // A call is dozens of stops, one after the other. Passed back and forth on one
        // processor each took 4 to 10 us, and 50 us where another one had to wake up.
        // (Beside a thread that still runs we would wait for it.)
        GoBeside(request_.pid, thread_.tid());
        // What it waited until it could stop was no stop yet.
        const absl::Duration waited = RunDelay(request_.pid, thread_.tid());
        Look();
        attempt_.held = HeldSince(begin, waited, request_.pid, thread_.tid());
        attempt_.outcome.stopped = attempt_.held.time;
        return;
      }
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
  if (place.unfit != nullptr) return {place.unfit, true};
  if (place.interrupted) {
    Objection objection =
        AgainstWait(landscape_, place.call, place.arguments, place.pc);
    if (objection) return objection;
  }
  attempt_.tp = place.tp;
  Objection objection =
      AgainstStack(landscape_, arch_, request_.pid, thread_.tid(), place.sp, place.tp);
  if (objection) return objection;
  std::span<const uint64_t> words =
      ReadStack(landscape_, request_.pid, place.sp, stack_);
  if (words.empty()) return {"has a stack that is new"};
  objection = AgainstPlace(landscape_, arch_, place.pc,
                           {place.sp, words, place.newest_record}, place.interrupted);
  if (objection) return objection;
  if (place.link != 0) {
    objection =
        AgainstPlace(landscape_, arch_, place.pc, {0, {&place.link, 1}, 0}, true);
    if (objection) return objection;
  }
  if (thread_.InRestartableSequence(place.pc)) return {"is in a restartable sequence"};
  return AgainstLoader(landscape_, request_.pid, thread_.tid());
}

void OneAttempt::Look() {
  Registers registers;
  if (!thread_.GetRegisters(&registers).ok()) return End(Attempt::kGone);
  sleep_->Stopped(&registers);
  Objection objection = Judge(registers, &attempt_.outcome.thread_was_blocked);
  if (!objection) {
    absl::StatusOr<Attempt::End> called = CallNow(registers);
    if (!called_) LetGoOn(registers);
    if (!called.ok()) return EndWith(called.status());
    return End(*called);
  }
  EndWith(objection);
  LetGoOn(registers);
}

// A wait that this look has ended goes on.
void OneAttempt::LetGoOn(const Registers& registers) {
  Registers on = arch_.WithTimePassed(registers, sleep_->Passed());
  thread_.SetRegisters(arch_.GivenBack(on, false)).IgnoreError();
  thread_.LetGo().IgnoreError();
}

absl::StatusOr<Attempt::End> OneAttempt::CallNow(const Registers& registers) {
  uint64_t function = 0;
  const Object* object = FindObject(landscape_, identity_);
  if (object != nullptr) {
    LULL_ASSIGN_OR_RETURN(function, FunctionIn(*object));
  }
  Call call(arch_, &thread_, landscape_.trampoline, landscape_.errno_offset,
            sleep_->Passed());
  LULL_RETURN_IF_ERROR(call.Prepare(registers, request_.library, request_.argument));
  called_ = true;
  if (object == nullptr) {
    const uint64_t flags =
        landscape_.dlopen_flags | (request_.load ? 0 : uint64_t{RTLD_NOLOAD});
    LULL_RETURN_IF_ERROR(call.Load(landscape_.dlopen, flags));
    absl::StatusOr<uint64_t> loaded = FunctionInTarget();
    if (!loaded.ok()) {
      LULL_RETURN_IF_ERROR(call.GiveBack());
      if (absl::IsFailedPrecondition(loaded.status())) return loaded.status();
      if (!request_.load) {
        return absl::FailedPreconditionError(
            absl::StrCat(request_.library, " is not in the process any more"));
      }
      std::string refusal = call.Refusal();
      return Annotate(loaded.status(),
                      absl::StrCat("the process could not load ", request_.library,
                                   refusal.empty() ? "" : " (", refusal,
                                   refusal.empty() ? "" : ")"));
    }
    attempt_.outcome.loaded = request_.load;
    if (!loaded_ && request_.load) {
      LULL_RETURN_IF_ERROR(call.GiveBack());
      return Attempt::kLoaded;
    }
    function = *loaded;
  }
  LULL_RETURN_IF_ERROR(call.Invoke(function, &attempt_.outcome.result));
  LULL_RETURN_IF_ERROR(call.GiveBack());
  return Attempt::kDone;
}

bool OneAttempt::IsCode(uint64_t at, std::string_view code) const {
  code = code.substr(0, kCodeLooked);
  std::string there(code.size(), '\0');
  return !code.empty() && ReadMemory(request_.pid, at, there.data(), there.size()) &&
         there == code;
}

absl::StatusOr<uint64_t> OneAttempt::FunctionIn(const Object& object) const {
  auto at = FunctionAddress(object, request_.function);
  if (!at) {
    return absl::FailedPreconditionError(
        absl::StrCat("another version of ", object.path,
                     " is in the process already, without ", request_.function));
  }
  if (!IsCode(*at, object.image->BytesAt(*at - object.bias))) {
    return absl::FailedPreconditionError(absl::StrCat(
        object.path, " in the process is not what its file holds; try again"));
  }
  return *at;
}

absl::StatusOr<uint64_t> OneAttempt::FunctionInTarget() const {
  std::optional<Symbol> symbol = identity_.Exported(request_.function);
  if (!symbol) return absl::InternalError("it has no such function");
  // dlopen takes a library of the same path for the same one.
  const auto checked = [&](uint64_t at) -> absl::StatusOr<uint64_t> {
    if (IsCode(at, identity_.BytesAt(symbol->address))) return at;
    return absl::FailedPreconditionError(absl::StrCat(
        "the process holds another ", request_.library,
        " than there is now, from an earlier attach; restart the process"));
  };
  uint64_t bias = BiasOfNewest(request_.pid, landscape_, identity_, request_.library);
  if (bias != 0) return checked(bias + symbol->address);
  for (const Mapping& mapping : ReadMaps(request_.pid)) {
    if (!mapping.executable || mapping.inode == 0) continue;
    bool same =
        mapping.path == request_.library ||
        mapping.path == absl::StrCat(request_.library, " (deleted)") ||
        (mapping.inode == identity_.inode() && mapping.device == identity_.device());
    if (!same) continue;
    auto own = identity_.AddressOf(mapping.offset);
    if (own) return checked(mapping.start - *own + symbol->address);
  }
  return absl::InternalError("it is not mapped after dlopen");
}

}  // namespace

Attempt MakeAttempt(const Request& request, const Arch& arch,
                    const Landscape& landscape, const ElfImage& identity,
                    std::span<uint64_t> stack, pid_t tid, bool loaded) {
  Attempt attempt;
  // A thread of its own: when it ends the kernel frees whatever it still traces.
  std::thread tracer([&] {
    BeQuick();
    attempt = OneAttempt(request, arch, landscape, identity, stack, tid, loaded).Run();
  });
  tracer.join();
  return attempt;
}

}  // namespace lull::inject
