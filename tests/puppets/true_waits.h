// When a wait of the calling thread really began and ended, whatever is preloaded.
//
// libtrue_waits.so lies between liblull.so and libc: it is what lull's hooks call. So
// the time that a hook takes afterwards is the program's, not the wait's.
#pragma once

#include <cstdint>

struct TrueWait {
  int64_t start_ns;  // CLOCK_MONOTONIC
  int64_t end_ns;
};

// Of the last nanosleep(), clock_nanosleep() or sem_timedwait().
extern "C" TrueWait last_true_wait();
