// From loading to recording: the decisions behind state.h.
#pragma once

#include "preload/entry/settings.h"
#include "preload/entry/state.h"

namespace lull {

// What is known of a process when somebody asks it to record.
struct Circumstances {
  bool loaded_here;  // no fork child
  ProcessKind kind;
  bool data_worker;  // runs torch's DataLoader worker loop
  bool workers_wanted;
};

// Pure. Python alone is reason enough only in a process of its own that is no
// launcher or helper; a tensor in any but a DataLoader worker; the GPU always.
bool is_reason_to_record(Trigger trigger, const Circumstances& now);

// Once, when the library is loaded and settings() is filled: makes the state page,
// watches for fork, and starts to record at once where Python is reason enough.
// Settings that were not filled are disabled ones: the process is inert for good.
void initialize();

// `lull attach`: like initialize(), for a library that came in late, and again after
// each detach. settings() is filled. Does not start to record yet.
bool initialize_late();
// Starts to record whatever this process is; true if it does now.
bool start_late();
// The end of an attachment: no event is written from here on, in fork children
// neither. Until initialize_late() is called again.
void rest();

}  // namespace lull
