#include "tests/sim/control.h"

#include <algorithm>
#include <iterator>
#include <vector>

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

SIM_EXPORT int lull_sim_add_observer(const Observer* observer) {
  return add_observer(observer) ? 1 : 0;
}

SIM_EXPORT void lull_sim_remove_observer(const Observer* observer) {
  remove_observer(observer);
}

SIM_EXPORT void lull_sim_next_exchange(const Exchange* exchange) {
  this_thread().next_exchange = exchange;
}

SIM_EXPORT void lull_sim_exchanged(uint64_t kernel, const Exchanged* exchanged) {
  Engine* engine = Engine::get();
  if (engine != nullptr) engine->finish_exchange(kernel, *exchanged);
}

SIM_EXPORT void lull_sim_end_exchanges(const void* member) {
  Engine* engine = Engine::get();
  if (engine != nullptr) engine->end_exchanges(member);
}

SIM_EXPORT int64_t lull_sim_nccl_timeout_ns(void) {
  Engine* engine = Engine::get();
  if (engine == nullptr) return Config{}.nccl_timeout_ns;
  Lock lock(engine->mutex());
  return engine->config().nccl_timeout_ns;
}

SIM_EXPORT int64_t lull_sim_clock_step_ns(void) {
  Engine* engine = Engine::get();
  if (engine == nullptr) return 0;
  Lock lock(engine->mutex());
  return engine->config().cupti_clock_step_ns;
}

SIM_EXPORT int64_t lull_sim_stays_ns(void) {
  Engine* engine = Engine::get();
  if (engine == nullptr) return 0;
  Lock lock(engine->mutex());
  return engine->config().cupti_stays_ns;
}

SIM_EXPORT uint64_t lull_sim_newest_id(void) {
  Engine* engine = Engine::get();
  return engine == nullptr ? 0 : engine->newest_id();
}

SIM_EXPORT void lull_sim_wait_for_devices(void) {
  Engine* engine = Engine::get();
  if (engine == nullptr) return;
  std::vector<OpPtr> all;
  {
    Lock lock(engine->mutex());
    engine->contexts.for_each([&](const Context& context) {
      std::ranges::copy(engine->unfinished(context), std::back_inserter(all));
    });
  }
  engine->wait(all);
}

SIM_EXPORT int lull_sim_observed(void) { return observed() ? 1 : 0; }

SIM_EXPORT int lull_sim_device_count(void) {
  Engine* engine = Engine::get();
  return engine == nullptr ? 0 : static_cast<int>(engine->config().devices);
}

SIM_EXPORT int lull_sim_context_id(const void* handle, uint32_t* id, uint32_t* device) {
  Engine* engine = Engine::get();
  if (engine == nullptr) return 0;
  if (handle == nullptr) handle = this_thread().context();
  Lock lock(engine->mutex());
  auto context = engine->contexts.find(handle);
  if (context == nullptr) return 0;
  *id = static_cast<uint32_t>(context->id);
  *device = context->device;
  return 1;
}

SIM_EXPORT int lull_sim_stream_id(const void* context, const void* stream,
                                  int per_thread, uint32_t* id) {
  Engine* engine = Engine::get();
  if (engine == nullptr) return 0;
  Lock lock(engine->mutex());
  auto owner = engine->contexts.find(context);
  auto found = engine->stream(
      stream, per_thread != 0 ? DefaultStream::kPerThread : DefaultStream::kLegacy);
  if (owner != nullptr && (stream == nullptr || found == nullptr)) {
    // The default stream of a context that need not be current.
    auto mine = owner->per_thread.find(this_thread().tid);
    bool own = per_thread != 0 && mine != owner->per_thread.end();
    found = own ? mine->second : per_thread != 0 ? found : owner->legacy;
  }
  if (found == nullptr) return 0;
  *id = static_cast<uint32_t>(found->id);
  return 1;
}

SIM_EXPORT int lull_sim_context_at(int index, uint32_t* id, uint32_t* device) {
  Engine* engine = Engine::get();
  if (engine == nullptr) return 0;
  Lock lock(engine->mutex());
  std::vector<const Context*> all;
  engine->contexts.for_each([&](const Context& context) { all.push_back(&context); });
  std::ranges::sort(all, {}, &Context::id);
  if (index < 0 || static_cast<size_t>(index) >= all.size()) return 0;
  *id = static_cast<uint32_t>(all[index]->id);
  *device = all[index]->device;
  return 1;
}
