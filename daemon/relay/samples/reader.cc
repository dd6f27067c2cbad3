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
constexpr double kSeldom = 1.0 / 16;
constexpr double kLooksOfShare = 32;
constexpr int kAttempts = 3;
// A generator that yields every 100 ns tears each third copy.
constexpr size_t kSpareReads = 3;
constexpr uint32_t kLooksPerPlan = 256;  // then what is not needed any more goes
constexpr size_t kMostPiecesOfOne = 8;   // code object: its head and its texts
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
  if (layout.cframe_frame >= 0) {
    // A _PyCFrame for each call from C into Python that is under way, on the C stack.
    if (!Plausible(at)) return walk;
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
      break;
    }
    const uint64_t begin = OffsetBy(at, layout_.frame.low);
    const char* bytes = plan_.Find(copy, begin, layout_.frame.size, &hint);
    DecodedFrame frame;
    if (bytes == nullptr) {
      walk.missing = {begin, layout_.frame.size};
      return walk;
    }
    if (!DecodeFrame(layout_, bytes, at, &frame)) return walk;
    // A generator that runs has a caller.
    walk.torn = frame.previous == 0 && frame.in_generator;
    if (!frame.foreign) walk.frames.push_back(frame.seen);
    at = frame.previous;
  }
  walk.complete = true;
  return walk;
}

v1::HostSampleQuality StackReader::Discover(TargetMemory* memory) {
  const CopyPlan earlier = plan_;
  plan_.Clear();
  const v1::HostSampleQuality quality =
      StackFinder(layout_, memory, &plan_).Find(state_, thread_);
  if (quality != v1::HOST_SAMPLE_QUALITY_EXACT) {
    plan_.Clear();
    return quality;
  }
  plan_.Settle(earlier);
  return quality;
}

void StackReader::ForgetCodesBeyond(size_t pieces) {
  for (size_t i = 0; i < expected_.size(); ++i) {
    if (expected_[i].pieces > pieces) {
      std::erase(code_, expected_[i].address);
      expected_.resize(i);
      return;
    }
    pieces -= expected_[i].pieces;
  }
}

// False: it cannot be read at all. *again: what is copied must be found out anew.
bool StackReader::Copy(TargetMemory* memory, CodeBook* codes, Look* look, bool* again) {
  pieces_.clear();
  plan_.AppendPieces(kCopies, &pieces_);
  const size_t copied = pieces_.size();
  expected_.clear();
  size_t offset = kCopies * plan_.copy_bytes();
  const uint64_t now = MonotonicNs();
  for (uint64_t code : code_) {
    const size_t before = pieces_.size();
    if (before + kMostPiecesOfOne > TargetMemory::kMostPieces) break;
    const size_t count = codes->Expect(code, now, &pieces_);
    expected_.push_back({code, count, offset});
    for (size_t i = before; i < pieces_.size(); ++i) offset += pieces_[i].size;
  }
  if (buffer_.size() < offset) buffer_.resize(offset);
  look->begin_ns = MonotonicNs();
  const size_t got = memory->Read(pieces_, buffer_.data());
  look->end_ns = MonotonicNs();
  if (got == 0) return false;
  ended_ = {};
  if (got < copied) {  // one of the pieces is no longer there
    plan_.Clear();
    *again = true;
    return true;
  }
  // A code object that is not there any more: it and those behind it were not read.
  ForgetCodesBeyond(got - copied);
  *again = false;
  // Python that runs changes some of the bytes all the time; a call into C does not.
  const size_t one = plan_.copy_bytes();
  const bool still = memcmp(buffer_.data(), buffer_.data() + one, 2 * one) == 0;
  static_assert(kCopies == 3);
  const size_t wanted = still ? kCopies : kSure;
  std::vector<StackWalk> walks;
  *again = !WalkAll(buffer_.data(), kCopies, &walks) ||
           !AddWalks(memory, wanted, look, &walks);
  if (*again) return true;
  Judge(walks, wanted, look);
  const bool agreed = look->quality != v1::HOST_SAMPLE_QUALITY_CUT;
  const bool expected = agreed_ >= kSeldom;
  agreed_ += ((agreed ? 1 : 0) - agreed_) / kLooksOfShare;
  if (agreed && !expected) {
    *again = !AddWalks(memory, 2 * kSure, look, &walks);
    if (*again) return true;
    Judge(std::move(walks), 2 * kSure, look);
  }
  return true;
}

