#include "preload/stacks/interning.h"

#include <cstring>

#include "preload/ring/backing.h"

namespace lull {
namespace {

constexpr uint32_t kNear = kNearLines * kNearSlots;
constexpr uint32_t kFar = abi::kIndexSlots - kNear;
static_assert(kNear < abi::kIndexSlots);
static_assert(abi::kIndexOffset % 64 == 0 && kNearSlots * sizeof(uint64_t) == 64);

// Slots where an entry may be, in the order in which they are filled.
class Probes {
 public:
  explicit Probes(uint64_t hash) : hash_(static_cast<uint32_t>(hash)) {}

  bool more() const { return probe_ < kNearSlots + kMaxProbes; }
  void next() { ++probe_; }
  uint32_t slot() const {
    if (probe_ < kNearSlots) return hash_ % kNearLines * kNearSlots + probe_;
    // By bits that chose no line: neighbours there are strangers here.
    return kNear + (hash_ / kNearLines + probe_ - kNearSlots) % kFar;
  }

 private:
  uint32_t hash_;
  uint32_t probe_ = 0;
};

// A chain of mix() waits for each product: four chains side by side take 0.02 us off a
// sync hook with stacks of 30 and 40 frames (1.17 to 1.15).
uint64_t hash_of(const uint64_t* words, uint32_t count, uint64_t seed) {
  uint64_t hash = seed + count;
  uint32_t i = 0;
  if (count >= 16) {
    uint64_t chains[4] = {hash, hash + 1, hash + 2, hash + 3};
    for (; i + 8 <= count; i += 8) {
      for (uint32_t chain = 0; chain < 4; ++chain) {
        const uint64_t* pair = words + i + 2 * chain;
        chains[chain] = mix(chains[chain] ^ pair[0], pair[1]);
      }
    }
    hash = mix(chains[0] ^ chains[1], chains[2]) ^ chains[3];
  }
  for (; i + 1 < count; i += 2) hash = mix(hash ^ words[i], words[i + 1]);
  if (i < count) hash = mix(hash ^ words[i], seed);
  return hash;
}

uint64_t hash_of(const CodeIdentity& identity) {
  return mix(identity.code ^ identity.texts,
             identity.line_table ^ static_cast<uint32_t>(identity.first_line));
}

uint64_t hash_of_bytes(const char* bytes, size_t size, uint64_t seed) {
  uint64_t hash = seed + size;
  for (; size >= 16; bytes += 16, size -= 16) {
    uint64_t words[2];
    memcpy(words, bytes, sizeof words);
    hash = mix(hash ^ words[0], words[1]);
  }
  uint64_t rest[2] = {0, 0};
  memcpy(rest, bytes, size);
  return mix(hash ^ rest[0], rest[1]);
}

// What every entry of intern_entry() begins with.
struct HashedEntry {
  abi::EntryHeader header;
  uint64_t hash;
};

uint64_t slot_of(uint64_t hash, abi::Ref ref) {
  return (hash & 0xffffffff00000000u) | ref;
}

// same() and copy() stand for memcmp and memcpy on the arena, which all threads share.
// A program with ThreadSanitizer has its own two in libc's place: they see the
// accesses, do not see the atomics that order them (ours are not instrumented), and
// report a race that is none.
bool same(const void* a, const void* b, size_t size) {
  auto* left = static_cast<const char*>(a);
  auto* right = static_cast<const char*>(b);
  uint64_t difference = 0;
  for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t)) {
    uint64_t words[2];
    memcpy(&words[0], left, sizeof(uint64_t));
    memcpy(&words[1], right, sizeof(uint64_t));
    difference |= words[0] ^ words[1];
    left += sizeof(uint64_t);
    right += sizeof(uint64_t);
  }
  for (; size != 0; --size) difference |= static_cast<uint64_t>(*left++ ^ *right++);
  return difference == 0;
}

