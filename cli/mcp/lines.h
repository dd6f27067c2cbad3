// Bytes of a stream as lines, of which none takes more memory than it may.
#pragma once

#include <cstddef>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace lull::mcp {

class Lines {
 public:
  explicit Lines(size_t longest) : longest_(longest) {}

  // `too_long`: what was kept of it is gone, and `line` is empty.
  using Sink = absl::FunctionRef<void(absl::string_view line, bool too_long)>;
  void Add(absl::string_view bytes, Sink sink);
  // The stream has ended: what has no newline is a line, too.
  void End(Sink sink);

 private:
  void Tell(Sink sink);

  const size_t longest_;
  std::string line_;
  bool too_long_ = false;
};

}  // namespace lull::mcp
