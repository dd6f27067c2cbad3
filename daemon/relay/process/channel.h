// What keeper and worker say to each other: packets with descriptors over a
// SOCK_SEQPACKET pair. Both ends are the same executable, so there is no version.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/base/unique_fd.h"
#include "daemon/relay/options.h"
#include "daemon/relay/process/keeper.h"

namespace lull::relay {

// ProcessInfo.worker_of of a DataLoader worker on its way to the relay's worker, which
// knows whose it is.
inline constexpr uint64_t kSomebodys = UINT64_MAX;

enum class MessageKind : uint8_t {
  // keeper -> worker
  kOptions = 1,  // body: EncodeOptions; always the first
  kSegment =
      2,  // number: process key, body: ProcessInfo, fds: memfd [, pidfd [, memory]]
  // number: process key; its process has called exec. body: by when, in ns
  kImageEnded = 3,
  kJobStarted = 4,  // fds: pidfd of the job's own process
  kJobEnded = 5,    // number: exit status as int64, -1 = unknown; body: how many ns the
                    // socket could not be found, in decimal
  kAbandon = 6,
  kWake = 7,        // as `lull arm`
  kSleep = 8,       // as at the end of `lull arm --for`
  kUnrecorded = 9,  // number: processes that could not be recorded so far
  // number: for how many ns targets could not find the socket so far, fds: listening
  // socket, made anew; for a worker without a keeper
  kListener = 13,
  // worker -> keeper
  kReleased = 10,   // number: process key; all of it is in the spool
  kStatus = 11,     // body: EncodeStatus
  kDelivered = 12,  // everything is acknowledged, the job's end included
};

struct Message {
  MessageKind kind{};
  uint64_t number = 0;
  std::string body;
  std::vector<UniqueFd> fds = {};  // received, or to be sent
  std::vector<int> lent = {};  // sent after those; their owner keeps them until then
};

enum class ChannelResult { kDone, kWouldBlock, kClosed };

// Neither blocks. kClosed comes after everything that the other end sent before it
// died.
ChannelResult Send(int channel, const Message& message);
ChannelResult Receive(int channel, Message* message);

std::string EncodeOptions(const RelayOptions& options);
bool DecodeOptions(const std::string& bytes, RelayOptions* options);

// Only what the worker knows: whether the job is armed and with which plan (what the
// keeper tells a newcomer before its Welcome), connected, upstream, refused and the
// counts of events, batches and corrupt segments.
struct WorkerStatus {
  uint32_t corrupt_segments = 0;
  uint64_t events_read = 0;
  uint64_t events_lost = 0;
  uint64_t batches_spooled = 0;
  uint64_t batches_acknowledged = 0;
  bool connected = false;
  bool refused = false;  // waiting does not help against the upstream's error
  absl::Status upstream;
  bool armed = true;
  GpuPlan gpu;
  bool naming = false;  // functions get names, for which what is delivered waits

  bool operator==(const WorkerStatus&) const = default;
};
std::string EncodeStatus(const WorkerStatus& status);
bool DecodeStatus(const std::string& bytes, WorkerStatus* status);

}  // namespace lull::relay
