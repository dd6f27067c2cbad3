// How a target hands its segment to the relay.
//
//   target                                   relay
//     connect(SOCK_SEQPACKET, $LULL_SOCKET)
//     Hello + memfd [+ memory]     ------->  check credentials, version, seals;
//       (SCM_RIGHTS)                         map it, open a pidfd
//     Welcome                      <-------
//     close                                  (no descriptor stays in the target)
//
// `memory` is the target's own /proc/self/mem, opened for reading: who is not its
// ancestor may often read it in no other way (docs/host_samples.md). Only a relay of
// the same user, or of root, is given it, and only where samples are wanted
// (kSamplesVariable). A target that cannot open it goes without.
//
// A target that has no segment to give (memfd_create is denied, there is no memory)
// sends Hello with kUnrecordedMagic and no descriptor, and closes. The report then says
// that a process could not be recorded.
//
// A DataLoader worker, which records nothing, says WorkerHello once, with its memory if
// it can open it, waits for no answer, and closes: its main thread is looked at from
// outside (docs/host_samples.md). Where no samples are wanted it says nothing.
//
// The target waits for Welcome at most kHandshakeTimeoutMs. If anything fails it
// stays inert for good: it never tries twice, and never says anything on stderr.
// The relay learns of the end of a target from its pidfd, and of an exec from a
// second Hello of the same pid. After the handshake the two share memory alone.
#pragma once

#include <cstdint>

#include "preload/abi/python_layout.h"

namespace lull::abi {

inline constexpr uint64_t kUnrecordedMagic = 0x4f4e45534c4c554c;  // "LULLSENO"

struct Hello {
  uint64_t magic;    // kSegmentMagic or kUnrecordedMagic
  uint32_t version;  // kVersion
  uint32_t pid;
};

inline constexpr uint64_t kWorkerMagic = 0x4b5257534c4c554c;  // "LULLSWRK"

struct WorkerHello {
  Hello hello;             // kWorkerMagic
  uint64_t python_state;   // PyThreadState of its main thread
  uint64_t python_thread;  // and its pthread_self()
  uint64_t code_type;      // &PyCode_Type
  PythonLayout layout;
  uint16_t reserved;
};

struct Welcome {
  uint32_t version;
  uint32_t accepted;  // 1, or 0: stay inert
};

inline constexpr int kHandshakeTimeoutMs = 2000;

// Environment of a target. Read once, at start.
inline constexpr char kSocketVariable[] = "LULL_SOCKET";  // path of the relay's socket
inline constexpr char kDisableVariable[] = "LULL_DISABLE";  // "1": stay inert
inline constexpr char kSamplesVariable[] = "LULL_SAMPLES";  // "0": none are wanted
inline constexpr char kWorkersVariable[] =
    "LULL_WORKERS";  // "1": DataLoader workers too
// How many seccomp filters `lull run` has on itself: those are not the program's own.
inline constexpr char kFiltersVariable[] = "LULL_FILTERS";
// Name of the NVTX range that is a training step, at most 127 bytes.
inline constexpr char kStepRangeVariable[] = "LULL_STEP_RANGE";

static_assert(sizeof(Hello) == 16 && sizeof(WorkerHello) == 88 && sizeof(Welcome) == 8);

}  // namespace lull::abi
