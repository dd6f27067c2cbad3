#include "cli/job/attachment.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/base/status.h"
#include "daemon/inject/inject.h"
#include "preload/abi/attach.h"
#include "preload/abi/version.h"

namespace lull {
namespace {

using abi::AttachResult;

constexpr absl::Duration kServePeriod = absl::Milliseconds(1);
constexpr absl::Duration kFindSafeMoment = absl::Seconds(10);
// Between two calls of one attachment, so that the thread gets on with its own.
constexpr absl::Duration kBetweenCalls = absl::Milliseconds(3);
constexpr absl::Duration kTracingPause = absl::Milliseconds(50);

template <typename T>
std::string BytesOf(const T& request) {
  return std::string(reinterpret_cast<const char*>(&request), sizeof request);
}

class Caller {
 public:
  Caller(pid_t pid, const attach::Foothold& foothold, const Serve& serve)
      : serve_(serve) {
    request_.pid = pid;
    request_.library = foothold.library_as_target;
    request_.identity = foothold.library_ours;
    request_.patience = kFindSafeMoment;
  }

  absl::StatusOr<AttachResult> Call(const char* function, std::string argument,
                                    const std::atomic<bool>& cancel) {
    request_.function = function;
    request_.argument = std::move(argument);
    auto call = std::async(std::launch::async, [this, &cancel] {
      return inject::CallInTarget(request_, cancel);
    });
    while (call.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      serve_(kServePeriod);
    }
    LULL_ASSIGN_OR_RETURN(inject::Outcome outcome, call.get());
    ++interruption_.calls;
    interruption_.total += outcome.stopped;
    interruption_.longest =
        std::max({interruption_.longest, outcome.stopped, outcome.longest_other});
    return static_cast<AttachResult>(outcome.result);
  }

  void Pause(absl::Duration time) {
    for (absl::Time until = absl::Now() + time; absl::Now() < until;) {
      serve_(std::min(time, kServePeriod));
    }
  }

  Interruption& interruption() { return interruption_; }

 private:
  const Serve& serve_;
  inject::Request request_;
  Interruption interruption_;
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

}  // namespace

absl::StatusOr<Interruption> AttachTo(pid_t pid, const attach::Foothold& foothold,
                                      const std::string& step_range,
                                      const std::atomic<bool>& cancel,
                                      const Serve& serve) {
  abi::AttachRequest request = {};
  request.magic = abi::kSegmentMagic;
  request.version = abi::kVersion;
  if (foothold.socket_as_target.size() >= sizeof request.socket ||
      step_range.size() >= sizeof request.step_range) {
    return absl::InvalidArgumentError("the path of the relay's socket is too long");
  }
  memcpy(request.socket, foothold.socket_as_target.data(),
         foothold.socket_as_target.size());
  memcpy(request.step_range, step_range.data(), step_range.size());
  Caller caller(pid, foothold, serve);
  for (;;) {
    LULL_ASSIGN_OR_RETURN(AttachResult result,
                          caller.Call(abi::kAttachFunction, BytesOf(request), cancel));
    if (result == AttachResult::kDone) return caller.interruption();
    if (result != AttachResult::kMore) return Refusal(pid, result);
    caller.Pause(kBetweenCalls);
  }
}

absl::StatusOr<Interruption> DetachFrom(pid_t pid, const attach::Foothold& foothold,
                                        absl::Duration patience, const Serve& serve) {
  abi::DetachRequest request = {abi::kSegmentMagic, abi::kVersion, 0};
  const std::atomic<bool> never{false};
  const absl::Time deadline = absl::Now() + patience;
  Caller caller(pid, foothold, serve);
  for (;;) {
    LULL_ASSIGN_OR_RETURN(AttachResult result,
                          caller.Call(abi::kDetachFunction, BytesOf(request), never));
    switch (result) {
      case AttachResult::kPythonPending:
        caller.interruption().python_pending = true;
        return caller.interruption();
      case AttachResult::kDone:
        return caller.interruption();
      case AttachResult::kTracing:
        if (absl::Now() >= deadline) request.force = 1;
        caller.Pause(kTracingPause);
        break;
      case AttachResult::kMore:
        caller.Pause(kBetweenCalls);
        break;
      default:
        return Refusal(pid, result);
    }
  }
}

}  // namespace lull
