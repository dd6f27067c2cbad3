// The relay worker: one loop that reads all rings, resolves, spools; beside it the
// upstream's threads. Lives in a process of its own, see keeper.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "daemon/base/unique_fd.h"
#include "daemon/relay/control/arming.h"
#include "daemon/relay/deliver/spool.h"
#include "daemon/relay/deliver/upstream.h"
#include "daemon/relay/options.h"
#include "daemon/relay/process/channel.h"
#include "daemon/relay/process/handshake.h"
#include "daemon/relay/process/job_life.h"
#include "daemon/relay/process/keeper_link.h"
#include "daemon/relay/read/target_set.h"

namespace lull::relay {

class Worker {
 public:
  // Takes the descriptors over.
  Worker(RelayOptions options, UniqueFd channel, UniqueFd listener);
  ~Worker();

  // Until everything is delivered, the keeper says stop, or, without a keeper,
  // nothing is left to do. Returns the exit status of the process.
  int Run();

 private:
  absl::Status Start();
  int SayThatItCannotWork(const absl::Status& why);
  // The exit status, once there is nothing left to do.
  // *busy: the next pass should come soon; set already where that is known.
  std::optional<int> Pass(uint64_t now_ns, bool* busy);
  // What the worker waits for between two passes; -1: only for time to pass.
  int Wakes() const;

  bool HandleMessages();  // true: there were some
  void Handle(Message message);
  void HandleSegment(Message message);
  void AddTarget(lull::v1::ProcessInfo info, UniqueFd memfd, UniqueFd pidfd,
                 UniqueFd memory);
  void BecomeOrphan();
  void LeaveOrphaned();
  void PollOrphanListener();
  bool AcceptOrphaned(Newcomer newcomer);

  void Released(uint64_t key);
  // All stacks are new at the start of an attach. Their symbols are read before the
  // rings begin to fill: else rings that fill would wait for it.
  void WakeOnceReadable(uint64_t now_ns);
  // Takes commands, and has the targets do what is asked for.
  void FollowArming(uint64_t now_ns);
  bool SpoolStretch();
  void TellArming();
  void ShowThatItSleeps(uint64_t now_ns);
  void ReportStatus(uint64_t now_ns);

  bool JobIsOver(uint64_t now_ns);
  // True once the job's end is in the spool.
  bool FinishJob(uint64_t now_ns);
  bool Delivered() const;
  uint32_t UnrecordedAsOrphan() const;

  const RelayOptions options_;
  KeeperLink keeper_;
  std::unique_ptr<TargetSocket> socket_;
  std::unique_ptr<HandshakeListener> orphan_listener_;
  std::unique_ptr<Spool> spool_;
  std::unique_ptr<TargetSet> targets_;
  std::unique_ptr<Upstream> upstream_;
  uint64_t next_key_ = 1;  // for orphans

  Arming arming_;
  uint64_t wake_asked_ns_ = 0;  // by the keeper, and not done yet; 0: not asked
  uint64_t told_ns_ = 0;
  std::optional<std::string> told_arming_;  // to the upstream, serialised
  uint64_t asleep_since_ns_ = 0;
  uint64_t traced_ns_ = 0;     // when a device was seen to be traced last
  uint64_t next_sign_ns_ = 0;  // of life, while the job sleeps

  JobLife life_;
  bool abandoned_ = false;
  uint64_t unreachable_ns_ = 0;   // by the keeper's word
  uint32_t unrecorded_ = 0;       // processes, as the keeper counts them
  uint32_t unrecorded_here_ = 0;  // what the keeper gave us, and we could not take
};

}  // namespace lull::relay
