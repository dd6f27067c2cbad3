// The keeper: the part of the relay that lives in `lull run` itself. It answers
// the handshakes of targets, keeps every segment's memfd, and watches over the
// relay worker, a process of its own (this executable again, under the verb
// kWorkerVerb), which does the reading, resolving, spooling and sending. When the
// worker dies, the keeper starts another one and hands it every segment again;
// when the keeper dies, the worker takes the socket over, goes on until all
// targets are gone, delivers and exits. So no event is lost with either.
//
// The keeper uses no thread, no signal handler and no gRPC, and never blocks
// outside of Start and WaitUntilDelivered: it is safe to fork next to it, and it
// can be driven from any loop. All calls come from one thread.
//
//   auto keeper = Keeper::Start(options);
//   pid_t child = spawn job with LULL_SOCKET=options.socket_path;
//   (*keeper)->JobStarted(child);
//   while (child runs) { poll({signalfd, (*keeper)->fd()}); (*keeper)->Poll(); }
//   (*keeper)->JobEnded(status);
//   absl::Status delivered = (*keeper)->WaitUntilDelivered(absl::Seconds(10));
//
// The caller must reap only its own child, by pid: the worker is a child too and
// is reaped here. main() must route kWorkerVerb to RelayWorkerMain
// (worker_main.h) before it does anything else.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/unique_fd.h"
#include "daemon/relay/options.h"

namespace lull::relay {

// The hidden verb of the CLI under which the worker runs: `lull relay-worker`.
inline constexpr char kWorkerVerb[] = "relay-worker";

// What the user may want to know about the relay.
struct RelayStatus {
  uint32_t targets = 0;       // handshakes accepted so far
  uint32_t live_targets = 0;  // of them, still running
  uint32_t refused = 0;       // handshakes refused (version, seals, user)
  uint32_t worker_restarts = 0;
  uint32_t corrupt_segments = 0;
  uint64_t events_read = 0;      // by the present worker
  uint64_t events_lost = 0;      // dropped by the relay: spool full or corrupt
  uint64_t batches_spooled = 0;  // sequence of the last batch of the job
  uint64_t batches_acknowledged = 0;
  bool armed = false;      // what happens is recorded
  bool connected = false;  // the collector's stream is open
  absl::Status upstream;   // the last error of the upstream, OK when none
};

class Keeper {
 public:
  // Makes the directories, listens, starts the worker. INVALID_ARGUMENT for
  // options that cannot work; ALREADY_EXISTS when another relay listens there.
  // `listener`: of options.socket_path, when that is made already.
  static absl::StatusOr<std::unique_ptr<Keeper>> Start(RelayOptions options,
                                                       UniqueFd listener = {});
  ~Keeper();  // as Abandon(), when the job has not been delivered
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  // Readable when Poll() has something to do. An epoll descriptor, close-on-exec.
  int fd() const;
  // Does what can be done without blocking. Also call it once a second or so.
  void Poll();

  // The job's own process, so that the worker can watch it if the keeper dies.
  void JobStarted(pid_t pid);
  // Begins to record, where options.dormant said not to yet. See status().armed.
  void Wake();
  // Stops recording in all processes, and tracing of the GPU.
  void Sleep();
  // The shim in this process has been detached: it writes nothing any more, as if the
  // process had ended.
  void Detached(pid_t pid);
  // The job's own process has ended; exit_status as the shell has it (128 + n for
  // a signal), or -1 when it is not known (`lull relay` was told to stop). The
  // relay finishes when no target is left, or after options.grace.
  void JobEnded(int exit_status);
  // Waits until everything that was committed is acknowledged by the collector
  // (call JobEnded first). OK: the spool is gone. DEADLINE_EXCEEDED or the
  // collector's own final refusal (UNAUTHENTICATED, ...): the message says what is
  // not delivered and where the spool lies; DeliverSpool() can deliver it later.
  // DEADLINE_EXCEEDED also when nothing has happened for `patience`: nothing read, sent
  // or acknowledged, and the worker has not computed either. A worker that had to be
  // started anew must get further than the one before it.
  absl::Status WaitUntilDelivered(absl::Duration timeout,
                                  absl::Duration patience = absl::InfiniteDuration());
  // Goes without the worker, which reads what is left, delivers it if it can, and ends.
  // For when WaitUntilDelivered() failed and nobody should wait longer.
  void Leave();
  // Stops now: the socket goes, the worker spools what it has read so far and
  // exits, the spool stays.
  void Abandon();

  RelayStatus status() const;
  pid_t worker_pid() const;  // for tests and `--verbose`; -1 between two workers

 private:
  class Impl;
  explicit Keeper(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lull::relay
