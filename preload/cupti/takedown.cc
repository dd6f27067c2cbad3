#include "preload/cupti/takedown.h"

#include "preload/cupti/devices.h"
#include "preload/support/libdl.h"

namespace lull::cupti {
namespace {

// Never called: nothing is enabled for it.
void no_callback(void*, int, uint32_t, const void*) {}

bool nobody_subscribes(const Api& api) {
  void* subscriber = nullptr;
  if (api.subscribe(&subscriber, reinterpret_cast<void*>(no_callback), nullptr) !=
      kSuccess) {
    return false;
  }
  return api.unsubscribe(subscriber) == kSuccess;
}

}  // namespace

void Takedown::plan(bool quiet, const Api& api, const abi::ControlBlock& control) {
  const bool is_asked_for = control.gpu_finalize.load(std::memory_order_relaxed) != 0;
  const bool can = api.version >= kOldestToFinalize && api.finalize != nullptr &&
                   api.subscribe != nullptr && api.unsubscribe != nullptr;
  // Who came by `lull attach` may have missed other users.
  const bool alone = alone_.load(std::memory_order_relaxed) && !libdl::loaded_late();
  due_.store(quiet && left_ && is_asked_for && can && alone, std::memory_order_relaxed);
}

bool Takedown::run(const Api& api, Result* result) {
  CaptureTolerated captures_stay_valid;
  left_ = false;
  due_.store(false, std::memory_order_relaxed);
  if (!nobody_subscribes(api)) return false;
  *result = api.finalize();
  return true;
}

}  // namespace lull::cupti
