#include "daemon/relay/read/segment_reader.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "daemon/base/text.h"

namespace lull::relay {

using abi::kChunkEvents;

uint64_t Total(const std::atomic<uint64_t>& counter) {
  return std::min(counter.load(std::memory_order_relaxed), kMaxWireTotal);
}

uint64_t CreatedNs(int memfd) {
  uint64_t created_ns = 0;
  constexpr auto kAt = static_cast<off_t>(offsetof(abi::SegmentHeader, created_ns));
  if (pread(memfd, &created_ns, sizeof created_ns, kAt) != sizeof created_ns) {
    return UINT64_MAX;
  }
  return created_ns;
}

uint64_t SegmentReader::GpuCalls() const {
  return std::min(view_.gpu_calls(), kMaxWireTotal);
}

bool SegmentReader::HeaderIsSane() const {
  const abi::SegmentHeader& header = view_.header();
  return header.magic == abi::kSegmentMagic && header.version == abi::kVersion &&
         header.size == abi::kSegmentSize;
}

uint32_t SegmentReader::RingsUsed() const {
  return std::min(view_.header().rings_used.load(std::memory_order_relaxed),
                  abi::kMaxRings);
}

uint64_t SegmentReader::Head(uint32_t ring) const {
  // Pairs with the writer's release of head.
  return view_.ring(ring).head.load(std::memory_order_acquire);
}

RingView SegmentReader::Ring(uint32_t ring) const {
  const abi::RingHeader& header = view_.ring(ring);
  RingView copy;
  copy.head = Head(ring);
  copy.oldest = header.oldest.load(std::memory_order_relaxed);
  copy.lost = Total(header.lost);
  copy.self_ns = Total(header.self_ns);
  copy.short_waits = Total(header.short_waits);
  copy.short_waits_ns = Total(header.short_waits_ns);
  copy.thinned_launches = Total(header.thinned_launches);
  return copy;
}

uint64_t SegmentReader::Tail(uint32_t ring) const {
  return view_.ring(ring).tail.load(std::memory_order_relaxed);
}

abi::OwnerWord SegmentReader::Owner(uint32_t ring) const {
  return view_.owner(ring).load(std::memory_order_acquire);
}

bool SegmentReader::FreeRing(uint32_t ring, abi::OwnerWord owner) const {
  // Pairs with the acquire in claim_ring(): the next owner goes on from our head.
  return view_.owner(ring).compare_exchange_strong(owner, abi::kFreeRing,
                                                   std::memory_order_release);
}

std::optional<PythonOfRing> SegmentReader::Python(uint32_t ring) const {
  const abi::RingHeader& header = view_.ring(ring);
  PythonOfRing python;
  python.owner = Owner(ring);
  // Pairs with the release in preload/ring/writer.cc.
  python.state = header.python_state.load(std::memory_order_acquire);
  python.thread = header.python_thread.load(std::memory_order_acquire);
  if (python.owner == abi::kFreeRing || Owner(ring) != python.owner) {
    return std::nullopt;
  }
  return python;
}

std::optional<FrameLayout> SegmentReader::PythonFrames() const {
  // Pairs with the release in preload/stacks/python_layout.cc.
  const uint64_t code_type =
      view_.header().python_code_type.load(std::memory_order_acquire);
  abi::PythonLayout layout;
  memcpy(&layout, &view_.header().python_layout, sizeof(layout));
  return FrameLayout::Of(layout, code_type);
}

std::optional<uint64_t> SegmentReader::CommittedHead(uint32_t ring,
                                                     uint64_t next) const {
  // Pairs with the writer's release of head in commit_event().
  uint64_t head = view_.ring(ring).head.load(std::memory_order_acquire);
  if (head < next || head - next > abi::kRingEvents || head > kMaxWireTotal) {
    return std::nullopt;
  }
  return head;
}

bool SegmentReader::CopyEvents(uint32_t ring, uint64_t from, uint32_t count,
                               abi::Event* out) const {
  while (count > 0) {
    uint64_t number = from / kChunkEvents;
    uint32_t first = static_cast<uint32_t>(from % kChunkEvents);
    abi::ChunkId id =
        view_.table(ring)[number % abi::kRingChunks].load(std::memory_order_relaxed);
    if (id >= abi::kPoolChunks) return false;
    uint32_t here = std::min(count, kChunkEvents - first);
    memcpy(out, view_.chunk(id) + first, here * sizeof(abi::Event));
    out += here;
    from += here;
    count -= here;
  }
  return true;
}

void SegmentReader::Release(uint32_t ring, uint64_t position) const {
  // Pairs with the writer's acquire of tail in open_chunk(): our copies of the slots
  // are done before the writer may overwrite them.
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
  stack.scopes = header->kind == abi::EntryKind::kScopeStack;
  if (!stack.native && !stack.scopes && header->kind != abi::EntryKind::kPythonStack) {
    return std::nullopt;
  }
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
  if (entry.linetable_left_out == 0) {
    code.linetable.emplace(text + entry.filename_size + entry.name_size,
                           entry.linetable_size);
  }
  code.first_line = entry.first_line;
  code.python_minor = entry.python_minor;
  return code;
}

template <typename T>
std::optional<T> SegmentReader::Fixed(abi::Ref ref, abi::EntryKind kind) const {
  auto header = Entry(ref, sizeof(T));
  if (!header || header->kind != kind) return std::nullopt;
  T entry;
  memcpy(&entry, view_.entry(ref), sizeof(entry));
  return entry;
}

std::optional<std::string> SegmentReader::Text(abi::Ref ref) const {
  auto header = Entry(ref, sizeof(abi::TextEntry));
  if (!header || header->kind != abi::EntryKind::kText) return std::nullopt;
  abi::TextEntry entry;
  memcpy(&entry, view_.entry(ref), sizeof(entry));
  if (entry.size > header->size - sizeof(abi::TextEntry)) return std::nullopt;
  return std::string(view_.entry(ref) + sizeof(abi::TextEntry),
                     std::min<size_t>(entry.size, kMaxText));
}

std::optional<abi::BackwardEntry> SegmentReader::Backward(abi::Ref ref) const {
  return Fixed<abi::BackwardEntry>(ref, abi::EntryKind::kBackward);
}

bool SegmentReader::IsBackward(abi::Ref ref) const {
  auto header = Entry(ref, sizeof(abi::EntryHeader));
  return header && header->kind == abi::EntryKind::kBackward;
}

std::optional<abi::KernelEntry> SegmentReader::Kernel(abi::Ref ref) const {
  return Fixed<abi::KernelEntry>(ref, abi::EntryKind::kKernel);
}

std::optional<abi::GpuStreamEntry> SegmentReader::GpuStream(abi::Ref ref) const {
  return Fixed<abi::GpuStreamEntry>(ref, abi::EntryKind::kGpuStream);
}

std::optional<abi::GpuDeviceEntry> SegmentReader::GpuDevice(abi::Ref ref) const {
  return Fixed<abi::GpuDeviceEntry>(ref, abi::EntryKind::kGpuDevice);
}

}  // namespace lull::relay
