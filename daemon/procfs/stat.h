// What the text of /proc/PID/stat and /proc/PID/status says. Pure.
#pragma once

#include "absl/strings/string_view.h"

namespace lull {

// Fields of a stat file that are used here, by their numbers in proc_pid_stat(5).
inline constexpr int kStatState = 3;
inline constexpr int kStatParent = 4;
inline constexpr int kStatSession = 6;
inline constexpr int kStatMajorFaults = 12;
inline constexpr int kStatUserTime = 14;    // clock ticks, of all its threads
inline constexpr int kStatSystemTime = 15;  // the same
inline constexpr int kStatStart = 22;  // clock ticks since the machine's start
inline constexpr int kStatResident = 24;  // pages
inline constexpr int kStatCodeStart = 26;
inline constexpr int kStatStackStart = 28;
inline constexpr int kStatProcessor = 39;

// "" where there is none. Not for fields 1 and 2: the second one is the name, which may
// hold blanks and brackets.
absl::string_view StatField(absl::string_view stat, int number);

// The value of "NAME:\tVALUE" in the text of a status file; "" when it has none.
absl::string_view StatusField(absl::string_view status, absl::string_view name);

}  // namespace lull
