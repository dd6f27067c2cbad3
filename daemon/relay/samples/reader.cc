#include "daemon/relay/samples/reader.h"

#include <string.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "daemon/base/clock.h"
#include "daemon/relay/samples/rates.h"
#include "daemon/relay/samples/stack_finder.h"

namespace lull::relay {
namespace {

constexpr size_t kCopies = 3;  // with each read
// Copies that are torn at the same place look equal. Of generators that come and go all
// the time 5 % are torn at one place and lead to a stack that never was: three copies
// agreed on one in nine looks of a million.
constexpr size_t kSure = 2 * kCopies;
// Where copies agree in fewer looks than that, those that do may do so by chance: as
// many again must agree.
constexpr double kSeldom = 1.0 / 8;
constexpr double kLooksOfShare = 32;
constexpr int kAttempts = 3;
// A generator that yields every 100 ns tears each third copy; others lead astray, or to
// where nothing was copied.
constexpr size_t kSpareReads = 7;
constexpr uint64_t kMostOfState = 4096;  // bytes of a PyThreadState
constexpr uint32_t kLooksPerPlan = 256;  // then what is not needed any more goes
constexpr size_t kMostPiecesOfCode = 400;

}  // namespace

StackReader::StackReader(const FrameLayout& layout, uint64_t state, uint64_t thread)
    : layout_(layout), state_(state), thread_(thread) {}

StackWalk StackReader::WalkCopy(const char* copy) {
  const abi::PythonLayout& layout = layout_.at;
  const int low = layout_.thread.low;
  StackWalk walk;
  walk.alive = LoadAt<uint64_t>(copy, layout.tstate_thread_id - low) == thread_;
  if (!walk.alive) return walk;
  uint64_t at = LoadAt<uint64_t>(copy, layout.tstate_frame - low);
  size_t hint = 0;
  bool may_be_empty = true;
  if (layout.cframe_frame >= 0) {
    // A _PyCFrame for each call from C into Python that is under way, on the C stack.
    // The one of a thread that runs no Python lies in its state.
    if (!Plausible(at)) return walk;
    may_be_empty = at - state_ < kMostOfState;
    const uint64_t word = OffsetBy(at, layout.cframe_frame);
    const char* bytes = plan_.Find(copy, word, sizeof(at), &hint);
    if (bytes == nullptr) {
      walk.missing = {word, sizeof(at)};
      walk.missing_kind = CopyPlan::Kind::kLink;
      return walk;
    }
    at = LoadAt<uint64_t>(bytes, 0);
  }
  for (uint32_t steps = 0; at != 0; ++steps) {
    if (!Plausible(at) || steps == kMostSteps) return walk;
    if (walk.frames.size() == kMostFrames) {
      walk.truncated = true;
      // No stack has a frame twice: this one was led in circles.
      walk.torn = std::any_of(walk.frames.begin(), walk.frames.end() - 1,
                              [&](const SeenFrame& frame) {
                                return frame.address == walk.frames.back().address;
                              });
      break;
    }
    const uint64_t begin = OffsetBy(at, layout_.frame.low);
    const char* bytes = plan_.Find(copy, begin, layout_.frame.size, &hint, steps);
    DecodedFrame frame;
    if (bytes == nullptr) {
      walk.missing = {begin, layout_.frame.size};
      return walk;
    }
    if (!DecodeFrame(layout_, bytes, at, &frame)) return walk;
    // A generator that runs has a caller, and what does not run any more has lost it.
    walk.torn = frame.previous == 0 && (frame.in_generator || !frame.running);
    if (!frame.foreign) walk.frames.push_back(frame.seen);
    at = frame.previous;
  }
  walk.complete = may_be_empty || !walk.frames.empty();
  return walk;
}

v1::HostSampleQuality StackReader::Discover(TargetMemory* memory) {
  const CopyPlan earlier = plan_;
  plan_.Clear();
  roots_.Clear();
  const v1::HostSampleQuality quality =
      StackFinder(layout_, memory, &plan_).Find(state_, thread_);
  if (quality != v1::HOST_SAMPLE_QUALITY_EXACT) {
    plan_.Clear();
    return quality;
  }
  plan_.Settle(earlier);
  return quality;
}

// Returns how many of pieces_ were read.
size_t StackReader::ReadCopies(TargetMemory* memory) {
  pieces_.clear();
  plan_.AppendPieces(kCopies, &pieces_);
  buffer_.resize(kCopies * plan_.copy_bytes());
  const size_t got = memory->Read(pieces_, buffer_.data());
  if (got < pieces_.size()) return got;
  for (size_t i = 1; i < kCopies; i += 2) {
    plan_.TurnRound(buffer_.data() + i * plan_.copy_bytes());
  }
  return got;
}

// False: it cannot be read at all. *again: what is copied must be found out anew.
bool StackReader::Copy(TargetMemory* memory, Look* look, bool* again) {
  look->begin_ns = MonotonicNs();
  const size_t got = ReadCopies(memory);
  look->end_ns = MonotonicNs();
  if (got == 0) return false;
  *again = got < pieces_.size();  // one of the pieces is no longer there
  if (*again) {
    plan_.Clear();
    return true;
  }
  // Python that runs changes its frames all the time; a call into C does not.
  const char* copies = buffer_.data();
  const size_t one = plan_.copy_bytes();
  static_assert(kCopies == 3);
  const bool still = plan_.SameFrames(copies, copies + one) &&
                     plan_.SameFrames(copies, copies + 2 * one);
  const size_t wanted = still ? kCopies : kSure;
  std::vector<StackWalk> walks;
  *again = WalkAll(memory, &walks) && !AddWalks(memory, wanted, look, &walks);
  if (*again) return true;
  Judge(walks, wanted, look);
  const bool agreed = look->quality != v1::HOST_SAMPLE_QUALITY_CUT;
  const bool expected = agreed_ >= kSeldom;
  agreed_ += ((agreed ? 1 : 0) - agreed_) / kLooksOfShare;
  if (agreed && !expected) {
    *again = !AddWalks(memory, 2 * kSure, look, &walks);
    if (*again) return true;
    Judge(walks, 2 * kSure, look);
  }
  if (look->quality == v1::HOST_SAMPLE_QUALITY_EXACT) known_.Add(look->frames);
  if (look->straddles && expected) look->first = FirstOf(walks);
  return true;
}

// The stack that two copies or more show before another one comes, if it is known; else
// none.
std::vector<SeenFrame> StackReader::FirstOf(const std::vector<StackWalk>& walks) const {
  const StackWalk* first = nullptr;
  for (const StackWalk& walk : walks) {
    if (walk.torn) continue;
    if (first == nullptr) {
      if (walk.truncated || !known_.Has(walk.frames)) return {};
      first = &walk;
      continue;
    }
    StackWalk same = *first;
    return Agree(walk, &same) ? first->frames : std::vector<SeenFrame>();
  }
  return {};
}

void StackReader::Judge(std::vector<StackWalk> walks, size_t wanted, Look* look) {
  if (walks.empty()) {
    look->quality = v1::HOST_SAMPLE_QUALITY_NO_STATE;
    return;
  }
  // Whole ones alone say who called whom; without enough of them nothing is said.
  const bool any_torn = CountTorn(walks) > 0;
  std::erase_if(walks, [](const StackWalk& walk) { return walk.torn; });
  const bool enough = walks.size() >= wanted;
  if (!enough) walks.assign(1, StackWalk());
  bool equal = enough && !any_torn;
  size_t least = SIZE_MAX;
  for (const StackWalk& walk : walks) least = std::min(least, walk.frames.size());
  StackWalk walk = std::move(walks.front());
  for (size_t i = 1; i < walks.size(); ++i) equal = Agree(walks[i], &walk) && equal;
  look->quality = !equal                ? v1::HOST_SAMPLE_QUALITY_CUT
                  : walk.frames.empty() ? v1::HOST_SAMPLE_QUALITY_NO_STATE
                                        : v1::HOST_SAMPLE_QUALITY_EXACT;
  look->straddles = !enough || (!walk.truncated && walk.frames.size() < least);
  look->truncated = walk.truncated;
  look->frames = std::move(walk.frames);
}

// One line ended between two copies and another began: their common callers are
// neither. The look was to be at the first one; where that cannot be told, what comes
// next is told of that moment. Code takes longer to copy than what sleeps, and would
// lose at its end what sleep gains at its begin. Of code that never holds still nothing
// deeper is found.
//
// Looking again is a choice: so two more looks must be of one stack.
void StackReader::LookBeyond(TargetMemory* memory, Look* look) {
  if (!look->first.empty()) {
    look->frames = std::move(look->first);
    look->quality = v1::HOST_SAMPLE_QUALITY_EXACT;
    look->straddles = look->truncated = false;
    look->end_ns = look->begin_ns;
    return;
  }
  Look later, last;
  bool again = false;
  if (!Copy(memory, &later, &again) || again || later.straddles ||
      !Copy(memory, &last, &again) || again || last.straddles) {
    return;
  }
  StackWalk walk, other;
  walk.frames = std::move(last.frames);
  other.frames = std::move(later.frames);
  walk.truncated = last.truncated;
  other.truncated = later.truncated;
  if (!Agree(other, &walk)) last.quality = v1::HOST_SAMPLE_QUALITY_CUT;
  last.frames = std::move(walk.frames);
  if (last.frames.size() <= look->frames.size()) return;
  last.repeated = look->repeated;
  *look = std::move(last);
}

// Appends the walks of the copies in buffer_. False, and none: the thread is another
// one by now.
bool StackReader::WalkAll(TargetMemory* memory, std::vector<StackWalk>* walks) {
  missing_.clear();
  for (size_t i = 0; i < kCopies; ++i) {
    const char* copy = buffer_.data() + i * plan_.copy_bytes();
    StackWalk walk = WalkCopy(copy);
    if (!walk.alive) {
      walks->clear();
      return false;
    }
    if (!walk.complete) {
      // It led astray, or where nothing was copied: it says nothing of the stack.
      walk.torn = true;
      walk.frames.clear();
      if (walk.missing.size > 0) {
        missing_.push_back({walk.missing, walk.missing_kind});
        if (walks->empty()) continue;  // nor that it changed
      }
    } else if (layout_.chunks && !walk.truncated && !walk.frames.empty()) {
      const uint64_t root = roots_.Of(
          LoadAt<uint64_t>(copy, layout_.at.tstate_chunk - layout_.thread.low), memory);
      walk.torn = walk.torn || (root != 0 && walk.frames.back().address != root);
    }
    walks->push_back(std::move(walk));
  }
  return true;
}

size_t StackReader::CountTorn(const std::vector<StackWalk>& walks) {
  return static_cast<size_t>(std::count_if(
      walks.begin(), walks.end(), [](const StackWalk& walk) { return walk.torn; }));
}

// They have what the last ones lacked. False: it is not known what to copy.
bool StackReader::AddWalks(TargetMemory* memory, size_t wanted, Look* look,
                           std::vector<StackWalk>* walks) {
  auto whole = [&] { return walks->size() - CountTorn(*walks); };
  MarkTorn(walks, &callees_);
  const size_t most = wanted / kCopies + kSpareReads;
  for (size_t read = 1; read < most && whole() < wanted; ++read) {
    if (!missing_.empty()) look->repeated = std::max(look->repeated, 1);
    for (const auto& [piece, kind] : missing_) {
      StackFinder(layout_, memory, &plan_).FindBeyond(piece, kind);
    }
    if (ReadCopies(memory) < pieces_.size()) {
      plan_.Clear();
      return false;
    }
    look->end_ns = MonotonicNs();
    if (!WalkAll(memory, walks)) return true;
    MarkTorn(walks, &callees_);
  }
  return whole() > 0;
}

// The code of the look's frames. What is new at its address, or what often changes
// there, may have taken the place of what a frame ran when it was copied: it is the
// frame's if the frame is still there afterwards, in one of three more copies.
void StackReader::ResolveCodes(TargetMemory* memory, CodeBook* codes, Look* look) {
  struct Code {
    uint64_t address;
    size_t pieces;
    size_t offset;  // in bytes
    CodeBook::Found found;
  };
  std::vector<Code> all;
  absl::flat_hash_map<uint64_t, size_t> places;
  std::vector<Piece> pieces;
  std::string bytes;
  size_t size = 0;
  const uint64_t now = look->end_ns;
  for (const SeenFrame& frame : look->frames) {
    const size_t before = pieces.size();
    if (before > kMostPiecesOfCode ||
        !places.try_emplace(frame.code, all.size()).second) {
      continue;
    }
    const size_t count = codes->Expect(frame.code, now, &pieces);
    all.push_back({frame.code, count, size, {}});
    for (size_t i = before; i < pieces.size(); ++i) size += pieces[i].size;
  }
  bytes.resize(size);
  size_t got = pieces.empty() ? 0 : memory->Read(pieces, bytes.data());
  bool doubtful = false;
  for (Code& code : all) {
    if (code.pieces > got) {  // it could not be read, nor what comes after it
      got = 0;
      continue;
    }
    got -= code.pieces;
    code.found = codes->Resolve(code.address, code.pieces, bytes.data() + code.offset,
                                now, memory);
    doubtful = doubtful || code.found.doubtful;
  }
  absl::flat_hash_set<std::pair<uint64_t, uint64_t>> still;
  if (doubtful && !plan_.empty() && ReadCopies(memory) == pieces_.size()) {
    for (size_t i = 0; i < kCopies; ++i) {
      for (const SeenFrame& frame :
           WalkCopy(buffer_.data() + i * plan_.copy_bytes()).frames) {
        still.emplace(frame.address, frame.code);
      }
    }
  }
  // What is no code object, or not sure to be the frame's, ends the stack to the
  // inside.
  size_t first = 0;
  for (size_t i = 0; i < look->frames.size(); ++i) {
    SeenFrame& frame = look->frames[i];
    auto place = places.find(frame.code);
    const CodeBook::Found code =
        place == places.end() ? CodeBook::Found() : all[place->second].found;
    frame.number = code.number;
    if (code.number == 0 ||
        (code.doubtful && !still.contains({frame.address, frame.code}))) {
      first = i + 1;
    }
  }
  if (first > 0) {
    look->quality = v1::HOST_SAMPLE_QUALITY_CUT;
    look->frames.erase(look->frames.begin(),
                       look->frames.begin() + static_cast<ptrdiff_t>(first));
  }
}

Look StackReader::Take(TargetMemory* memory, CodeBook* codes) {
  codes->Trim();
  plan_.NextLook();
  callees_.NextLook();
  Look look;
  bool again = plan_.empty() || ++looks_ % kLooksPerPlan == 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    look.repeated = std::max(look.repeated, attempt);
    if (again) {
      look.begin_ns = MonotonicNs();
      look.quality = Discover(memory);
      look.end_ns = MonotonicNs();
      if (look.quality != v1::HOST_SAMPLE_QUALITY_EXACT) return look;
    }
    look.quality = v1::HOST_SAMPLE_QUALITY_FAILED;
    if (!Copy(memory, &look, &again)) return look;
    if (!again) break;
  }
  if (!again && look.straddles) LookBeyond(memory, &look);
  if (again) {  // it never held still for long enough to find out what to copy
    look.quality = v1::HOST_SAMPLE_QUALITY_CUT;
    look.frames.clear();
  }
  if (look.quality == v1::HOST_SAMPLE_QUALITY_EXACT ||
      look.quality == v1::HOST_SAMPLE_QUALITY_CUT) {
    ResolveCodes(memory, codes, &look);
  }
  return look;
}

}  // namespace lull::relay
