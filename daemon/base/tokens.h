// The secrets by which a collector knows who may do what over TCP. Each right has a
// token of its own, so that a training host that delivers events can neither read what
// others delivered nor arm their jobs.
//
// A token file has mode 0600 and one line for each right that it gives:
//
//   write 6f1c...      # deliver events
//   read 90ab...       # ask for reports
//   control 3d5e...    # arm, disarm, tag and pin jobs
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lull {

enum class Right { kWrite, kRead, kControl };

// "write", "read" or "control", as in a token file.
const char* NameOf(Right right);

struct Tokens {
  std::string write;
  std::string read;
  std::string control;  // of each: "" = none

  const std::string& For(Right right) const;
  bool empty() const { return write.empty() && read.empty() && control.empty(); }
};

// A file with one word and nothing else is taken as the token for every right.
// Errors: NOT_FOUND when it is not there, PERMISSION_DENIED when others can read it or
// it belongs to another user, FAILED_PRECONDITION for what is no token file.
absl::StatusOr<Tokens> ReadTokenFile(const std::string& path);

// Like ReadTokenFile, but makes a file that is not there first, with three random
// tokens. Any number of processes may do so at once: all see the same file.
absl::StatusOr<Tokens> ReadOrMakeTokenFile(const std::string& path);

// 256 random bits, in hexadecimal.
absl::StatusOr<std::string> RandomToken();

// Takes the same time, wherever the two differ.
bool SameSecret(std::string_view a, std::string_view b);

}  // namespace lull
