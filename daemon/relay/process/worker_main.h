// main() of the relay worker: `lull relay-worker`, started by the keeper alone.
#pragma once

namespace lull::relay {

// Inherited descriptors: kChannelFd, a SOCK_SEQPACKET pair to the keeper, and
// kListenFd, the socket that targets say hello on. Returns the exit status.
inline constexpr int kChannelFd = 3;
inline constexpr int kListenFd = 4;
int RelayWorkerMain();

}  // namespace lull::relay
