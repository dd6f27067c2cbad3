// What an imported trace cannot tell, as ImportInfo.not_applied says it. Reports print
// the sentences; a gate looks for them, so that nothing passes of which nobody knows.
#pragma once

namespace lull {

inline constexpr char kImportHasNoRunQueue[] =
    "waits for a processor (run_queue) are not in this format";
inline constexpr char kImportHasNoGilWaits[] =
    "waits for the GIL (gil_wait) are not in this format";
inline constexpr char kImportHasNoGc[] =
    "pauses of Python's collector (gc) are not in this trace";
inline constexpr char kImportHasNoData[] =
    "no DataLoader is named in this trace, so that nothing is told as data";
inline constexpr char kImportHasNoWaits[] =
    "no wait of a thread (host_wait) is in this trace; frames of Python would tell "
    "some";

}  // namespace lull
