// From returned buffers into the ring of the thread that is at it, and the books of
// what did not get there.
//
// A buffer that the ring has no room for waits; nothing is lost before the pool runs
// dry. Threads of the program leave half of their ring to their own events.
#pragma once

#include "preload/abi/event.h"
#include "preload/cupti/buffers.h"
#include "preload/cupti/clock.h"
#include "preload/cupti/decode.h"

namespace lull::cupti {

// Room in the calling thread's ring beyond `keep_free` slots; takes a ring if the
// thread has none. Counts no loss.
bool ring_has_room(char* segment, uint64_t keep_free);

// Commits a finished event. False, and nothing counted, if the ring is full.
bool deliver(char* segment, const abi::Event& event);

// Records that will never arrive, and when they happened, as near as that is known.
// Any thread, no locks. What is noted is told in the next event that finds room.
class Losses {
 public:
  void note(uint64_t records, uint64_t from, uint64_t to);
  // Writes a kGpuLost, if there is anything to tell and room for it.
  void tell(char* segment);
  void forget() {
    records_.store(0, std::memory_order_relaxed);
    unreadable_.store(0, std::memory_order_relaxed);
    from_inverted_.store(0, std::memory_order_relaxed);
    to_.store(0, std::memory_order_relaxed);
  }
  bool pending() const { return records_.load(std::memory_order_relaxed) != 0; }

  // Noted records whose time could not be told.
  void note_unreadable(uint64_t records) {
    unreadable_.fetch_add(records, std::memory_order_relaxed);
  }
  uint64_t take_unreadable() {
    return unreadable_.exchange(0, std::memory_order_relaxed);
  }

 private:
  std::atomic<uint64_t> unreadable_{0};
  std::atomic<uint64_t> records_{0};
  std::atomic<uint64_t> from_inverted_{0};  // ~from; 0: none
  std::atomic<uint64_t> to_{0};
};

enum class Patience {
  kNone,    // a thread of the program: never waits, keeps half of its ring free
  kBrief,   // CUPTI's own thread: waits for the relay
  kAtExit,  // the program ends: takes the whole ring and waits for the relay
};

// How long a relay is waited for: 50 ms from when it last read anything, one budget for
// all buffers. A relay that is dead costs that once; one that is slow gets no more than
// a second at the program's end. Any thread, no locks.
class Endurance {
 public:
  void begin_exit(uint64_t now);
  // Waits for a moment. False: it has been long enough. `ring`: the thread's.
  bool pause(const abi::RingHeader& ring);

 private:
  static constexpr int kPauses = 50;
  std::atomic<int> pauses_{kPauses};
  std::atomic<uint64_t> until_{UINT64_MAX};
  // The ring that was waited for last, and how far it was read.
  std::atomic<const abi::RingHeader*> ring_{nullptr};
  std::atomic<uint64_t> tail_{0};
};

// Decodes `buffer` (kDecoding, the caller's) as far as the ring has room. True: done,
// or its segment is gone.
bool deliver_buffer(const Decoder& decoder, const ClockView& clock, Buffer* buffer,
                    uint8_t* data, Patience patience, Endurance* endurance,
                    Losses* losses);

}  // namespace lull::cupti
