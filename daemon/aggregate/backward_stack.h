// A stack of backward work, taken apart (daemon/base/backward_frames.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/aggregate/site.h"
#include "daemon/base/backward_frames.h"

namespace lull::aggregate {

struct BackwardStack {
  std::string node;                   // kUnknownNode where it is not known
  std::vector<const Frame*> caller;   // of backward(), innermost first; may be empty
  std::vector<const Frame*> forward;  // whose operator made the node; may be empty
};

// nullopt: an ordinary stack. A node that the stack does not name is looked for among
// the native frames.
std::optional<BackwardStack> AsBackward(const std::vector<const Frame*>& python,
                                        const std::vector<const Frame*>& native);

}  // namespace lull::aggregate
