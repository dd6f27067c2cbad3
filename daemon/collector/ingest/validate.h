// Checks what a relay sends before anything else looks at it. The peer may be
// anybody who can reach the socket: past these functions every length, sum and
// reference inside one message is sound. What needs knowledge of earlier messages
// (APIs, ring positions) is checked by JobState.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ingest.pb.h"

namespace lull::collector {

// 2: small blocks may be drawn, and stacks may come as columns.
inline constexpr uint32_t kProtocolVersion = 2;
// What an older relay sends, or left in a spool, means the same today.
inline constexpr uint32_t kOldestProtocolVersion = 1;
inline constexpr int kMaxMessageBytes = 64 << 20;

// INVALID_ARGUMENT with the name of the field, FAILED_PRECONDITION for a protocol
// version that we do not know.
absl::Status ValidateHello(const lull::v1::Hello& hello);
// `field`: the name of the field that holds it.
absl::Status ValidateArming(absl::string_view field, const lull::v1::ArmState& state);
absl::Status ValidateClock(const lull::v1::ClockReading& reading);
absl::Status ValidateBatch(const lull::v1::Batch& batch);

// Removes the runs of events that ValidateBatch() would refuse, so that they do not
// hold up the rest, and returns which they were.
std::vector<lull::v1::RejectedRun> TakeBadRunsOut(lull::v1::Batch* batch);
lull::v1::RejectedRun Rejection(const lull::v1::Batch& batch,
                                const lull::v1::RingBatch& run, std::string why);

}  // namespace lull::collector
