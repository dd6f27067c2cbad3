// What a relay must remember so that a successor can go on: how far each ring has
// been read, which processes have ended, what was dropped. It is the sum of all
// batches ever spooled; each spool file begins with it, so that older files can
// go.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "ingest.pb.h"

namespace lull::relay {

struct RingProgress {
  uint64_t end = 0;         // next position to read
  uint64_t lost_relay = 0;  // events dropped by the relay so far
  uint32_t tid = 0;         // thread of the last event
};

struct SpoolState {
  using RingKey = std::pair<uint64_t, uint32_t>;  // process key, ring

  uint64_t last_sequence = 0;
  std::map<RingKey, RingProgress> rings;
  // process key -> those of its counters that a later worker cannot find out: thinning,
  // modules_unread, corrupt, host_samples.
  std::map<uint64_t, lull::v1::ProcessCounters> found;
  std::map<uint64_t, uint64_t> ended;  // process key -> end_ns
  bool job_ended = false;
  std::optional<lull::v1::ArmedStretch> stretch;  // the last one
  uint64_t latest_ns = 0;  // of what any process reported; 0 = none did

  // Something above changed that no batch says: the next batch must begin a new file.
  // This is not encoded.
  bool needs_checkpoint = false;

  // A process that nobody will ask for again.
  void Forget(uint64_t process_key);

  // Adds what a batch says. Never fails: batches of ours are well formed, and a damaged
  // one was found by its checksum.
  void Apply(const lull::v1::Batch& batch);

  // As a Batch, so that it needs no format of its own: end and tid of a ring in
  // `rings` (no events but one tid), the rest in `counters` and `process_ends`;
  // the end of process 0, which does not exist, is latest_ns.
  std::string Encode() const;
  bool Decode(const std::string& bytes);
};

}  // namespace lull::relay
