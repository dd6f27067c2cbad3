#include "preload/autograd/forward_table.h"

#include "preload/abi/segment.h"

namespace lull {
namespace {

constexpr int kStackShift = 44;
static_assert(abi::kArenaSize / 16 < (uint64_t{1} << (64 - kStackShift)));

}  // namespace

bool ForwardTable::fits(uint64_t thread, uint64_t number) {
  return thread < (uint64_t{1} << kThreadBits) &&
         number / kPlaces < (uint64_t{1} << kHighBits);
}

uint64_t ForwardTable::key_of(uint32_t generation, uint64_t thread, uint64_t number) {
  static_assert(kGenerationBits + kThreadBits + kHighBits == kStackShift);
  uint64_t of_generation = generation % (1u << kGenerationBits);
  return of_generation << (kThreadBits + kHighBits) | thread << kHighBits |
         number / kPlaces;
}

void ForwardTable::put(uint32_t generation, uint64_t thread, uint64_t number,
                       abi::Ref stack) {
  if (!fits(thread, number)) return;
  uint64_t word = uint64_t{stack} << kStackShift | key_of(generation, thread, number);
  // Pairs with the acquire in find(): the stack lies in the arena by then.
  words_[place_of(thread, number)].store(stack == 0 ? 0 : word,
                                         std::memory_order_release);
}

abi::Ref ForwardTable::find(uint32_t generation, uint64_t thread,
                            uint64_t number) const {
  if (!fits(thread, number)) return 0;
  uint64_t word = words_[place_of(thread, number)].load(std::memory_order_acquire);
  uint64_t key = word & ((uint64_t{1} << kStackShift) - 1);
  // Another number of the same place differs in what is above its lowest bits: the
  // place is a sum of both, so a thread's numbers meet only kPlaces apart.
  if (key != key_of(generation, thread, number)) return 0;
  return static_cast<abi::Ref>(word >> kStackShift);
}

}  // namespace lull
