// Finds out which pieces of memory a thread's Python stack lies in, by walking it frame
// by frame in the target. The target goes on meanwhile, so that the walk may mix two
// stacks. Its result is a plan, by which a look then copies everything at once
// (reader.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/relay/samples/copy_plan.h"
#include "daemon/relay/samples/layout.h"
#include "daemon/relay/samples/memory.h"
#include "events.pb.h"

namespace lull::relay {

// Frames that do not run Python do not count as frames. A walk that meets more of all
// kinds has gone astray.
inline constexpr uint32_t kMostSteps = 1024;

class StackFinder {
 public:
  // All must outlive it. The finder adds to `plan`.
  StackFinder(const FrameLayout& layout, TargetMemory* memory, CopyPlan* plan)
      : layout_(layout), memory_(memory), plan_(plan) {}

  // EXACT: `plan` has what was found.
  v1::HostSampleQuality Find(uint64_t state, uint64_t thread);
  // Extends `plan` by what a walk of a copy missed, and by what that leads to, as far
  // as the plan does not have it.
  void FindBeyond(const Piece& missing, CopyPlan::Kind kind);

 private:
  struct Chunk {
    uint64_t begin = 0;
    uint64_t end = 0;
    size_t piece = 0;  // in the plan; 0: none yet
    std::string copy;
  };

  void FindChunks(const std::string& thread);
  // The bytes of the frame at `at`, by way of its chunk if it lies in one, which is
  // planned then.
  bool FindFrame(uint64_t at, std::string* bytes, bool* in_chunk);

  const FrameLayout& layout_;
  TargetMemory* const memory_;
  CopyPlan* const plan_;
  std::vector<Chunk> chunks_;
};

}  // namespace lull::relay
