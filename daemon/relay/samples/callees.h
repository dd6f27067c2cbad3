// Remembers the addresses of frames that have a caller. A stack that ends at one of
// them was copied while that frame returned, or while its generator yielded. Frames
// come back to the same addresses: those of one line always, up to Python 3.10 those of
// a function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lull::relay {

class Callees {
 public:
  // One more look begins: what was seen long ago may be another frame's address by now.
  void NextLook() { ++looks_; }
  void Add(uint64_t frame);
  bool Has(uint64_t frame) const;

 private:
  static constexpr size_t kMost = 64;
  static constexpr uint32_t kLooks = 64;
  struct Seen {
    uint64_t frame;
    uint32_t look;
  };
  std::vector<Seen> seen_;
  uint32_t looks_ = 0;
};

}  // namespace lull::relay