void StackReader::Judge(std::vector<StackWalk> walks, size_t wanted, Look* look) {
  if (walks.empty()) {
    look->quality = v1::HOST_SAMPLE_QUALITY_NO_STATE;
    return;
  }
  // Whole ones alone say who called whom; without enough of them nothing is said.
  bool equal = CountTorn(walks) == 0;
  std::erase_if(walks, [](const StackWalk& walk) { return walk.torn; });
  const bool enough = walks.size() >= wanted;
  if (!enough) walks.assign(1, StackWalk());
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
// neither. What comes next is told of that moment. Each line gains by that when it
// begins what it loses when it ends; of code that never holds still nothing deeper is
// found.
//
// Looking again is a choice: so two more looks must be of one stack.
void StackReader::LookBeyond(TargetMemory* memory, CodeBook* codes, Look* look) {
  Look later, last;
  bool again = false;
  if (!Copy(memory, codes, &later, &again) || again || later.straddles ||
      !Copy(memory, codes, &last, &again) || again || last.straddles) {
    expected_.clear();  // what was to be read with it may not have been
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

// None: the thread is another one by now.
bool StackReader::WalkAll(const char* bytes, size_t count,
                          std::vector<StackWalk>* walks) {
  for (size_t i = 0; i < count; ++i) {
    StackWalk walk = WalkCopy(bytes + i * plan_.copy_bytes());
    if (!walk.alive) {
      walks->clear();
      return true;
    }
    if (!walk.complete) {
      ended_ = std::move(walk);
      return false;
    }
    walks->push_back(std::move(walk));
  }
  return true;
}

size_t StackReader::CountTorn(const std::vector<StackWalk>& walks) {
  return static_cast<size_t>(std::count_if(
      walks.begin(), walks.end(), [](const StackWalk& walk) { return walk.torn; }));
}

// False: what is copied is not where the stack is now. None: as of WalkAll().
bool StackReader::AddWalks(TargetMemory* memory, size_t wanted, Look* look,
                           std::vector<StackWalk>* walks) {
  auto enough = [&] {
    return walks->empty() || walks->size() - CountTorn(*walks) >= wanted;
  };
  MarkTorn(walks, &callees_);
  if (enough()) return true;
  std::vector<Piece> pieces;
  plan_.AppendPieces(kCopies, &pieces);
  std::string bytes(kCopies * plan_.copy_bytes(), 0);
  const size_t most = wanted / kCopies + kSpareReads;
  for (size_t read = 1; read < most && !enough(); ++read) {
    if (memory->Read(pieces, bytes.data()) < pieces.size()) {
      plan_.Clear();
      return false;
    }
    look->end_ns = MonotonicNs();
    std::vector<StackWalk> more;
    if (!WalkAll(bytes.data(), kCopies, &more)) return false;
    if (more.empty()) walks->clear();
    std::move(more.begin(), more.end(), std::back_inserter(*walks));
    MarkTorn(walks, &callees_);
  }
  return true;
}

// What is new at its address may have taken the place of what a frame was running when
// the copies were taken: it belongs to a frame that is still there in one more copy.
void StackReader::ResolveCodes(TargetMemory* memory, CodeBook* codes, Look* look) {
  const uint64_t now = look->end_ns;
  absl::flat_hash_map<uint64_t, CodeBook::Found> found;
  std::vector<uint64_t> present;
  for (const SeenFrame& frame : look->frames) {
    if (found.try_emplace(frame.code).second) present.push_back(frame.code);
  }
  bool fresh = false;
  absl::flat_hash_map<uint64_t, const ExpectedCode*> read;
  for (const ExpectedCode& code : expected_) read[code.address] = &code;
  std::vector<ExpectedCode> unexpected;
  std::vector<Piece> pieces;
  for (uint64_t code : present) {
    if (read.contains(code) || pieces.size() > kMostPiecesOfCode) continue;
    size_t offset = 0;
    for (const Piece& piece : pieces) offset += piece.size;
    const size_t count = codes->Expect(code, now, &pieces);
    unexpected.push_back({code, count, offset});
  }
  std::string bytes;
  if (!unexpected.empty()) {
    size_t size = 0;
    for (const Piece& piece : pieces) size += piece.size;
    bytes.resize(size);
    size_t got = memory->Read(pieces, bytes.data());
    for (const ExpectedCode& code : unexpected) {
      if (code.pieces > got) break;
      got -= code.pieces;
      found[code.address] = codes->Resolve(code.address, code.pieces,
                                           bytes.data() + code.offset, now, memory);
    }
  }
  for (uint64_t code : present) {
    auto known = read.find(code);
    if (known != read.end()) {
      found[code] = codes->Resolve(code, known->second->pieces,
                                   buffer_.data() + known->second->offset, now, memory);
    }
    fresh = fresh || found[code].fresh;
  }
  absl::flat_hash_set<std::pair<uint64_t, uint64_t>> still;
  if (fresh && !plan_.empty()) {
    std::string copy(plan_.copy_bytes(), 0);
    std::vector<Piece> once;
    plan_.AppendPieces(1, &once);
    if (memory->Read(once, copy.data()) == once.size()) {
      for (const SeenFrame& frame : WalkCopy(copy.data()).frames) {
        still.emplace(frame.address, frame.code);
      }
    }
  }
  // What is no code object, or not sure to be the frame's, ends the stack to the
  // inside.
  size_t first = 0;
  for (size_t i = 0; i < look->frames.size(); ++i) {
    SeenFrame& frame = look->frames[i];
    const CodeBook::Found& code = found[frame.code];
    frame.number = code.number;
    if (code.number == 0 ||
        (code.fresh && !still.contains({frame.address, frame.code}))) {
      first = i + 1;
    }
  }
  if (first > 0) {
    look->quality = v1::HOST_SAMPLE_QUALITY_CUT;
    look->frames.erase(look->frames.begin(),
                       look->frames.begin() + static_cast<ptrdiff_t>(first));
  }
  // Not those of earlier looks, too: at ten looks a second each would be read again for
  // nothing every time, half a millisecond of a Trainer's deep stacks.
  code_ = std::move(present);
}

Look StackReader::Take(TargetMemory* memory, CodeBook* codes) {
  codes->Trim();
  plan_.NextLook();
  callees_.NextLook();
  Look look;
  bool again = plan_.empty() || ++looks_ % kLooksPerPlan == 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    look.repeated = attempt;
    // What was missing is had sooner than all that there is.
    const bool extended = again && attempt == 1 && ended_.missing.size > 0 &&
                          plan_.Extend(ended_.missing, ended_.missing_kind);
    if (again && !extended) {
      look.begin_ns = MonotonicNs();
      look.quality = Discover(memory);
      look.end_ns = MonotonicNs();
      if (look.quality != v1::HOST_SAMPLE_QUALITY_EXACT) return look;
    }
    look.quality = v1::HOST_SAMPLE_QUALITY_FAILED;
    if (!Copy(memory, codes, &look, &again)) return look;
    if (!again) break;
  }
  if (!again && look.straddles) LookBeyond(memory, codes, &look);
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
