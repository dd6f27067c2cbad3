// Where `lull arm` and `lull disarm` meet the relays: hands a command to the relay of
// its job, and waits until that has done it.
//
// The last command for a job is kept as long as its relay may need it: a relay that
// comes back without having taken it gets it again. A desk that knows nothing (the
// collector was started anew) learns from the relay's Hello which number the last
// command had.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/mutex.h"
#include "ingest.pb.h"

namespace lull::collector {

// A relay's stream, as the desk sees it. Called under the desk's lock: must not call
// back.
class CommandListener {
 public:
  virtual ~CommandListener() = default;
  virtual void SendCommand(const lull::v1::ArmCommand& command) = 0;
};

// Thread-safe.
class ArmDesk {
 public:
  // `connect`: how long a relay may take to come back, for instance after its collector
  // was restarted; `confirm`: how long it may take to follow a command.
  explicit ArmDesk(absl::Duration connect = absl::Seconds(4),
                   absl::Duration confirm = absl::Seconds(5))
      : connect_(connect), confirm_(confirm) {}

  // A relay's stream has said Hello. nullopt: it takes no commands. The desk keeps no
  // more than a weak reference.
  void Arrived(const std::string& job, const std::shared_ptr<CommandListener>& relay,
               const std::optional<lull::v1::ArmState>& state);
  void Reported(const std::string& job, const CommandListener* relay,
                const lull::v1::ArmState& state);
  void Left(const std::string& job, const CommandListener* relay);
  void JobEnded(const std::string& job);
  bool HasRelay(const std::string& job);

  // Numbers the command, sends it and waits for the relay's word. FAILED_PRECONDITION:
  // the relay is not connected, takes no commands, or refuses this one; the job ended
  // meanwhile. ABORTED: not confirmed in time. UNAVAILABLE after Stop().
  absl::StatusOr<lull::v1::ArmState> Order(const std::string& job,
                                           lull::v1::ArmCommand command);

  // Nobody waits any longer, and who is connected counts as that until the end: it is
  // the collector that cuts streams now, and runs go on.
  void Stop();

 private:
  struct Desk {
    std::weak_ptr<CommandListener> relay;
    const CommandListener* relay_id = nullptr;  // nullptr: not connected
    bool takes_commands = false;
    lull::v1::ArmState state;
    std::optional<lull::v1::ArmCommand> wanted;  // until it is taken
  };

  Desk* Find(const std::string& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Desk* WaitForRelay(MutexLock& lock, const std::string& job)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void Hand(Desk& desk);

  const absl::Duration connect_;
  const absl::Duration confirm_;
  Mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Desk> desks_ ABSL_GUARDED_BY(mutex_);  // by job
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lull::collector
