// The relay worker: one loop that reads all rings, resolves, spools; beside it the
// upstream's threads. Lives in a process of its own, see keeper.h.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "daemon/base/unique_fd.h"
#include "daemon/relay/control/arming.h"
#include "daemon/relay/deliver/spool.h"
#include "daemon/relay/deliver/upstream.h"
#include "daemon/relay/options.h"
#include "daemon/relay/process/channel.h"
#include "daemon/relay/process/end_watch.h"
#include "daemon/relay/process/handshake.h"
#include "daemon/relay/read/batch_builder.h"
#include "daemon/relay/read/target.h"

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
  // What the worker waits on between two passes; -1: on its clock alone.
  int Wakes() const;
  void HandleMessages();
  void Handle(Message message);
  void AddTarget(lull::v1::ProcessInfo info, UniqueFd memfd, UniqueFd pidfd,
                 UniqueFd memory);
  uint64_t WhoseWorker(uint32_t pid) const;
  void BecomeOrphan();
  void LeaveOrphaned();
  void PollOrphanListener();
  bool AcceptOrphaned(Newcomer newcomer);

  // One pass over all targets; true when it found enough to come back soon.
  bool ReadTargets(uint64_t now_ns);
  // Takes commands, and has the targets do what is asked for.
  void FollowArming(uint64_t now_ns);
  bool SpoolStretch();
  void TellArming();
  void ShowThatItSleeps(uint64_t now_ns);
  void ControlTargets(uint64_t now_ns);
  void EndTargets(uint64_t now_ns);
  void FlushIfDue(uint64_t now_ns);
  void Flush(uint64_t now_ns);
  void ReportStatus(uint64_t now_ns, bool now);
  void Tell(Message message);

  bool JobIsOver(uint64_t now_ns);
  // True once the job's end is in the spool.
  bool FinishJob(uint64_t now_ns);
  bool Delivered() const;
  uint32_t UnrecordedAsOrphan() const;
  std::string SnapshotPath(uint64_t key) const;

  RelayOptions options_;
  UniqueFd channel_;  // closed once the keeper is gone
  std::unique_ptr<TargetSocket> socket_;
  std::unique_ptr<HandshakeListener> orphan_listener_;
  uint64_t unreachable_ns_ = 0;  // by the keeper's word
  std::unique_ptr<Spool> spool_;
  std::unique_ptr<Upstream> upstream_;
  ModuleCache modules_;
  BatchBuilder batch_;
  uint64_t batch_began_ns_ = 0;
  Arming arming_;
  bool told_once_ = false;
  uint64_t told_ns_ = 0;
  std::string told_arming_;  // to the upstream, serialised
  uint64_t asleep_since_ns_ = 0;
  uint64_t next_sign_ns_ = 0;  // of life, while the job sleeps
  std::shared_ptr<GpuClock> gpu_clock_ = std::make_shared<GpuClock>();
  std::unique_ptr<HostSampler> sampler_;  // null: not wanted
  std::map<uint64_t, std::unique_ptr<Target>> targets_;
  EndWatch ends_;          // of their processes
  uint64_t next_key_ = 1;  // for orphans

  UniqueFd job_pidfd_;
  std::optional<int> exit_status_;  // set: the job's own process has ended
  uint64_t quiet_since_ns_ = 0;     // no target, and the job's own process gone
  uint64_t job_ended_ns_ = 0;       // when exit_status_ came
  uint64_t over_since_ns_ = 0;      // when only the delivery was left to do
  bool abandoned_ = false;
  uint32_t unrecorded_ = 0;        // processes, as the keeper counts them
  uint32_t unrecorded_here_ = 0;   // what the keeper gave us, and we could not take
  uint64_t counters_only_ns_ = 0;  // last try while the spool was full

  uint32_t corrupt_ = 0;
  uint64_t events_read_ = 0;  // of targets that are gone
  uint64_t events_lost_ = 0;
  WorkerStatus reported_;
  uint64_t reported_ns_ = 0;
  uint64_t governed_ns_ = 0;
  uint64_t symbols_ns_ = 0;
  uint64_t loaders_read_ns_ = 0;
};

}  // namespace lull::relay
