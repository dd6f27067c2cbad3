// The reading end of a target's shared memory. The target may be broken or
// hostile and may write at any time: everything is copied first, then checked,
// then used. Nothing here crashes, reads outside of the segment, or loops longer
// than the ABI's own limits allow, whatever the bytes say.
//
// Only what a target has committed is touched: pages that it never used stay
// without memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "daemon/relay/samples/layout.h"
#include "preload/abi/segment.h"

namespace lull::relay {

// A counter of the target, at most what the wire and the store can hold.
uint64_t Total(const std::atomic<uint64_t>& counter);

// When a target made its segment, CLOCK_MONOTONIC. UINT64_MAX: that cannot be read.
uint64_t CreatedNs(int memfd);

struct RingView {
  uint64_t head = 0;
  uint64_t oldest = 0;  // number of its first chunk
  uint64_t lost = 0;
  uint64_t self_ns = 0;
  uint64_t short_waits = 0;
  uint64_t short_waits_ns = 0;
  uint64_t thinned_launches = 0;
};

struct RawStack {
  bool native = false;
  bool scopes = false;  // addresses are Refs of names
  bool truncated = false;
  uint32_t depth = 0;
  union {
    abi::PythonFrame python[abi::kMaxPythonFrames];
    uint64_t addresses[abi::kMaxNativeFrames];
  };
};

struct RawCode {
  std::string filename;
  std::string name;
  std::optional<std::string> linetable;  // nullopt: it was too large to keep
  int32_t first_line = 0;
  int python_minor = 0;
};

// What a ring says about its owner's Python.
struct PythonOfRing {
  abi::OwnerWord owner = abi::kFreeRing;
  uint64_t state = 0;  // PyThreadState; 0: none is known
  uint64_t thread = 0;
};

// Does not own the mapping. One thread at a time.
class SegmentReader {
 public:
  // `base`: abi::kSegmentSize mapped bytes.
  explicit SegmentReader(char* base) : view_(base) {}

  // False when the constant part of the header is not what a shim writes.
  bool HeaderIsSane() const;

  const abi::SegmentHeader& header() const { return view_.header(); }
  abi::ControlBlock& control() const { return view_.control(); }

  // Every ring that ever had an owner is below; at most abi::kMaxRings.
  uint32_t RingsUsed() const;
  RingView Ring(uint32_t ring) const;
  uint64_t Head(uint32_t ring) const;  // Ring()'s
  uint64_t Tail(uint32_t ring) const;
  // As Total() has it.
  uint64_t GpuCalls() const;

  // Whose ring it is; kFreeRing: nobody's. A thread that has ended stays the owner
  // until FreeRing().
  abi::OwnerWord Owner(uint32_t ring) const;
  // Gives the ring to whoever wants one next, unless it is no longer `owner`'s. Call
  // this only when that thread is gone and all that it committed is released.
  bool FreeRing(uint32_t ring, abi::OwnerWord owner) const;

  // nullopt: it has no owner, or changes hands.
  std::optional<PythonOfRing> Python(uint32_t ring) const;
  // nullopt: no interpreter whose frames can be read was found, or not yet.
  std::optional<FrameLayout> PythonFrames() const;

  // Head of the ring alone, as an acquire: what lies below it is complete.
  // nullopt: corrupt, a reader at `next` cannot be that far behind or ahead.
  std::optional<uint64_t> CommittedHead(uint32_t ring, uint64_t next) const;
  // Copies `count` events from position `from` on; both below a head seen before.
  // False: corrupt, some of them lie in a chunk that does not exist.
  bool CopyEvents(uint32_t ring, uint64_t from, uint32_t count, abi::Event* out) const;
  // Gives the slots below `position` back to the writer.
  void Release(uint32_t ring, uint64_t position) const;

  // nullopt: the reference does not lead to such an entry; the segment is corrupt.
  std::optional<RawStack> Stack(abi::Ref ref) const;
  std::optional<RawCode> Code(abi::Ref ref) const;
  // Cut at kMaxText bytes.
  std::optional<std::string> Text(abi::Ref ref) const;
  // Also nullopt for another kind of entry: ask IsBackward() first.
  std::optional<abi::BackwardEntry> Backward(abi::Ref ref) const;
  bool IsBackward(abi::Ref ref) const;
  std::optional<abi::KernelEntry> Kernel(abi::Ref ref) const;
  std::optional<abi::GpuStreamEntry> GpuStream(abi::Ref ref) const;
  std::optional<abi::GpuDeviceEntry> GpuDevice(abi::Ref ref) const;

  static constexpr size_t kMaxText = 16 * 1024;  // mangled names grow long

 private:
  // The entry's header if the whole entry lies within the used part of the arena.
  std::optional<abi::EntryHeader> Entry(abi::Ref ref, size_t least) const;
  // A copy of an entry that has no variable part.
  template <typename T>
  std::optional<T> Fixed(abi::Ref ref, abi::EntryKind kind) const;

  abi::SegmentView view_;
};

}  // namespace lull::relay
