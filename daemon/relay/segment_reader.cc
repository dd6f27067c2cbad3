#include "daemon/relay/segment_reader.h"

#include <string.h>

#include <algorithm>

namespace lull::relay {

using abi::kRingSlots;

bool SegmentReader::HeaderIsSane() const {
  const abi::SegmentHeader& header = view_.header();
  return header.magic == abi::kSegmentMagic && header.version == abi::kVersion &&
         header.size == abi::kSegmentSize;
}

RingView SegmentReader::Ring(uint32_t ring) const {
  const abi::RingHeader& header = view_.ring(ring);
  RingView copy;
  // Pairs with the writer's release of head.
  copy.head = header.head.load(std::memory_order_acquire);
  copy.lost = header.lost.load(std::memory_order_relaxed);
  copy.self_ns = header.self_ns.load(std::memory_order_relaxed);
  copy.short_waits = header.short_waits.load(std::memory_order_relaxed);
  copy.short_waits_ns = header.short_waits_ns.load(std::memory_order_relaxed);
  copy.thinned_launches = header.thinned_launches.load(std::memory_order_relaxed);
  copy.tid = header.tid.load(std::memory_order_relaxed);
  return copy;
}

uint64_t SegmentReader::Tail(uint32_t ring) const {
  return view_.ring(ring).tail.load(std::memory_order_relaxed);
}

std::optional<uint64_t> SegmentReader::CommittedHead(uint32_t ring,
                                                     uint64_t next) const {
  // Pairs with the writer's release of head in commit_event().
  uint64_t head = view_.ring(ring).head.load(std::memory_order_acquire);
  if (head < next || head - next > kRingSlots) return std::nullopt;
  return head;
}

void SegmentReader::CopyEvents(uint32_t ring, uint64_t from, uint32_t count,
                               abi::Event* out) const {
  count = std::min(count, kRingSlots);
  const abi::Event* slots = view_.slots(ring);
  uint32_t first = static_cast<uint32_t>(from % kRingSlots);
  uint32_t straight = std::min(count, kRingSlots - first);
  memcpy(out, slots + first, straight * sizeof(abi::Event));
  memcpy(out + straight, slots, (count - straight) * sizeof(abi::Event));
}

void SegmentReader::Release(uint32_t ring, uint64_t position) const {
  // Pairs with the writer's acquire of tail in refresh_tail(): our copies of the
  // slots are done before the writer may overwrite them.
  view_.ring(ring).tail.store(position, std::memory_order_release);
}

std::optional<abi::EntryHeader> SegmentReader::Entry(abi::Ref ref, size_t least) const {
  size_t used = std::min<size_t>(
      view_.header().arena_used.load(std::memory_order_acquire), abi::kArenaSize);
  size_t offset = size_t{ref} * 16;
  if (ref == 0 || offset + least > used) return std::nullopt;
  abi::EntryHeader header;
  memcpy(&header, view_.entry(ref), sizeof(header));
  if (header.size < least || header.size > used - offset) return std::nullopt;
  return header;
}

std::optional<RawStack> SegmentReader::Stack(abi::Ref ref) const {
  auto header = Entry(ref, sizeof(abi::StackEntry));
  if (!header) return std::nullopt;
  abi::StackEntry entry;
  memcpy(&entry, view_.entry(ref), sizeof(entry));

  RawStack stack;
  stack.native = header->kind == abi::EntryKind::kNativeStack;
  if (!stack.native && header->kind != abi::EntryKind::kPythonStack)
    return std::nullopt;
  static_assert(abi::kMaxNativeFrames == abi::kMaxPythonFrames);
  stack.truncated = (entry.flags & abi::kStackTruncated) != 0;
  stack.depth = entry.depth;
  static_assert(sizeof(abi::PythonFrame) == sizeof(uint64_t));
  size_t bytes = size_t{entry.depth} * sizeof(uint64_t);
  if (entry.depth > abi::kMaxNativeFrames ||
      bytes > header->size - sizeof(abi::StackEntry)) {
    return std::nullopt;
  }
  memcpy(stack.addresses, view_.entry(ref) + sizeof(abi::StackEntry), bytes);
  return stack;
}

std::optional<RawCode> SegmentReader::Code(abi::Ref ref) const {
  auto header = Entry(ref, sizeof(abi::CodeEntry));
  if (!header || header->kind != abi::EntryKind::kPythonCode) return std::nullopt;
  abi::CodeEntry entry;
  memcpy(&entry, view_.entry(ref), sizeof(entry));
  size_t bytes = size_t{entry.filename_size} + entry.name_size + entry.linetable_size;
  if (bytes > header->size - sizeof(abi::CodeEntry)) return std::nullopt;

  RawCode code;
  const char* text = view_.entry(ref) + sizeof(abi::CodeEntry);
  code.filename.assign(text, entry.filename_size);
  code.name.assign(text + entry.filename_size, entry.name_size);
  code.linetable.assign(text + entry.filename_size + entry.name_size,
                        entry.linetable_size);
  code.first_line = entry.first_line;
  code.python_minor = entry.python_minor;
  return code;
}

}  // namespace lull::relay
