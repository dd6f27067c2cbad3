#include "daemon/relay/samples/reader.h"

#include <string.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "daemon/base/clock.h"
#include "daemon/relay/samples/rates.h"

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
// PyFrameState's owner of a frame that lies in its generator, from 3.11 on.
constexpr uint8_t kOwnerGenerator = 1;
constexpr uint32_t kLooksPerPlan = 256;  // then what is not needed any more goes
// Foreign frames do not count as frames. A walk that meets more has gone astray.
constexpr uint32_t kMostSteps = 1024;
constexpr size_t kMostChunks = 32;
constexpr uint64_t kLargestChunk = 64 << 20;
constexpr size_t kMostOfAChunk = 256 << 10;
constexpr size_t kMostPiecesOfOne = 8;  // code object: its head and its texts
constexpr size_t kMostPiecesOfCode = 400;
// Beyond the innermost frame: where the next calls will be.
constexpr uint64_t kMargin = 1024;

uint64_t At(uint64_t address, int offset) {
  return address + static_cast<uint64_t>(static_cast<int64_t>(offset));
}

}  // namespace

StackReader::StackReader(const FrameLayout& layout, uint64_t state, uint64_t thread)
    : layout_(layout), state_(state), thread_(thread) {}

bool StackReader::FrameAt(const char* bytes, uint64_t address, SeenFrame* frame,
                          uint64_t* previous, bool* foreign) const {
  const abi::PythonLayout& at = layout_.at;
  const int low = layout_.frame.low;
  *previous = LoadAt<uint64_t>(bytes, at.frame_previous - low);
  *foreign = at.frame_owner >= 0 &&
             LoadAt<uint8_t>(bytes, at.frame_owner - low) >= abi::kFirstForeignOwner;
  if (*foreign) return true;
  const uint64_t code = LoadAt<uint64_t>(bytes, at.frame_code - low) &
                        ~static_cast<uint64_t>(at.code_tag_mask);
  if (!Plausible(code)) return false;
  int64_t lasti = 0;
  switch (at.form) {
    case abi::InstructionForm::kByteOffset:
      lasti = LoadAt<int32_t>(bytes, at.frame_instruction - low);
      break;
    case abi::InstructionForm::kUnitOffset:
      lasti = int64_t{2} * LoadAt<int32_t>(bytes, at.frame_instruction - low);
      break;
    case abi::InstructionForm::kPointer:
      lasti = static_cast<int64_t>(LoadAt<uint64_t>(bytes, at.frame_instruction - low) -
                                   At(code, at.code_bytes));
      break;
  }
  *frame = {address, code,
            lasti < 0 || lasti > INT32_MAX ? -1 : static_cast<int32_t>(lasti), 0};
  return true;
}

bool StackReader::IsGenerators(const char* bytes) const {
  const abi::PythonLayout& at = layout_.at;
  return at.frame_owner >= 0 &&
         LoadAt<uint8_t>(bytes, at.frame_owner - layout_.frame.low) == kOwnerGenerator;
}

StackReader::Walk StackReader::WalkCopy(const char* copy) {
  const abi::PythonLayout& layout = layout_.at;
  const int low = layout_.thread.low;
  Walk walk;
  walk.alive = LoadAt<uint64_t>(copy, layout.tstate_thread_id - low) == thread_;
  if (!walk.alive) return walk;
  uint64_t at = LoadAt<uint64_t>(copy, layout.tstate_frame - low);
  size_t hint = 0;
  if (layout.cframe_frame >= 0) {
    // A _PyCFrame for each call from C into Python that is under way, on the C stack.
    if (!Plausible(at)) return walk;
    const uint64_t word = At(at, layout.cframe_frame);
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
    const uint64_t begin = At(at, layout_.frame.low);
    const char* bytes = plan_.Find(copy, begin, layout_.frame.size, &hint);
    SeenFrame frame;
    bool foreign = false;
    uint64_t previous = 0;
    if (bytes == nullptr) {
      walk.missing = {begin, layout_.frame.size};
      return walk;
    }
    if (!FrameAt(bytes, at, &frame, &previous, &foreign)) return walk;
    // One that runs has a caller.
    walk.torn = previous == 0 && !foreign && IsGenerators(bytes);
    if (!foreign) walk.frames.push_back(frame);
    at = previous;
  }
  walk.complete = true;
  return walk;
}

