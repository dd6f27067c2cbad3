// One frame of a Python stack, as its bytes say.
#pragma once

#include <cstdint>

#include "daemon/relay/samples/layout.h"

namespace lull::relay {

struct SeenFrame {
  uint64_t address = 0;
  uint64_t code = 0;  // the object
  int32_t lasti = 0;
  uint32_t number = 0;  // of the code, CodeBook's

  bool operator==(const SeenFrame&) const = default;
};

struct DecodedFrame {
  SeenFrame seen;             // not set for a foreign one
  uint64_t previous = 0;      // the caller's frame
  bool foreign = false;       // the interpreter's own: it runs no code of Python
  bool in_generator = false;  // it lies in its generator
  bool running = true;        // or calls what runs; false: not yet, or no more
};

// `bytes`: those of the frame, from layout.frame.low on. False: no frame looks like
// that.
bool DecodeFrame(const FrameLayout& layout, const char* bytes, uint64_t address,
                 DecodedFrame* out);

// An address some bytes from another one.
inline uint64_t OffsetBy(uint64_t address, int offset) {
  return address + static_cast<uint64_t>(static_cast<int64_t>(offset));
}

}  // namespace lull::relay
