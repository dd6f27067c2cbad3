#include "tests/sim/cupti/api.h"

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>

#include "tests/sim/cupti/settings.h"

namespace lull::sim::cupti {
namespace {

thread_local int t_last_error = kSuccess;

enum class Generation { kNone, kV1, kV2 };
std::atomic<Generation> g_generation{Generation::kNone};

int use(Generation wanted) {
  constexpr uint32_t kHasV2 = 130300;
  if (settings().version < kHasV2) return kSuccess;
  Generation before = Generation::kNone;
  if (g_generation.compare_exchange_strong(before, wanted) || before == wanted) {
    return kSuccess;
  }
  return finish(kErrorMultipleSubscribers);
}

}  // namespace

int enter(const char* function) {
  if (settings().failures.empty()) return kSuccess;
  static std::mutex mutex;
  static std::map<std::string, int64_t> calls;
  std::lock_guard lock(mutex);
  int64_t call = ++calls[function];
  for (const Failure& failure : settings().failures) {
    if (failure.function != function) continue;
    if (failure.call == 0 || failure.call == call) return finish(failure.result);
  }
  return kSuccess;
}

int finish(int result) {
  if (result != kSuccess) t_last_error = result;
  return result;
}

int take_last_error() {
  int error = t_last_error;
  t_last_error = kSuccess;
  return error;
}

int use_v1() { return use(Generation::kV1); }
int use_v2() { return use(Generation::kV2); }

}  // namespace lull::sim::cupti