// The empty asm keeps the compiler from making a call of memcpy of it.
void copy(void* to, const void* from, size_t size) {
  auto* target = static_cast<char*>(to);
  auto* source = static_cast<const char*>(from);
  for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t)) {
    memcpy(target, source, sizeof(uint64_t));
    target += sizeof(uint64_t);
    source += sizeof(uint64_t);
    asm volatile("" ::: "memory");
  }
  for (; size != 0; --size) {
    *target++ = *source++;
    asm volatile("" ::: "memory");
  }
}

// Reading a page makes the system find memory for it, too.
bool is_there(char* segment, const void* at, size_t size) {
  return back_once(segment, at, size);
}

// Not a Ref: the arena is smaller than 16 times this.
constexpr abi::Ref kCrowded = UINT32_MAX;

// The Ref of the first entry with this hash that `accept` accepts; 0 when there is
// none; kCrowded when there is none and no slot for it either.
template <typename Accept>
abi::Ref find(char* segment, uint64_t hash, Accept accept) {
  abi::SegmentView view(segment);
  std::atomic<uint64_t>* index = view.index();
  for (Probes probes(hash); probes.more(); probes.next()) {
    std::atomic<uint64_t>& at = index[probes.slot()];
    if (!back_once(segment, &at)) return kCrowded;
    // Pairs with the release in publish(): behind a slot the entry is complete.
    uint64_t slot = at.load(std::memory_order_acquire);
    if (slot == 0) return 0;
    abi::Ref ref = static_cast<abi::Ref>(slot);
    if (slot_of(hash, ref) == slot && accept(view.entry(ref))) return ref;
  }
  return kCrowded;
}

void reject(char* segment) {
  abi::SegmentView(segment).header().arena_rejected.fetch_add(
      1, std::memory_order_relaxed);
}

// 16-aligned room in the arena, or 0. A CAS loop, so that arena_used never goes
// beyond the end, however often a full arena is asked.
abi::Ref allocate(char* segment, size_t bytes) {
  std::atomic<uint32_t>& used = abi::SegmentView(segment).header().arena_used;
  size_t size = (bytes + 15) & ~size_t{15};
  uint32_t at = used.load(std::memory_order_relaxed);
  uint32_t start;
  do {
    start = at == 0 ? 16 : at;  // offset 0 means "no entry"
    if (size > abi::kArenaSize - start) return 0;
  } while (!used.compare_exchange_weak(at, static_cast<uint32_t>(start + size),
                                       std::memory_order_relaxed));
  char* begin = abi::SegmentView(segment).arena() + start;
  return is_there(segment, begin, size) ? start / 16 : 0;
}

bool grants(const ArenaShare* share, size_t bytes) {
  if (share == nullptr) return true;
  if (share->used->load(std::memory_order_relaxed) + bytes > share->most) return false;
  share->used->fetch_add(static_cast<uint32_t>(bytes), std::memory_order_relaxed);
  return true;
}

// Makes a finished entry findable. find() saw an empty slot; should other threads
// have filled them all since, the entry is still good, only not shared.
void publish(char* segment, uint64_t hash, abi::Ref ref) {
  std::atomic<uint64_t>* index = abi::SegmentView(segment).index();
  for (Probes probes(hash); probes.more(); probes.next()) {
    std::atomic<uint64_t>& at = index[probes.slot()];
    uint64_t empty = 0;
    // Pairs with the acquire in find().
    if (at.load(std::memory_order_relaxed) == 0 &&
        at.compare_exchange_strong(empty, slot_of(hash, ref), std::memory_order_release,
                                   std::memory_order_relaxed)) {
      return;
    }
  }
}

}  // namespace

abi::Ref intern_stack(char* segment, abi::EntryKind kind, const uint64_t* frames,
                      uint32_t depth, uint32_t flags, const ArenaShare* share) {
  size_t bytes = size_t{depth} * sizeof(uint64_t);
  uint64_t hash = hash_of(frames, depth, static_cast<uint64_t>(kind) * 2 + flags);
  abi::Ref known = find(segment, hash, [&](const char* at) {
    auto* entry = reinterpret_cast<const abi::StackEntry*>(at);
    return entry->header.kind == kind && entry->depth == depth &&
           entry->flags == flags && same(entry + 1, frames, bytes);
  });
  if (known != 0 && known != kCrowded) return known;

  size_t size = sizeof(abi::StackEntry) + bytes;
  if (!grants(share, size)) return 0;
  abi::Ref ref = known == kCrowded ? 0 : allocate(segment, size);
  if (ref == 0) {
    reject(segment);
    return 0;
  }
  auto* entry =
      reinterpret_cast<abi::StackEntry*>(abi::SegmentView(segment).entry(ref));
  entry->header = {kind, static_cast<uint32_t>(size)};
  entry->hash = hash;
  entry->depth = depth;
  entry->flags = flags;
  copy(entry + 1, frames, bytes);
  publish(segment, hash, ref);
  return ref;
}

