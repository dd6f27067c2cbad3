// One look at the Python stack of a thread that goes on running.
//
// From CPython 3.11 on, the frames of functions lie in chunks of memory, at the same
// addresses call after call; before that, each is an object that is used again for the
// next call, or whose caller changes (generators). A walk from frame to frame mixes the
// stack of one moment with that of the next, and does not notice. So a look takes six
// copies of all that the stack lies in, three with each system call (every second one
// from its end to its begin: it is not torn as the others are; and only three in all
// where those are the same to the last byte). It walks all of them, and takes the stack
// if they agree: the same frames, the same code, the same instruction in all but the
// innermost one. Where they do not agree, it keeps the outer frames on which they do.
// The innermost frame that is kept was there, and at that call.
//
// A copy that is not of a whole stack says nothing of the callers, and others are taken
// in its place: one that ends at a frame which has a caller (callees.h; a frame that
// returns or yields loses its caller first) or elsewhere than where the thread's stacks
// begin (roots.h), and one that leads astray, or in circles. On 3.11 and 3.12 the way
// to the first frame goes by a word on the C stack, which is anything once its call has
// returned: also none, which a thread has that runs no Python, but only in its state.
//
// What must be copied is known from earlier looks (copy_plan.h). A copy that lacks a
// frame (a generator's that was made just now) is another one that says nothing; what
// it lacked, and what that leads to, is in those that follow. Where no copy is whole
// the look is taken again after a walk that finds all of it out. What is taken later
// sees what comes next a little more often: it must be rare.
//
// Code is read after the copies, and not between them: the shorter a time they take
// together, the more of them are of one stack.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/relay/samples/callees.h"
#include "daemon/relay/samples/codes.h"
#include "daemon/relay/samples/copy_plan.h"
#include "daemon/relay/samples/known_stacks.h"
#include "daemon/relay/samples/layout.h"
#include "daemon/relay/samples/memory.h"
#include "daemon/relay/samples/roots.h"
#include "daemon/relay/samples/walk.h"
#include "events.pb.h"

namespace lull::relay {

struct Look {
  v1::HostSampleQuality quality = v1::HOST_SAMPLE_QUALITY_FAILED;
  bool truncated = false;         // there were more frames outside
  bool straddles = false;         // the copies are of two different stacks
  std::vector<SeenFrame> frames;  // innermost first
  std::vector<SeenFrame> first;   // where it straddles: the one before, if it is known
  uint64_t begin_ns = 0;          // of the reading that decided
  uint64_t end_ns = 0;
  int repeated = 0;  // times that it was taken again, in all or for want of a piece
};

class StackReader {
 public:
  StackReader(const FrameLayout& layout, uint64_t state, uint64_t thread);

  // PyThreadState and pthread_self() that the reader was made for.
  bool IsFor(uint64_t state, uint64_t thread) const {
    return state == state_ && thread == thread_;
  }
  Look Take(TargetMemory* memory, CodeBook* codes);

 private:
  bool Copy(TargetMemory* memory, Look* look, bool* again);
  size_t ReadCopies(TargetMemory* memory);
  StackWalk WalkCopy(const char* copy);
  bool WalkAll(TargetMemory* memory, std::vector<StackWalk>* walks);
  // More copies, for as long as fewer than `wanted` are whole stacks.
  bool AddWalks(TargetMemory* memory, size_t wanted, Look* look,
                std::vector<StackWalk>* walks);
  // What `wanted` whole stacks or more agree on.
  static void Judge(std::vector<StackWalk> walks, size_t wanted, Look* look);
  static size_t CountTorn(const std::vector<StackWalk>& walks);
  std::vector<SeenFrame> FirstOf(const std::vector<StackWalk>& walks) const;
  void LookBeyond(TargetMemory* memory, Look* look);
  // Plans what is copied from now on, if that is EXACT.
  v1::HostSampleQuality Discover(TargetMemory* memory);
  void ResolveCodes(TargetMemory* memory, CodeBook* codes, Look* look);

  struct Missing {
    Piece piece;
    CopyPlan::Kind kind;
  };

  const FrameLayout layout_;
  const uint64_t state_;
  const uint64_t thread_;
  CopyPlan plan_;
  Callees callees_;
  KnownStacks known_;
  Roots roots_;
  std::vector<Missing> missing_;  // what the last copies lacked
  std::vector<Piece> pieces_;     // of them
  std::string buffer_;
  uint32_t looks_ = 0;
  double agreed_ = 0;  // share of the last looks whose copies agreed
};

}  // namespace lull::relay
