#include "tests/sim/engine/memory.h"

#include <sys/mman.h>

namespace lull::sim {

uintptr_t MemoryMap::allocate(Block block) {
  void* pages = mmap(nullptr, block.size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return 0;
  block.base = reinterpret_cast<uintptr_t>(pages);
  adopt(block);
  return block.base;
}

bool MemoryMap::adopt(const Block& block) {
  auto next = blocks_.lower_bound(block.base);
  if (next != blocks_.end() && next->first < block.base + block.size) return false;
  if (find(block.base) != nullptr) return false;
  blocks_[block.base] = block;
  if (block.kind == MemoryKind::kDevice) {
    device_bytes_[block.device] += static_cast<int64_t>(block.size);
  }
  return true;
}

const Block* MemoryMap::find(uintptr_t address) const {
  auto next = blocks_.upper_bound(address);
  if (next == blocks_.begin()) return nullptr;
  const Block& block = std::prev(next)->second;
  return address < block.base + block.size ? &block : nullptr;
}

bool MemoryMap::release(uintptr_t base) {
  auto it = blocks_.find(base);
  if (it == blocks_.end()) return false;
  const Block& block = it->second;
  if (block.kind == MemoryKind::kDevice) {
    device_bytes_[block.device] -= static_cast<int64_t>(block.size);
  }
  if (block.kind != MemoryKind::kRegistered && !block.mapped) {
    munmap(reinterpret_cast<void*>(base), block.size);
  }
  blocks_.erase(it);
  return true;
}

int64_t MemoryMap::device_bytes(uint32_t device) const {
  auto it = device_bytes_.find(device);
  return it == device_bytes_.end() ? 0 : it->second;
}

}  // namespace lull::sim
