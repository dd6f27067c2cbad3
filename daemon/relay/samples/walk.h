// A stack as it stands in one copy, and what several copies agree on.
#pragma once

#include <vector>

#include "daemon/relay/samples/callees.h"
#include "daemon/relay/samples/copy_plan.h"
#include "daemon/relay/samples/frames.h"

namespace lull::relay {

struct StackWalk {
  bool alive = false;     // the thread state is that of the thread
  bool complete = false;  // to the end, or to as many frames as are kept
  bool truncated = false;
  bool torn =
      false;      // not a whole stack: it ends at a frame that has a caller, or astray
  Piece missing;  // what it ended for; size 0: not for want of a piece
  CopyPlan::Kind missing_kind = CopyPlan::Kind::kFrames;
  std::vector<SeenFrame> frames;  // innermost first
};

// Leaves of `walk` what both agree on. True: that is all of it, and of the other.
bool Agree(const StackWalk& other, StackWalk* walk);

// Remembers which frames have a caller, and marks the walks that end at one of those.
void MarkTorn(std::vector<StackWalk>* walks, Callees* callees);

}  // namespace lull::relay