void StackReader::DiscoverChunks(TargetMemory* memory, const std::string& thread) {
  chunks_.clear();
  if (!layout_.chunks) return;
  uint64_t at =
      LoadAt<uint64_t>(thread.data(), layout_.at.tstate_chunk - layout_.thread.low);
  while (Plausible(at) && chunks_.size() < kMostChunks) {
    uint64_t head[2];  // previous, size
    static_assert(abi::kChunkPrevious == 0 && abi::kChunkSize == 8);
    if (!memory->Read(at, head, sizeof(head)) || head[1] > kLargestChunk) break;
    chunks_.push_back({at, at + head[1], 0, {}});
    at = head[0];
  }
}

// The bytes of the frame at `at`, by way of its chunk if it lies in one.
bool StackReader::DiscoverFrame(TargetMemory* memory, uint64_t at, std::string* bytes) {
  const uint64_t begin = At(at, layout_.frame.low);
  const uint64_t end = begin + layout_.frame.size;
  for (Chunk& chunk : chunks_) {
    if (begin < chunk.begin || end > chunk.end) continue;
    if (chunk.piece == 0) {
      // Of the newest one with what may be called next; of others they are full.
      const uint64_t last =
          std::min(chunk.end, &chunk == &chunks_.front() ? end + kMargin : end);
      const uint64_t first =
          std::max(chunk.begin, last - std::min<uint64_t>(last, kMostOfAChunk));
      chunk.copy.resize(last - first);
      const uint32_t size = static_cast<uint32_t>(last - first);
      if (!memory->Read(first, chunk.copy.data(), size)) return false;
      chunk.piece = plan_.size();
      plan_.Add({first, size}, CopyPlan::Kind::kFrames);
    }
    const Piece& piece = plan_.at(chunk.piece);
    if (begin < piece.address || end > piece.address + piece.size) break;
    bytes->assign(chunk.copy, begin - piece.address, layout_.frame.size);
    return true;
  }
  bytes->resize(layout_.frame.size);
  if (!memory->Read(begin, bytes->data(), layout_.frame.size)) return false;
  plan_.Add({begin, layout_.frame.size}, CopyPlan::Kind::kFrames);
  return true;
}

v1::HostSampleQuality StackReader::Discover(TargetMemory* memory) {
  const CopyPlan earlier = plan_;
  plan_.Clear();
  const v1::HostSampleQuality quality = DiscoverPieces(memory);
  chunks_.clear();
  if (quality != v1::HOST_SAMPLE_QUALITY_EXACT) {
    plan_.Clear();
    return quality;
  }
  plan_.Settle(earlier);
  return quality;
}

