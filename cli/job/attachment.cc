#include "cli/job/attachment.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>

#include "absl/strings/str_cat.h"
#include "daemon/attach/inject/inject.h"
#include "daemon/base/clock.h"
#include "daemon/base/status.h"
#include "preload/abi/attach.h"
#include "preload/abi/version.h"

namespace lull {
namespace {

using abi::AttachResult;

constexpr absl::Duration kServePeriod = absl::Milliseconds(1);
constexpr absl::Duration kFindSafeMoment = absl::Seconds(10);
// Between two calls of one attachment, so that the thread gets on with its own.
constexpr absl::Duration kBetweenCalls = absl::Milliseconds(3);
// Each call gets further. A process in which they do not is left alone in the end.
constexpr absl::Duration kGetDone = absl::Seconds(60);
constexpr absl::Duration kTracingPause = absl::Milliseconds(50);

template <typename T>
std::string BytesOf(const T& request) {
  return std::string(reinterpret_cast<const char*>(&request), sizeof request);
}

class Caller {
 public:
  Caller(pid_t pid, const attach::Foothold& foothold, const Serve& serve,
         inject::Stops* stops)
      : serve_(serve), stops_(*stops) {
    request_.pid = pid;
    request_.library = foothold.library_as_target;
    request_.identity = foothold.library_ours;
    request_.patience = kFindSafeMoment;
  }

  // With `load` the shim is brought in where it is not yet; else that is kDone.
  absl::StatusOr<AttachResult> Call(const char* function, std::string argument,
                                    bool load, const std::atomic<bool>& cancel) {
    request_.load = load;
    request_.function = function;
    request_.argument = std::move(argument);
    auto call = std::async(std::launch::async, [this, &cancel] {
      return injector_.Call(request_, cancel);
    });
    while (call.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      serve_(kServePeriod);
    }
    absl::StatusOr<inject::Outcome> called = call.get();
    stops_.Add(injector_.stops());
    LULL_ASSIGN_OR_RETURN(inject::Outcome outcome, std::move(called));
    if (outcome.absent) return AttachResult::kDone;
    return static_cast<AttachResult>(outcome.result);
  }

  void Pause(absl::Duration time) {
    for (absl::Time until = SteadyNow() + time; SteadyNow() < until;) {
      serve_(std::min(time, kServePeriod));
    }
  }

 private:
  const Serve& serve_;
  inject::Stops& stops_;
  inject::Injector injector_;
  inject::Request request_;
};

absl::Status Refusal(pid_t pid, AttachResult result) {
  switch (result) {
    case AttachResult::kPreloaded:
      return absl::FailedPreconditionError(absl::StrCat(
          "process ", pid,
          " was started with lull already; see `lull jobs`, and `lull arm JOB`"));
    case AttachResult::kBadRequest:
      return absl::FailedPreconditionError(
          absl::StrCat("process ", pid,
                       " holds liblull.so of another version of lull, from an earlier "
                       "attach; use that version, or restart the process"));
    case AttachResult::kRefused:
      return absl::FailedPreconditionError(absl::StrCat(
          "liblull.so in process ", pid, " could not reach the relay of this attach"));
    default:
      return absl::InternalError(absl::StrCat(
          "liblull.so in process ", pid, " answered ", static_cast<int64_t>(result)));
  }
}

absl::Status NotDone(pid_t pid) {
  return absl::DeadlineExceededError(
      absl::StrCat("liblull.so in process ", pid, " was called for ",
                   absl::FormatDuration(kGetDone), " and is not done"));
}

}  // namespace

absl::Status AttachTo(pid_t pid, const attach::Foothold& foothold, bool samples,
                      const std::atomic<bool>& cancel, const Serve& serve,
                      inject::Stops* stops) {
  abi::AttachRequest request = {};
  request.magic = abi::kSegmentMagic;
  request.version = abi::kVersion;
  request.no_samples = samples ? 0 : 1;
  if (foothold.socket_as_target.size() >= sizeof request.socket) {
    return absl::InvalidArgumentError("the path of the relay's socket is too long");
  }
  memcpy(request.socket, foothold.socket_as_target.data(),
         foothold.socket_as_target.size());
  const absl::Time deadline = SteadyNow() + kGetDone;
  Caller caller(pid, foothold, serve, stops);
  while (SteadyNow() < deadline) {
    LULL_ASSIGN_OR_RETURN(
        AttachResult result,
        caller.Call(abi::kAttachFunction, BytesOf(request), /*load=*/true, cancel));
    if (result == AttachResult::kDone) return absl::OkStatus();
    if (result != AttachResult::kMore) return Refusal(pid, result);
    caller.Pause(kBetweenCalls);
  }
  return NotDone(pid);
}

absl::Status DetachFrom(pid_t pid, const attach::Foothold& foothold,
                        absl::Duration patience, const Serve& serve,
                        inject::Stops* stops) {
  abi::DetachRequest request = {abi::kSegmentMagic, abi::kVersion, 0};
  const std::atomic<bool> never{false};
  const absl::Time start = SteadyNow();
  Caller caller(pid, foothold, serve, stops);
  while (SteadyNow() < start + patience + kGetDone) {
    LULL_ASSIGN_OR_RETURN(
        AttachResult result,
        caller.Call(abi::kDetachFunction, BytesOf(request), /*load=*/false, never));
    switch (result) {
      case AttachResult::kDone:
      case AttachResult::kPythonPending:
        return absl::OkStatus();
      case AttachResult::kTracing:
        if (SteadyNow() >= start + patience) request.force = 1;
        caller.Pause(kTracingPause);
        break;
      case AttachResult::kMore:
        caller.Pause(kBetweenCalls);
        break;
      default:
        return Refusal(pid, result);
    }
  }
  return NotDone(pid);
}

}  // namespace lull
