// One thread of a trace in the order of time: what it is in, and for how long it stayed
// in each. Frames and operators nest. Annotations have a sweep of their own: one begins
// within the frame that begins it, and outlives that.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "daemon/import/record.h"

namespace lull::imports {

// Stacks at an instant; nodes of EventWriter's tables.
struct Whereabouts {
  uint32_t python = 0;     // frames; without any, the call stack of the operator
  uint32_t operators = 0;  // innermost first
  uint32_t backward = 0;   // of an operator of the backward pass (backward_stacks.h)
  uint32_t doing = 0;      // frames and operators as they nest
  uint32_t regions = 0;    // annotations
  uint32_t depth = 0;      // of these
  // What an event is told with.
  uint32_t stack() const { return python != 0 ? python : backward; }
  bool frames = false;   // Python's frames are told
  bool loading = false;  // within a DataLoader's __next__
};

class ThreadSweep {
 public:
  // Told when it has ended: an annotation, and what Enter() was given with it.
  using OnAnnotation = absl::FunctionRef<void(const Record&, const Whereabouts&)>;
  // The thread was in one place for [start_ns, end_ns).
  using OnStay =
      absl::FunctionRef<void(uint32_t doing, uint64_t start_ns, uint64_t end_ns)>;

  // A stretch of the thread; they come in RecordOrder. One that reaches beyond the one
  // around it ends with that.
  void Enter(const Record& record, const Whereabouts& inside);
  // Leaves what ended by `time_ns`.
  void LeaveUntil(uint64_t time_ns, OnAnnotation on_annotation, OnStay on_stay);
  // Tells where it stayed up to `time_ns`, and counts anew from there.
  void TellStay(uint64_t time_ns, OnStay on_stay);

  const Whereabouts& now() const { return now_; }
  bool begun() const { return begun_; }

 private:
  struct Open {
    Record record;
    Whereabouts before;
  };
  std::vector<Open> open_;
  Whereabouts now_;
  uint64_t since_ns_ = 0;
  bool begun_ = false;
};

}  // namespace lull::imports
