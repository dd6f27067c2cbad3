#include "preload/cupti/self_time.h"

#include <errno.h>

#include "preload/abi/segment.h"
#include "preload/support/clock.h"

namespace lull::cupti {
namespace {

thread_local bool t_in_self_time __attribute__((tls_model("initial-exec"))) = false;

}  // namespace

SelfTime::SelfTime(char* segment)
    : segment_(segment),
      start_ns_(monotonic_ns()),
      outermost_(!t_in_self_time),
      errno_(errno) {
  t_in_self_time = true;
}

SelfTime::~SelfTime() {
  if (outermost_) {
    t_in_self_time = false;
    abi::SegmentView(segment_).header().gpu_self_ns.fetch_add(
        monotonic_ns() - start_ns_, std::memory_order_relaxed);
  }
  errno = errno_;
}

}  // namespace lull::cupti