v1::HostSampleQuality StackReader::DiscoverPieces(TargetMemory* memory) {
  const int low = layout_.thread.low;
  std::string thread(layout_.thread.size, 0);
  if (!memory->Read(At(state_, low), thread.data(), layout_.thread.size)) {
    return v1::HOST_SAMPLE_QUALITY_FAILED;
  }
  if (LoadAt<uint64_t>(thread.data(), layout_.at.tstate_thread_id - low) != thread_) {
    return v1::HOST_SAMPLE_QUALITY_NO_STATE;
  }
  plan_.Add({At(state_, low), layout_.thread.size}, CopyPlan::Kind::kThread);
  uint64_t at = LoadAt<uint64_t>(thread.data(), layout_.at.tstate_frame - low);
  if (layout_.at.cframe_frame >= 0) {
    const uint64_t word = At(at, layout_.at.cframe_frame);
    if (!Plausible(at) || !memory->Read(word, &at, sizeof(at)))
      return v1::HOST_SAMPLE_QUALITY_FAILED;
    plan_.Add({word, sizeof(at)}, CopyPlan::Kind::kLink);
  }
  DiscoverChunks(memory, thread);
  std::string bytes;
  uint32_t frames = 0;
  for (uint32_t steps = 0; at != 0 && steps < kMostSteps; ++steps) {
    SeenFrame frame;
    bool foreign = false;
    uint64_t previous = 0;
    if (frames == kMostFrames || plan_.size() > CopyPlan::kMost || !Plausible(at) ||
        !DiscoverFrame(memory, at, &bytes) ||
        !FrameAt(bytes.data(), at, &frame, &previous, &foreign)) {
      break;  // the copies will tell
    }
    if (!foreign) ++frames;
    at = previous;
  }
  return v1::HOST_SAMPLE_QUALITY_EXACT;
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
  std::vector<Walk> walks;
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

void StackReader::Judge(std::vector<Walk> walks, size_t wanted, Look* look) {
  if (walks.empty()) {
    look->quality = v1::HOST_SAMPLE_QUALITY_NO_STATE;
    return;
  }
  // Whole ones alone say who called whom; without enough of them nothing is said.
  bool equal = CountTorn(walks) == 0;
  std::erase_if(walks, [](const Walk& walk) { return walk.torn; });
  const bool enough = walks.size() >= wanted;
  if (!enough) walks.assign(1, Walk());
  size_t least = SIZE_MAX;
  for (const Walk& walk : walks) least = std::min(least, walk.frames.size());
  Walk walk = std::move(walks.front());
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
  Walk walk, other;
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
bool StackReader::WalkAll(const char* bytes, size_t count, std::vector<Walk>* walks) {
  for (size_t i = 0; i < count; ++i) {
    Walk walk = WalkCopy(bytes + i * plan_.copy_bytes());
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

void StackReader::MarkTorn(std::vector<Walk>* walks) {
  for (const Walk& walk : *walks) {
    for (size_t i = 0; i + 1 < walk.frames.size(); ++i) {
      callees_.Add(walk.frames[i].address);
    }
  }
  for (Walk& walk : *walks) {
    walk.torn = walk.torn || (!walk.truncated && !walk.frames.empty() &&
                              callees_.Has(walk.frames.back().address));
  }
}

size_t StackReader::CountTorn(const std::vector<Walk>& walks) {
  return static_cast<size_t>(std::count_if(walks.begin(), walks.end(),
                                           [](const Walk& walk) { return walk.torn; }));
}

// False: what is copied is not where the stack is now. None: as of WalkAll().
bool StackReader::AddWalks(TargetMemory* memory, size_t wanted, Look* look,
                           std::vector<Walk>* walks) {
  auto enough = [&] {
    return walks->empty() || walks->size() - CountTorn(*walks) >= wanted;
  };
  MarkTorn(walks);
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
    std::vector<Walk> more;
    if (!WalkAll(bytes.data(), kCopies, &more)) return false;
    if (more.empty()) walks->clear();
    std::move(more.begin(), more.end(), std::back_inserter(*walks));
    MarkTorn(walks);
  }
  return true;
}

// Leaves of `walk` what both agree on. True: that is all of it, and of the other.
bool StackReader::Agree(const Walk& other, Walk* walk) {
  std::vector<SeenFrame>& a = walk->frames;
  const std::vector<SeenFrame>& b = other.frames;
  bool same = a.size() == b.size() && walk->truncated == other.truncated;
  for (size_t i = 0; same && i < a.size(); ++i) {
    same = a[i].address == b[i].address && a[i].code == b[i].code &&
           (i == 0 || a[i].lasti == b[i].lasti);
  }
  if (same) return true;
  // The outermost frame that both have: the last one of either, where neither has more
  // frames than are kept.
  size_t end_a = a.size(), end_b = b.size();
  if (walk->truncated || other.truncated) {
    walk->truncated = true;
    auto in_a = [&](uint64_t address) {
      return static_cast<size_t>(
          std::find_if(a.begin(), a.end(),
                       [&](const SeenFrame& f) { return f.address == address; }) -
          a.begin());
    };
    while (end_b > 0 && in_a(b[end_b - 1].address) == a.size()) --end_b;
    end_a = end_b == 0 ? 0 : in_a(b[end_b - 1].address) + 1;
  }
  size_t kept = 0;
  while (kept < std::min(end_a, end_b) && a[end_a - 1 - kept] == b[end_b - 1 - kept]) {
    ++kept;
  }
  a.resize(end_a);
  a.erase(a.begin(), a.begin() + static_cast<ptrdiff_t>(end_a - kept));
  return false;
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
