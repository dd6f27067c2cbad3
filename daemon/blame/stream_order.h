// What each stream did last and was told to wait for: whether an operation had to wait
// for another, as seen from its own stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "daemon/base/settled.h"
#include "daemon/blame/blame.h"

namespace lull::blame {

class StreamOrder {
 public:
  // An operation, or a wait, counts for one that starts at most `memory_ns` later.
  explicit StreamOrder(uint64_t memory_ns) : memory_ns_(memory_ns) {}

  void Add(const StreamWait& wait);
  void Settle();

  // `operation` was submitted at `submit_ns`, and the device had been idle since
  // `idle_ns`.
  bool Waited(const Operation& operation, uint64_t submit_ns, uint64_t idle_ns) const;
  // The operations of a stream are passed in order. Where the call of one is lost,
  // its own start stands in for the time of it.
  void Pass(const Operation& operation, uint64_t submit_ns);

  // Operations to come start at `time_ns` or later.
  void Prune(uint64_t time_ns);
  // Forgets what lies before.
  void DropBefore(uint64_t time_ns);
  size_t size() const { return held_; }

 private:
  struct Wait {
    uint64_t time_ns;
    bool operator<(const Wait& other) const { return time_ns < other.time_ns; }
  };
  struct Order {
    bool operator()(const Wait& a, const Wait& b) const { return a < b; }
  };
  struct Stream {
    bool used = false;
    uint64_t start_ns = 0;  // of its latest operation
    uint64_t end_ns = 0;
    uint64_t submit_ns = 0;
    bool copies = false;  // it is a copy or memset
    Settled<Wait, Order> waits;
    bool unsettled = false;
  };
  using Key = std::tuple<ContextId, StreamId>;

  Stream& StreamOf(ContextId context, StreamId stream);

  uint64_t memory_ns_;
  std::map<Key, Stream> streams_;
  std::vector<Stream*> unsettled_;
  Key last_key_;
  Stream* last_ = nullptr;  // operations mostly follow others of their stream
  size_t held_ = 0;         // streams and waits
  size_t kept_ = 0;         // streams that the last Prune left
};

}  // namespace lull::blame
