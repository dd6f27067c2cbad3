// When Python's collections really began and ended: a C function for gc.callbacks,
// which stands right before lull's, and right behind it, and takes as little time. One
// of Python takes microseconds.
#include <time.h>

#include <cstdint>

extern "C" {

using PyObject = struct _object;
void Py_IncRef(PyObject* object);  // of the interpreter that loads this

// CLOCK_MONOTONIC: start, before lull and behind it, and end of each, in turn.
constexpr uint64_t kMoments = 1 << 18;
int64_t lull_collection_moments_ns[kMoments];
uint64_t lull_collection_moments = 0;  // under the GIL

PyObject* lull_note_collection(PyObject*, PyObject* arguments) {
  timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  if (lull_collection_moments < kMoments) {
    lull_collection_moments_ns[lull_collection_moments++] =
        int64_t{ts.tv_sec} * 1'000'000'000 + ts.tv_nsec;
  }
  Py_IncRef(arguments);
  return arguments;  // gc drops it
}
}
