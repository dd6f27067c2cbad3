// What PyTorch hands each RecordFunction: the functions to call at its start and its
// end.
//
// at::StepCallbacks (ATen/record_function.h) is a c10::SmallVector of pairs, the number
// of the thread, the scope and three flags. Nothing here is believed of its layout that
// the object itself does not say: its first pair lies within it, the thread is the one
// that asks, the scope the one that was asked for. So it is in 1.13 and in 2.6, with
// which it was tried.
#pragma once

#include <cstdint>

namespace lull {

struct StepPair {
  const void* start;
  const void* end;
};

// The pairs of one at::StepCallbacks, at the address where it was made. An object of
// another form has none, and takes none.
class StepPairs {
 public:
  // thread: at::RecordFunction::currentThreadId() of the caller. scope:
  // at::RecordScope.
  StepPairs(void* object, uint64_t thread, uint8_t scope);

  bool are_understood() const { return capacity_ != 0; }
  bool have(const StepPair& pair) const;
  // False: no room, or not understood.
  bool add(const StepPair& pair);

 private:
  char* object_;
  uint32_t capacity_;  // 0: another form
};

}  // namespace lull
