// Sends what is in the spool to the collector, and forgets what it acknowledged.
//
// One thread writes, a second one reads acknowledgements. After any break the
// stream is opened again with backoff, and everything that is not acknowledged is
// sent again. A refusal of the relay (wrong token, wrong version) is told at once and
// tried again at long intervals only: the spool stays. A batch that is refused
// (INVALID_ARGUMENT) kRefusalsOfABatch times is set aside (Spool::SetAside), and the
// others go on: one bad batch never holds them up.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/connection/collector_channel.h"
#include "daemon/relay/deliver/spool.h"
#include "daemon/relay/symbols/async_symbolizer.h"
#include "ingest.pb.h"

namespace lull::relay {

inline constexpr int kRefusalsOfABatch = 3;

struct UpstreamStatus {
  bool connected = false;  // the collector has acknowledged on the present stream,
                           // or nothing is left to acknowledge
  bool refused = false;    // trying again does not help against the last error
  absl::Status last_error;
  uint64_t batches_set_aside = 0;
  uint64_t events_rejected = 0;  // in runs that the collector did not take
};

// Each wait between two tries takes between half of these and all of it, by chance.
struct UpstreamTiming {
  absl::Duration first_backoff = absl::Milliseconds(50);
  absl::Duration longest_backoff = absl::Seconds(2);
  absl::Duration refused_backoff = absl::Seconds(15);
  // After Hurry(): no backoff is longer, for so long.
  absl::Duration hurried_backoff = absl::Milliseconds(100);
  absl::Duration hurry = absl::Seconds(3);
  // No acknowledgement for so long although batches are under way: start afresh.
  absl::Duration stall = absl::Seconds(30);
};

class Upstream {
 public:
  // `spool` must outlive this, and `symbols`, which names what batches have of native
  // stacks; null: they have none.
  Upstream(CollectorAddress collector, lull::v1::Hello hello, Spool* spool,
           AsyncSymbolizer* symbols, UpstreamTiming timing = {});
  ~Upstream();  // stops; what is not acknowledged stays in the spool

  UpstreamStatus status() const;
  // Tells the collector what the relay does now: at once, and at the beginning of each
  // stream. An upstream for which this was never called takes no commands.
  void TellArming(const lull::v1::ArmState& state);
  // The last command that the collector sent since the last call.
  std::optional<lull::v1::ArmCommand> TakeCommand();
  // The job is over and somebody waits, but not for long: tries at once, and does not
  // let a collector that is just being started wait for a backoff that grew while it
  // was away.
  void Hurry();
  // Cancels a stream that has stalled. Call it now and then, from any thread.
  void Watch();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lull::relay
