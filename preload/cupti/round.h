// What a window's first round launched, and what of it has ended: from that follows
// whether the device has come to the window (backlog.h).
//
//   window begins             round ends            caught up
//   |--- calls of the round ---|                     |
//   |                          all launches of the round have ended;
//   |                          since: when the first one of each stream began,
//   |                          of the stream that came to it last
//
// Streams run in order: once one has begun with a launch of the window, it has done
// all that was launched on it before. Which streams a program has, a whole round shows.
//
// Any thread, no locks. Of one window: begin() has it alone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "preload/abi/arena.h"
#include "preload/cupti/call_names.h"
#include "preload/cupti/graph_nodes.h"

namespace lull::cupti {

class Round {
 public:
  // The first 57,344 calls of a window are looked at. A round of more than 32 streams
  // is one whose last stream has begun just now.
  static constexpr uint32_t kIds = 65'536;
  static constexpr uint32_t kIdsBefore = 8'192;  // known later than the first one
  static constexpr uint32_t kStreams = 32;

  // `old_calls`: what last_call() was in the window before. `nothing_before`: the
  // program has launched nothing yet. `before`: that window, whose graphs are known;
  // null: none.
  void begin(uint64_t now, bool nothing_before, uint64_t old_calls,
             const Round* before = nullptr);

  void saw_call(uint32_t id, uint64_t start_ns, Submits what);
  // It has ended. `stream`: 0 if it is not known.
  void saw_operation(uint32_t id, uint64_t start_ns, abi::Ref stream, bool copy);
  // The same one is a node of `graph`.
  void saw_node(uint32_t graph, uint32_t id, uint64_t start_ns, uint64_t end_ns,
                abi::Ref stream);

  // Calls from now on are not of the round. Without any before it goes on.
  void end(uint64_t now);
  bool ended() const { return end_ns() != UINT64_MAX; }
  // UINT64_MAX: it goes on.
  uint64_t end_ns() const { return end_ns_.load(std::memory_order_relaxed); }

  // Since when all that the device works on was launched in the window, as far as that
  // is known; 0: it is not there yet. All that was returned must have been told.
  uint64_t caught_up_ns() const;

  // CUPTI is being switched off: calls from now on may leave no record of what they
  // launch.
  void stop(uint64_t now);

  // Of the window, not of the round alone: launches that have not ended. Where
  // something was captured nobody knows.
  bool has_unended() const;
  // Since when the device may have been at a graph of which some nodes have ended
  // (graph_nodes.h); UINT64_MAX: at none.
  uint64_t unsure_since() const;
  // The program has waited for the device, and nothing is launched any more.
  void all_ended() { nodes_.all_ended(); }

  bool nothing_before() const { return nothing_before_; }
  uint64_t last_call() const { return last_call_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kWords = kIds / 64;
  using Ids = std::atomic<uint64_t>[kWords];
  struct Stream {
    std::atomic<uint64_t> key;  // what, and of which kind; 0: free
    // Of the launches whose work has run: packed(after begun) << 32 | id.
    std::atomic<uint64_t> first;
    std::atomic<uint64_t> first_sure;  // of those not before the first call when told
    std::atomic<uint64_t> latest;      // packed(after begun), of all
    std::atomic<uint64_t> newest;      // kKnown | id, of all
  };

  bool index_of(uint32_t id, uint32_t* index);
  Stream* stream_of(uint64_t key);
  bool is_of_before(uint32_t id, uint64_t start_ns) const;
  uint32_t begun_on(const Stream& stream, uint32_t call, uint32_t last) const;
  bool is_captured(uint32_t id) const;
  bool pending(const Ids& called, uint32_t last) const;
  uint64_t since(bool copies, uint32_t last) const;

  uint64_t now_ns_ = 0;    // at the beginning
  uint64_t begun_ns_ = 0;  // calls of the window begin from then on
  bool nothing_before_ = false;
  std::atomic<uint64_t> end_ns_{0};
  std::atomic<uint64_t> stop_ns_{0};
  std::atomic<uint64_t> old_call_{0};    // kKnown | id: the last one of before
  std::atomic<uint64_t> first_call_{0};  // kKnown | id, as are those that follow
  std::atomic<uint64_t> last_call_{0};
  std::atomic<uint64_t> newest_launch_{0};
  std::atomic<uint64_t> last_launch_{0};  // of the round, as are those that follow
  std::atomic<uint64_t> last_copy_{0};
  std::atomic<uint64_t> capture_begun_{0};  // the first one
  std::atomic<uint64_t> capture_ended_{0};  // the last one
  std::atomic<uint64_t> captured_{0};       // of the window: some call of a capture
  std::atomic<uint64_t> unsure_{0};         // the last that is in no first_sure
  std::atomic<uint64_t> base_{0};           // bit 0 of those below
  std::atomic<uint64_t> crowd_{0};          // packed: the last start beyond the streams
  Stream streams_[kStreams] = {};
  GraphNodes nodes_;
  Ids launched_ = {};
  Ids copied_ = {};
  Ids done_ = {};
};

}  // namespace lull::cupti
