#include "preload/support/pins.h"

#include <atomic>
#include <cstdint>

#include "preload/hooks/record.h"
#include "preload/support/libdl.h"
#include "preload/support/loaded_object.h"

namespace lull {
namespace {

constexpr int kMost = 64;

// An object by where its code begins. 0: the place is free.
struct Pin {
  std::atomic<uintptr_t> begin;
  std::atomic<bool> done;
};
Pin g_pins[kMost];

// The loader has begun to run destructors, and would run the constructors of an object
// that is opened after its own once more. Ours comes before those of the libraries that
// we point into: a preloaded library stands before them in the loader's list, and none
// needs another. A destructor and no atexit(), which takes a lock and allocates.
std::atomic<bool> g_ending{false};
__attribute__((destructor)) void note_end() {
  g_ending.store(true, std::memory_order_relaxed);
}

// Never loads anything.
bool pin(uintptr_t address) {
  const link_map* object = libdl::object_of(reinterpret_cast<const void*>(address));
  if (object == nullptr || object->l_name == nullptr || *object->l_name == '\0') {
    return true;  // the program itself stays
  }
  void* handle = libdl::open(object->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  if (handle == nullptr) return false;
  libdl::close(handle);
  return true;
}

}  // namespace

void pin_later(const void* address) {
  LoadedObject object;
  if (!find_object(address, &object)) return;
  for (Pin& place : g_pins) {
    uintptr_t begin = place.begin.load(std::memory_order_acquire);
    if (begin == 0 && place.begin.compare_exchange_strong(begin, object.text_begin)) {
      return;
    }
    if (begin == object.text_begin) return;
  }
}

void pin_now() {
  if (g_ending.load(std::memory_order_relaxed)) return;
  ErrnoKeeper keep_errno;
  for (Pin& place : g_pins) {
    uintptr_t begin = place.begin.load(std::memory_order_acquire);
    if (begin == 0) return;
    if (place.done.load(std::memory_order_relaxed) || !libdl::available()) continue;
    if (pin(begin)) place.done.store(true, std::memory_order_relaxed);
  }
}

}  // namespace lull
