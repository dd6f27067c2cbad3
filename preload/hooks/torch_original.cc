#include "preload/hooks/torch_original.h"

#include "preload/hooks/record.h"
#include "preload/support/libdl.h"
#include "preload/support/own_code.h"
#include "preload/support/symbols.h"

namespace lull {

void* find_torch_original(const char* name, const void* caller, TorchOriginal& slot) {
  ErrnoKeeper keep_errno;
  libdl::Dlsym real = libdl::real_dlsym();
  if (real == nullptr) return nullptr;
  void* found = next_function(name, nullptr);
  if (found == nullptr) {
    const link_map* object = libdl::object_of(caller);
    if (object == nullptr || object->l_name == nullptr) return nullptr;
    void* handle = libdl::open(object->l_name, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) return nullptr;
    found = real(handle, name);
    libdl::close(handle);
  }
  // Called by ourselves only if something looked our function up and called it.
  if (found == nullptr || is_our_code(found)) return nullptr;
  slot.store(found, std::memory_order_release);
  return found;
}

}  // namespace lull
