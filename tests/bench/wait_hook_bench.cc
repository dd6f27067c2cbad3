// What a host-wait hook adds to a call that does not wait: sem_wait on a semaphore
// that is free, through the hook and past it, in one run. The hook and its
// originals are linked into this program.
#include <semaphore.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "preload/hooks/wait_originals.h"
#include "preload/hooks/wait_recorder.h"
#include "tests/preload/support/test_segment.h"

namespace lull {
namespace {

constexpr int kCalls = 200'000;
constexpr int kRounds = 51;

using SemWait = int (*)(sem_t*);

double ns_per_call(SemWait function) {
  sem_t semaphore;
  sem_init(&semaphore, 0, kCalls);
  asm volatile("" : "+r"(function));  // a call like any through a PLT
  uint64_t start = monotonic_ns();
  for (int i = 0; i < kCalls; ++i) function(&semaphore);
  double ns = static_cast<double>(monotonic_ns() - start) / kCalls;
  sem_destroy(&semaphore);
  return ns;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

SemWait original() { return g_wait_originals.sem_wait.load(std::memory_order_relaxed); }

// The least that any timing of a call costs.
int clocked_sem_wait(sem_t* semaphore) {
  volatile uint64_t duration;
  uint64_t start = monotonic_ns();
  int result = original()(semaphore);
  duration = monotonic_ns() - start;
  (void)duration;
  return result;
}

void report(const char* what, SemWait base) {
  std::vector<double> direct, hooked, added;
  for (int i = 0; i < kRounds; ++i) {
    direct.push_back(ns_per_call(base));
    hooked.push_back(ns_per_call(sem_wait));
    added.push_back(hooked.back() - direct.back());
  }
  std::printf("%-26s %6.1f ns base, %6.1f ns hooked, %+6.1f ns, ratio %.2f\n", what,
              median(direct), median(hooked), median(added),
              median(hooked) / median(direct));
}

}  // namespace
}  // namespace lull

int main() {
  lull::resolve_wait_originals();
  lull::report("inert process", lull::original());
  lull::TestSegment segment;
  lull::take_ring(segment.base());
  lull::report("recording, not watched", lull::original());
  lull::t_thread.watched = 1;
  lull::report("recording, watched", lull::original());
  lull::report("  beyond two clock reads", lull::clocked_sem_wait);
}
