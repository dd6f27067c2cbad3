#include "daemon/relay/samples/roots.h"

#include "daemon/relay/samples/layout.h"

namespace lull::relay {
namespace {

constexpr size_t kMostKnown = 64;
constexpr int kMostToTheFirst = 32;
// Behind the head of a chunk (previous, size, top) and the first word of the first
// chunk's data, which is never used.
constexpr uint64_t kFirstFrame = 24 + 8;

}  // namespace

uint64_t Roots::Of(uint64_t chunk, TargetMemory* memory) {
  auto known = known_.find(chunk);
  if (known != known_.end()) return known->second;
  if (known_.size() >= kMostKnown) known_.clear();
  uint64_t at = chunk;
  for (int i = 0; i < kMostToTheFirst; ++i) {
    uint64_t previous = 0;
    static_assert(abi::kChunkPrevious == 0);
    if (!Plausible(at) || !memory->Read(at, &previous, sizeof(previous))) break;
    if (previous == 0) return known_[chunk] = at + kFirstFrame;
    at = previous;
  }
  return known_[chunk] = 0;
}

}  // namespace lull::relay
