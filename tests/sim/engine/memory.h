// Which address is what: device memory, pinned or managed host memory. Device
// memory is backed by ordinary pages (reserved, touched when used), so that
// copies move real bytes. The caller holds the engine's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace lull::sim {

enum class MemoryKind : uint8_t {
  kPageable,  // not known to the device
  kDevice,
  kPinned,      // allocated by the driver
  kRegistered,  // the program's own, pinned later
  kManaged,
};

struct Block {
  uintptr_t base = 0;
  size_t size = 0;
  MemoryKind kind = MemoryKind::kPageable;
  uint32_t device = 0;
  uint64_t context = 0;
  bool pool = false;    // from cudaMallocAsync: freeing never synchronises
  bool mapped = false;  // part of a reserved range (cuMemMap)
  bool on_host() const {
    return kind != MemoryKind::kDevice && kind != MemoryKind::kManaged;
  }
};

class MemoryMap {
 public:
  // New pages for `block.size` bytes; 0 if there are none.
  uintptr_t allocate(Block block);
  // Registers memory that exists already. False if it overlaps a known block.
  bool adopt(const Block& block);
  // The block that holds `address`, or null.
  const Block* find(uintptr_t address) const;
  // Forgets the block that starts at `base`, and gives its pages back unless
  // they belong to someone else. False if no block starts there.
  bool release(uintptr_t base);

  int64_t device_bytes(uint32_t device) const;

 private:
  std::map<uintptr_t, Block> blocks_;
  std::map<uint32_t, int64_t> device_bytes_;
};

}  // namespace lull::sim
