// Taking CUPTI down after a window, so that nothing of it stays in the program's calls:
// on CUPTI 13.0 a launch costs 4 us more for the rest of the process's life otherwise
// (docs/gpu_results.md). Only if the relay asks for it.
//
// cuptiFinalize() concerns the whole process, and waits for all that the devices have
// to do. What that needs may be kept back by the very thread that calls: a lock that a
// function on the host wants, a flag that a kernel waits for, a collective that another
// rank begins later. So it is called
//   * right after a call of the program that has waited for all devices: another stream
//     may have something to do else, and may have it for ever;
//   * without the GIL: host functions that the device waits for may want it;
//   * only where nobody else in the process uses CUPTI, or ever has as far as we have
//     seen. A subscriber whom we did not see lets nobody else subscribe;
//   * once every buffer is back, and what CUPTI still had, too: it would be lost.
// The next window registers and enables everything anew.
#pragma once

#include <atomic>

#include "preload/abi/segment.h"
#include "preload/cupti/types.h"

namespace lull::cupti {

class Takedown {
 public:
  // Under the tracer's lock.
  void traced() { left_ = true; }
  // `quiet`: nothing is traced, nothing is to be collected, every buffer is back.
  // Afterwards due() says whether the next sync is the occasion.
  void plan(bool quiet, const Api& api, const abi::ControlBlock& control);
  // False: somebody else is in the way; then it is not tried again before the next
  // window. Else *result is CUPTI's answer.
  bool run(const Api& api, Result* result);

  // Any thread.
  void met_another_user() { alone_.store(false, std::memory_order_relaxed); }
  // Somebody may have come since it was planned.
  bool due() const {
    return due_.load(std::memory_order_relaxed) &&
           alone_.load(std::memory_order_relaxed);
  }

 private:
  bool left_ = false;  // there was a window since CUPTI was taken down last
  std::atomic<bool> alone_{true};
  std::atomic<bool> due_{false};
};

}  // namespace lull::cupti
