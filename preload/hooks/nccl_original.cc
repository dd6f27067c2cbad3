#include "preload/hooks/nccl_original.h"

#include "preload/hooks/record.h"
#include "preload/support/libdl.h"
#include "preload/support/own_code.h"
#include "preload/support/pins.h"
#include "preload/support/symbols.h"

namespace lull {

NcclPlaces g_nccl_places[size_t(NcclIndex::kCount)];

namespace {

NcclBound g_bound[128];
std::atomic<uint32_t> g_bound_count;

void remember(NcclIndex index, const void* caller, void* original) {
  for (auto& place : g_nccl_places[size_t(index)]) {
    if (place.load(std::memory_order_relaxed) != nullptr) continue;
    uint32_t next = g_bound_count.fetch_add(1, std::memory_order_relaxed);
    if (next >= std::size(g_bound)) {
      g_bound_count.store(std::size(g_bound), std::memory_order_relaxed);
      return;
    }
    g_bound[next] = {caller, original};
    const NcclBound* expected = nullptr;
    if (place.compare_exchange_strong(expected, &g_bound[next],
                                      std::memory_order_acq_rel)) {
      return;
    }
  }
}

// What the caller's own object sees.
void* find_for(const void* caller, const char* name) {
  libdl::Dlsym real = libdl::real_dlsym();
  const link_map* object = libdl::object_of(caller);
  if (real == nullptr || object == nullptr || object->l_name == nullptr) return nullptr;
  void* handle = libdl::open(object->l_name, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  void* found = real(handle, name);
  if (found == nullptr) libdl::error();  // nobody is to find our message
  libdl::close(handle);
  if (found == nullptr || is_our_code(found)) return nullptr;
  pin_later(found);
  return found;
}

}  // namespace

void* find_nccl_original(const char* name, NcclIndex index, const void* caller) {
  ErrnoKeeper keeper;
  if (!libdl::available()) return nullptr;
  Original& slot = g_nccl_originals[size_t(index)];
  void* found = next_function(name, nullptr);
  if (found != nullptr) pin_later(found);
  if (found == nullptr) found = find_for(caller, name);
  // A caller that has a pointer from dlsym (ctypes): the slot has what that gave.
  if (found == nullptr) found = slot.load(std::memory_order_acquire);
  if (found == nullptr) found = resolve_original(Library::kNccl, name, slot);
  if (found != nullptr) remember(index, caller, found);
  return found;
}

}  // namespace lull
