// What the shim was told, read once when it is loaded: environment and command
// line. The target may change both later; nothing here ever looks again.
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "preload/entry/process_kind.h"

namespace lull {

inline constexpr size_t kSocketPathSize = 108;  // sizeof sockaddr_un::sun_path

struct Settings {
  bool enabled;     // false before the library is initialised, and when disabled
  bool workers;     // LULL_WORKERS=1: DataLoader workers record too
  bool no_samples;  // LULL_SAMPLES=0: nobody looks at threads from outside
  ProcessKind kind;
  int filters;  // LULL_FILTERS: seccomp filters around `lull run`; -1 = not told
  char step_range[128];  // LULL_STEP_RANGE: the NVTX range that is a step; "" = none
  char socket[kSocketPathSize];  // LULL_SOCKET; "" = a bare LD_PRELOAD
  // For a bare LD_PRELOAD, which starts a relay by itself:
  char runtime_folder[kSocketPathSize];  // "" = none that fits
  char relay_environment[8192];  // "NAME=value" strings, one after the other, then ""
};

// Fills `out` (all zero before). Pure: no look at the process itself.
void read_settings(int argc, const char* const* argv, const char* const* envp,
                   uid_t user, Settings* out);

// <runtime folder>/auto-<session>.sock: one relay for a terminal's session.
// False if there is no runtime folder or the path would be too long.
bool automatic_socket(const Settings& settings, pid_t session, char* out);

// The one of this process.
Settings& settings();

}  // namespace lull
