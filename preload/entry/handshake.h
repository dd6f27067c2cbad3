// The target's side of abi/handshake.h: gives the segment to a relay.
#pragma once

#include <cstdint>

#include "preload/abi/handshake.h"

namespace lull {

enum class Handshake {
  kAccepted,
  kRefused,      // a relay answered no, answered nonsense, or not in time
  kUnreachable,  // nobody listens there (yet)
};

// Whom we hand our memory to.
enum class Peer {
  kAny,       // the user named the socket
  kSameUser,  // we guessed its path: only ourselves or root may be listening
};

// Whether the process's own memory goes with it, for reading. To another user's relay
// it never does, whoever named the path: that user could read all of a root process.
enum class Memory { kGiven, kKept };

// Connects, sends Hello, the memfd and, where that is wanted and can be, the process's
// own memory; waits for Welcome until `deadline_ns` (CLOCK_MONOTONIC). Never blocks
// beyond that, raises no SIGPIPE, is no cancellation point, leaves no descriptor
// behind. Call with signals blocked.
Handshake hand_over(const char* socket_path, int memfd, Peer peer, Memory memory,
                    uint64_t deadline_ns);

// Tells the relay that this process has no segment to give, and waits for no answer. As
// hand_over() otherwise.
void say_unrecorded(const char* socket_path, uint64_t deadline_ns);

// Tells the relay where this DataLoader worker, which has no segment, can be looked at.
// As say_unrecorded(). Fills hello->hello.
void say_worker(const char* socket_path, abi::WorkerHello* hello, uint64_t deadline_ns);

}  // namespace lull
