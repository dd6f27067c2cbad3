#include "tests/sim/control.h"

#include "tests/sim/driver/api.h"

using namespace lull::sim;

SIM_EXPORT int lull_sim_set(const char* key, const char* value) {
  if (Engine::start() != kOk) return 0;
  Engine* engine = Engine::get();
  Lock lock(engine->mutex());
  return engine->config().set(key, value) ? 1 : 0;
}

SIM_EXPORT int lull_sim_start(void) {
  int error = Engine::start();
  if (error == kOk && Engine::get()->config().devices < 1) error = kNoDevice;
  return error;
}

SIM_EXPORT void lull_sim_next_kernel_ns(int64_t ns) {
  this_thread().next_kernel_ns = ns;
}

SIM_EXPORT void lull_sim_next_kernel_work(double flops, double bytes, int tensor) {
  Engine* engine = Engine::get();
  if (engine == nullptr) return;
  Lock lock(engine->mutex());
  this_thread().next_kernel_work_ns =
      engine->config().work_duration(flops, bytes, tensor != 0);
}

SIM_EXPORT int64_t lull_sim_blocked_ns(void) { return this_thread().blocked_ns; }

SIM_EXPORT int64_t lull_sim_device_bytes(int device) {
  Engine* engine = Engine::get();
  if (engine == nullptr) return 0;
  Lock lock(engine->mutex());
  return engine->memory.device_bytes(static_cast<uint32_t>(device));
}

SIM_EXPORT void lull_sim_begin_api(ApiFrame* frame, const char* name,
                                   NameCache* cache) {
  begin_api(frame, name, cache, kApiRuntime);
}

SIM_EXPORT void lull_sim_end_api(ApiFrame* frame, int result) {
  end_api(frame, result);
}
