// What is copied of a thread with each look: the pieces of memory in which its stack
// lies, and those in which it lay a short while ago. A line that calls a generator, or
// comes back from C into Python, has its stack in two places in turn, thousands of
// times a second. A plan for only one of them would miss every second look. What was
// needed only once, as the frame of a generator that is made anew with each call, goes
// with the next few looks: it takes its time to copy, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/relay/samples/memory.h"

namespace lull::relay {

class CopyPlan {
 public:
  enum class Kind : uint8_t {
    kThread,  // its state: the first piece
    kLink,    // a word that leads to a frame: read before the frames
    kFrames,
    kOnCStack,  // frames of the interpreter's own, among what C goes on changing
  };

  bool empty() const { return planned_.empty(); }
  size_t size() const { return planned_.size(); }
  size_t copy_bytes() const { return copy_bytes_; }
  const Piece& at(size_t index) const { return planned_[index].piece; }

  // Where a piece is at in a copy; nullptr: it is in no piece. `hint`: the piece in
  // which the one before it was found, which is often the same.
  // `depth`: how many frames of the walk are further inside.
  const char* Find(const char* copy, uint64_t address, size_t size, size_t* hint,
                   uint32_t depth = 0);
  bool Has(const Piece& piece) const;
  // The thread's state and all frames of Python are the same in both, to the last byte.
  bool SameFrames(const char* copy, const char* other) const;
  // One more look begins. Pieces that none of the last ones needed are forgotten.
  void NextLook();

  // The innermost ones first.
  void Add(Piece piece, Kind kind) {
    planned_.push_back({piece, kind, looks_, 1, static_cast<uint32_t>(size())});
  }
  // Adds a piece that a walk missed. False: there is no room for it.
  bool Extend(Piece piece, Kind kind);
  void Clear();
  // Keeps what was added since `earlier` was the plan, and adds those pieces of
  // `earlier` that one of the last looks needed.
  void Settle(const CopyPlan& earlier);
  // To be read one behind the other, `copies` times. Every second copy begins with the
  // last piece.
  void AppendPieces(size_t copies, std::vector<Piece>* pieces) const;
  // Puts the bytes of such a copy into the order of all others.
  void TurnRound(char* copy) const;

  static constexpr size_t kMost = 200;  // pieces, without those that are remembered

 private:
  struct Planned {
    Piece piece;
    Kind kind;
    uint32_t used;      // the look that last needed it
    uint32_t uses = 1;  // looks that did
    uint32_t depth = 0;
  };
  void Merge();
  void LayOut();

  std::vector<Planned> planned_;
  std::vector<size_t> offsets_;  // of them in a copy
  size_t copy_bytes_ = 0;
  uint32_t looks_ = 0;
};

}  // namespace lull::relay
