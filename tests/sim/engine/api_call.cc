#include "tests/sim/engine/api_call.h"

#include "tests/sim/engine/clock.h"
#include "tests/sim/engine/engine.h"
#include "tests/sim/engine/observer.h"

namespace lull::sim {
namespace {

ApiEvent event_of(const ApiFrame& frame, int64_t end_ns, int result) {
  const ThreadState& thread = this_thread();
  ApiEvent event{};
  event.name = frame.name;
  event.runtime = (frame.flags & kApiRuntime) != 0;
  event.outermost = frame.outer == 0;
  event.correlation = thread.correlation;
  event.context = thread.context() != nullptr ? thread.context()->id : 0;
  event.start_ns = frame.start_ns;
  event.end_ns = end_ns;
  event.result = result;
  return event;
}

void pay(Charge charge, Engine* engine) {
  if (charge == Charge::kNothing) return;
  int64_t price;
  {
    std::lock_guard lock(engine->mutex());
    const Config& config = engine->config();
    price = charge == Charge::kTraced ? config.cupti_launch_ns : config.cupti_stays_ns;
  }
  spin_until(now_ns() + price);
}

}  // namespace

void begin_api(ApiFrame* frame, const char* name, NameCache* cache, uint16_t flags) {
  *frame = {nullptr, now_ns(), 0, 0, name, flags};
  Engine* engine = Engine::get();
  if (engine == nullptr) return;
  ThreadState& thread = this_thread();
  frame->blocked_before = thread.blocked_ns;
  frame->outer = thread.inner;
  thread.inner = engine->new_id();
  if (thread.depth++ == 0) thread.correlation = thread.inner;
  if (observed()) notify(&Observer::api_begin, event_of(*frame, 0, 0));
  if (!engine->log().enabled()) return;
  uint32_t id = cache->load(std::memory_order_relaxed);
  if (id == 0) cache->store(id = engine->log().name(name), std::memory_order_relaxed);
  TruthRecord record{};
  record.type = static_cast<uint32_t>(RecordType::kApi);
  record.tid = thread.tid;
  record.correlation = thread.inner;
  record.start_ns = frame->start_ns;
  record.name = id;
  record.kind = flags;
  record.sub = static_cast<uint16_t>(thread.depth - 1);
  record.parent = frame->outer;
  frame->record = engine->log().append(record);
}

void end_api(ApiFrame* frame, int result) {
  // The engine may have started, or been lost to a fork, during the call.
  Engine* engine = Engine::get();
  if (engine == nullptr) return;
  ThreadState& thread = this_thread();
  if (thread.depth == 0) return;
  bool watched = observed();
  if (watched && frame->outer == 0) {
    pay(observers_charge(event_of(*frame, 0, result)), engine);
  }
  --thread.depth;
  thread.inner = frame->outer;
  if (watched) notify(&Observer::api_end, event_of(*frame, now_ns(), result));
  if (frame->record != nullptr) {
    frame->record->extra = thread.blocked_ns - frame->blocked_before;
    frame->record->aux = static_cast<uint32_t>(result);
    // To the program the call ends when CUPTI is done with it, too.
    __atomic_store_n(&frame->record->end_ns, now_ns(), __ATOMIC_RELEASE);
  }
}

void ApiCall::compute(int64_t ns) const { spin_until(frame_.start_ns + ns); }
void ApiCall::sleep(int64_t ns) const { sleep_until(frame_.start_ns + ns); }

}  // namespace lull::sim
