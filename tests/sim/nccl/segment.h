// What the ranks of one communicator share: a file that each maps, found by a path that
// the communicator's unique id contains. Zeros are its valid beginning, so whoever
// comes first makes it; the last to come removes its name.
//
// All ranks do the same collectives in the same order, and no rank begins one before it
// has seen the end of its last, so a few slots in turn are enough: who writes a slot
// anew knows that everybody has read it. The same holds for messages between two ranks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace lull::sim::nccl {

inline constexpr uint32_t kMaxRanks = 512;
inline constexpr size_t kPayload = 64
                                   << 10;  // bytes that a rank can hand to all others

// That a rank has begun a collective, or its side of a message. `tag` is stored last:
// the number of the collective (message), counted from 1.
struct Arrival {
  std::atomic<uint64_t> tag;
  int64_t start_ns;
  int64_t duration_ns;  // from the last start on
  uint64_t signature;   // of the calls; ranks must agree
};

// What a rank chose in a split.
struct Choice {
  std::atomic<uint64_t> tag;
  int32_t color, key;
};

enum class Presence : uint32_t { kNotYet, kComing, kHere, kLeft };

struct Rank {
  std::atomic<Presence> presence;
  uint32_t pid;
  uint64_t born;  // start time of the process: ids are reused
};

class Segment {
 public:
  // Null, and a text in `error`, if it cannot be, or is one of another size.
  static std::unique_ptr<Segment> open(const std::string& path, uint32_t size,
                                       std::string* error);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  const std::string& path() const { return path_; }
  uint32_t size() const { return size_; }

  bool join(uint32_t rank);  // false: somebody is this rank
  void leave(uint32_t rank);
  bool complete() const;  // all have joined
  void remove() const;    // the name
  const Rank& rank(uint32_t rank) const { return ranks_[rank]; }
  // Of a rank that has joined.
  bool alive(uint32_t rank) const;

  // Number `number` from 0 on.
  void arrive(uint64_t number, uint32_t rank, int64_t start_ns, int64_t duration_ns,
              uint64_t signature);
  const Arrival* arrival(uint64_t number, uint32_t rank) const;  // null: not yet
  // What a rank gives to the others with its arrival.
  char* payload(uint64_t number, uint32_t rank) const;
  void choose(uint64_t number, uint32_t rank, int32_t color, int32_t key);
  const Choice* choice(uint64_t number, uint32_t rank) const;
  // The side of the sender, or the receiver, of message `number` from one to the other.
  void pass(bool sender, uint32_t from, uint32_t to, uint64_t number, int64_t start_ns,
            int64_t duration_ns);
  const Arrival* passed(bool sender, uint32_t from, uint32_t to, uint64_t number) const;

  // Some rank has given up.
  void spoil();
  bool spoilt() const;

  // A wait for others: read changes(), look, and wait for another value of it.
  uint32_t changes() const;
  void wait(uint32_t seen, int64_t timeout_ns) const;
  void announce();

 private:
  struct Head;
  Segment(std::string path, uint32_t size, void* base);
  Arrival* side(bool sender, uint32_t from, uint32_t to, uint64_t number) const;

  std::string path_;
  uint32_t size_;
  Head* head_;
  Rank* ranks_;
  Arrival* arrivals_;
  Choice* choices_;
  Arrival* sides_;
  char* payloads_;
};

}  // namespace lull::sim::nccl
