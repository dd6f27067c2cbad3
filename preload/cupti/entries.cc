#include "preload/cupti/entries.h"

#include <string.h>

#include "preload/stacks/interning.h"

namespace lull::cupti {
namespace {

uint32_t not_negative(int32_t value) {
  return value < 0 ? 0 : static_cast<uint32_t>(value);
}

bool keeps_shapes(char* segment) {
  return abi::SegmentView(segment).header().arena_used.load(std::memory_order_relaxed) <
         kShapesUpTo;
}

}  // namespace

abi::Ref intern_text(char* segment, const char* text, size_t size) {
  abi::TextEntry entry = {};
  entry.header.kind = abi::EntryKind::kText;
  entry.size = static_cast<uint32_t>(size < kLongestText ? size : kLongestText);
  return intern_entry(segment, &entry, sizeof entry, text, entry.size);
}

abi::Ref intern_kernel(char* segment, const Kernel& record) {
  abi::KernelEntry entry = {};
  entry.header.kind = abi::EntryKind::kKernel;
  entry.name = intern_text(segment, record.name, strnlen(record.name, kLongestText));
  if (keeps_shapes(segment)) {
    for (int i = 0; i < 3; ++i) {
      entry.grid[i] = not_negative(record.grid[i]);
      entry.block[i] = not_negative(record.block[i]);
    }
    entry.registers_per_thread = record.registers_per_thread;
    entry.static_shared_bytes = not_negative(record.static_shared);
    entry.dynamic_shared_bytes = not_negative(record.dynamic_shared);
  }
  return intern_entry(segment, &entry, sizeof entry);
}

abi::Ref intern_stream(char* segment, uint32_t device, uint32_t context,
                       uint32_t stream) {
  abi::GpuStreamEntry entry = {};
  entry.header.kind = abi::EntryKind::kGpuStream;
  entry.device = device;
  entry.context = context;
  entry.stream = stream;
  return intern_entry(segment, &entry, sizeof entry);
}

}  // namespace lull::cupti
