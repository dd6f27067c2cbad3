// Interning: a stack or a code object that was met before is one integer.
//
// Entries live in the segment's arena (abi/arena.h). They are found again through
// the segment's index, an open-addressed table of 64-bit slots:
//
//   slot = (upper 32 bits of the entry's hash) << 32 | Ref        0 = empty
//
// An entry's slot is the first empty one in an order that its hash gives: a cache line
// among the first kNearLines of the index, then kMaxProbes slots somewhere behind them.
// So the slots of the first thousands of entries, which a training asks for all the
// time, lie close together: looking one up was mostly a wait for a line and a page that
// nothing else had touched.
//
// Any number of threads, no locks: an entry is written in full, then its slot is
// published by a compare-and-swap (release, pairs with the acquire of find). Two
// threads that meet the same new stack at once may both write it; the relay takes
// equal stacks with different Refs. Nothing is ever removed. Since arena and index
// belong to the segment, a fork child begins with empty ones.
//
// Every function returns 0 when there is no room, counted in
// SegmentHeader::arena_rejected. None allocates, locks or fails otherwise.
#pragma once

#include <atomic>
#include <cstddef>

#include "preload/abi/segment.h"

namespace lull {

// Slots looked at before giving up: one cache line, and four.
inline constexpr uint32_t kNearSlots = 8;
inline constexpr uint32_t kNearLines = 1024;
inline constexpr uint32_t kMaxProbes = 32;

// One step of the hash of a sequence of words: 128-bit product, folded.
inline uint64_t mix(uint64_t a, uint64_t b) {
  unsigned __int128 product = static_cast<unsigned __int128>(a ^ 0x9e3779b97f4a7c15u) *
                              (b ^ 0xd6e8feb86659fd93u);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// How much of the arena may go to entries of one sort. What goes beyond it is answered
// with 0 and not counted in arena_rejected.
struct ArenaShare {
  std::atomic<uint32_t>* used;
  uint32_t most;  // bytes; may be exceeded by one entry for each thread
};

// kind: kPythonStack, kNativeStack or kScopeStack. frames: `depth` words, innermost
// first.
abi::Ref intern_stack(char* segment, abi::EntryKind kind, const uint64_t* frames,
                      uint32_t depth, uint32_t flags,
                      const ArenaShare* share = nullptr);

// A code object is known by its address and by what would not be equal too if
// another one took the same address after it was freed. Addresses alone are not
// enough: code that is made and dropped in a loop (exec, eval, generated modules)
// gets all of them again, the names' included.
struct CodeIdentity {
  uint64_t code;
  uint64_t texts;  // addresses, lengths and last bytes of filename, name, line table
  uint64_t line_table;
  int32_t first_line;
};

// True: *ref is the entry of this code object, or 0 because the index has no room
// for it. False: it is new.
bool find_code(char* segment, const CodeIdentity& identity, abi::Ref* ref);

// Room for a new code object and its texts, or nullptr. The caller fills in
// python_minor and, behind the header, filename, name and line table; then it
// publishes.
abi::CodeEntry* allocate_code(char* segment, const CodeIdentity& identity,
                              uint16_t filename_size, uint16_t name_size,
                              uint32_t linetable_size);
abi::Ref publish_code(char* segment, const CodeIdentity& identity,
                      const abi::CodeEntry* entry);

// Every other kind of entry that begins with a header and a hash (kText, kKernel,
// kGpuStream, kGpuDevice). entry: all of it but for header.size and hash; `tail`:
// what follows it in the arena.
abi::Ref intern_entry(char* segment, void* entry, size_t entry_size,
                      const void* tail = nullptr, size_t tail_size = 0,
                      const ArenaShare* share = nullptr);

}  // namespace lull
