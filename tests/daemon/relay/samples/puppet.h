// A Python program that is read from outside, and what a shim would tell of it.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "daemon/base/unique_fd.h"
#include "daemon/relay/samples/layout.h"

namespace lull::relay {

class Puppet {
 public:
  // Starts `scenario` of puppets/flutter.py, on processor 1 if there are two; the
  // calling thread goes to processor 0. `seconds`: what one of its calls takes, of
  // scenarios that ask for it.
  Puppet(const std::string& interpreter, const std::string& scenario,
         double seconds = 0);
  ~Puppet();
  Puppet(const Puppet&) = delete;
  Puppet& operator=(const Puppet&) = delete;

  bool started() const { return layout_.has_value(); }
  pid_t pid() const { return pid_; }
  uint64_t state() const { return state_; }
  uint64_t thread() const { return thread_; }
  const FrameLayout& layout() const { return *layout_; }
  // TOTALS of the script: seconds spent in each of its functions so far.
  std::array<double, 3> Totals() const;

 private:
  pid_t pid_ = -1;
  uint64_t state_ = 0;
  uint64_t thread_ = 0;
  uint64_t totals_ = 0;
  UniqueFd input_;
  std::optional<FrameLayout> layout_;
};

}  // namespace lull::relay