bool find_code(char* segment, const CodeIdentity& identity, abi::Ref* ref) {
  *ref = find(segment, hash_of(identity), [&](const char* at) {
    auto* entry = reinterpret_cast<const abi::CodeEntry*>(at);
    return entry->header.kind == abi::EntryKind::kPythonCode &&
           entry->code_address == identity.code &&
           entry->name_address == identity.texts &&
           entry->linetable_address == identity.line_table &&
           entry->first_line == identity.first_line;
  });
  if (*ref != kCrowded) return *ref != 0;
  reject(segment);
  *ref = 0;
  return true;
}

abi::CodeEntry* allocate_code(char* segment, const CodeIdentity& identity,
                              uint16_t filename_size, uint16_t name_size,
                              uint32_t linetable_size) {
  size_t size = sizeof(abi::CodeEntry) + filename_size + name_size + linetable_size;
  abi::Ref ref = allocate(segment, size);
  if (ref == 0) {
    reject(segment);
    return nullptr;
  }
  auto* entry = reinterpret_cast<abi::CodeEntry*>(abi::SegmentView(segment).entry(ref));
  entry->header = {abi::EntryKind::kPythonCode, static_cast<uint32_t>(size)};
  entry->code_address = identity.code;
  entry->name_address = identity.texts;
  entry->linetable_address = identity.line_table;
  entry->first_line = identity.first_line;
  entry->filename_size = filename_size;
  entry->name_size = name_size;
  entry->linetable_size = linetable_size;
  return entry;
}

abi::Ref publish_code(char* segment, const CodeIdentity& identity,
                      const abi::CodeEntry* entry) {
  auto offset =
      reinterpret_cast<const char*>(entry) - abi::SegmentView(segment).arena();
  abi::Ref ref = static_cast<abi::Ref>(offset / 16);
  publish(segment, hash_of(identity), ref);
  return ref;
}

abi::Ref intern_entry(char* segment, void* entry, size_t entry_size, const void* tail,
                      size_t tail_size, const ArenaShare* share) {
  constexpr size_t kHead = sizeof(HashedEntry);
  auto* head = static_cast<HashedEntry*>(entry);
  const char* fields = static_cast<const char*>(entry) + kHead;
  abi::EntryKind kind = head->header.kind;
  uint64_t hash =
      hash_of_bytes(fields, entry_size - kHead, static_cast<uint64_t>(kind));
  if (tail_size != 0) {
    hash = hash_of_bytes(static_cast<const char*>(tail), tail_size, hash);
  }
  abi::Ref known = find(segment, hash, [&](const char* at) {
    auto* other = reinterpret_cast<const HashedEntry*>(at);
    return other->header.kind == kind && other->header.size == entry_size + tail_size &&
           same(at + kHead, fields, entry_size - kHead) &&
           (tail_size == 0 || same(at + entry_size, tail, tail_size));
  });
  if (known != 0 && known != kCrowded) return known;
  if (!grants(share, entry_size + tail_size)) return 0;
  abi::Ref ref = known == kCrowded ? 0 : allocate(segment, entry_size + tail_size);
  if (ref == 0) {
    reject(segment);
    return 0;
  }
  head->header.size = static_cast<uint32_t>(entry_size + tail_size);
  head->hash = hash;
  char* at = abi::SegmentView(segment).entry(ref);
  copy(at, entry, entry_size);
  if (tail_size != 0) copy(at + entry_size, tail, tail_size);
  publish(segment, hash, ref);
  return ref;
}

}  // namespace lull
