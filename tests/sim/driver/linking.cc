// The driver's linker, and what is asked about code. Code is not read here, so linking
// hands back the first image that came in.
#include <string>

#include "tests/sim/driver/api.h"
#include "tests/sim/driver/device.h"

using namespace lull::sim;

SIM_EXPORT int cuLinkCreate_v2(unsigned, void*, void*, void** state) {
  SIM_CALL();
  if (state == nullptr) return call.done(kInvalidValue);
  Lock lock(engine->mutex());
  *state = engine->linkings.add(std::make_shared<Linking>());
  return call.done(kOk);
}

SIM_EXPORT int cuLinkAddData_v2(void* state, int, void* data, size_t size, const char*,
                                unsigned, void*, void*) {
  SIM_CALL();
  Lock lock(engine->mutex());
  auto linking = engine->linkings.find(state);
  if (linking == nullptr) return call.done(kInvalidHandle);
  if (data == nullptr) return call.done(kInvalidValue);
  if (linking->image.empty()) linking->image.assign(static_cast<char*>(data), size);
  return call.done(kOk);
}

SIM_EXPORT int cuLinkAddFile_v2(void* state, int, const char* path, unsigned, void*,
                                void*) {
  SIM_CALL();
  Lock lock(engine->mutex());
  auto linking = engine->linkings.find(state);
  if (linking == nullptr) return call.done(kInvalidHandle);
  if (path == nullptr) return call.done(kInvalidValue);
  if (linking->image.empty()) linking->image = path;
  return call.done(kOk);
}

SIM_EXPORT int cuLinkComplete(void* state, void** image, size_t* size) {
  SIM_CALL();
  Lock lock(engine->mutex());
  auto linking = engine->linkings.find(state);
  if (linking == nullptr) return call.done(kInvalidHandle);
  if (image == nullptr) return call.done(kInvalidValue);
  *image = linking->image.data();
  if (size != nullptr) *size = linking->image.size();
  return call.done(kOk);
}

SIM_EXPORT int cuLinkDestroy(void* state) {
  SIM_CALL();
  Lock lock(engine->mutex());
  return call.done(engine->linkings.remove(state) ? kOk : kInvalidHandle);
}

// A module has every function, and no variable.
SIM_EXPORT int cuModuleGetGlobal_v2(DevicePtr*, size_t*, void* module,
                                    const char* name) {
  SIM_CALL();
  Lock lock(engine->mutex());
  if (engine->modules.find(module) == nullptr) return call.done(kInvalidHandle);
  return call.done(name == nullptr ? kInvalidValue : kNotFound);
}

SIM_EXPORT int cuOccupancyMaxPotentialBlockSize(int* grid, int* block, void*,
                                                size_t (*shared_of)(int), size_t shared,
                                                int limit) {
  SIM_CALL();
  if (grid == nullptr || block == nullptr) return call.done(kInvalidValue);
  *block = limit > 0 && limit < kThreadsPerBlock ? limit : kThreadsPerBlock;
  if (shared_of != nullptr) shared = shared_of(*block);
  *grid = kMultiprocessors * blocks_per_multiprocessor(*block, shared);
  return call.done(kOk);
}
