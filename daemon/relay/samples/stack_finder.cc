#include "daemon/relay/samples/stack_finder.h"

#include <algorithm>

#include "daemon/relay/samples/frames.h"
#include "daemon/relay/samples/rates.h"

namespace lull::relay {
namespace {

constexpr size_t kMostChunks = 32;
constexpr uint64_t kLargestChunk = 64 << 20;
constexpr size_t kMostOfAChunk = 256 << 10;
// What leads to frames lies all over some KiB of the C stack: the next will be close to
// this one. Not beyond its page, which may be the last.
constexpr uint64_t kBlock = 1024;
// Frames that a walk of a copy missed one behind the other: of generators that wait for
// each other.
constexpr int kMostBeyond = 16;
// Beyond the innermost frame: where the next calls will be.
constexpr uint64_t kMargin = 1024;

Piece BlocksOf(const Piece& piece) {
  const uint64_t begin = piece.address / kBlock * kBlock;
  const uint64_t end = piece.address + piece.size;
  return {begin, static_cast<uint32_t>((end - begin + kBlock - 1) / kBlock * kBlock)};
}

// What is copied for a frame that lies in no chunk.
Piece PieceOf(const Piece& frame, bool foreign) {
  return foreign ? BlocksOf(frame) : frame;
}

CopyPlan::Kind KindOf(bool foreign) {
  return foreign ? CopyPlan::Kind::kOnCStack : CopyPlan::Kind::kFrames;
}

}  // namespace

void StackFinder::FindChunks(const std::string& thread) {
  if (!layout_.chunks) return;
  uint64_t at =
      LoadAt<uint64_t>(thread.data(), layout_.at.tstate_chunk - layout_.thread.low);
  while (Plausible(at) && chunks_.size() < kMostChunks) {
    uint64_t head[2];  // previous, size
    static_assert(abi::kChunkPrevious == 0 && abi::kChunkSize == 8);
    if (!memory_->Read(at, head, sizeof(head)) || head[1] > kLargestChunk) break;
    chunks_.push_back({at, at + head[1], 0, {}});
    at = head[0];
  }
}

bool StackFinder::FindFrame(uint64_t at, std::string* bytes, bool* in_chunk) {
  const uint64_t begin = OffsetBy(at, layout_.frame.low);
  const uint64_t end = begin + layout_.frame.size;
  for (Chunk& chunk : chunks_) {
    if (begin < chunk.begin || end > chunk.end) continue;
    if (chunk.piece == 0) {
      // The newest one with room for what may be called next; the others are full.
      const uint64_t last =
          std::min(chunk.end, &chunk == &chunks_.front() ? end + kMargin : end);
      const uint64_t first =
          std::max(chunk.begin, last - std::min<uint64_t>(last, kMostOfAChunk));
      chunk.copy.resize(last - first);
      const uint32_t size = static_cast<uint32_t>(last - first);
      if (!memory_->Read(first, chunk.copy.data(), size)) return false;
      chunk.piece = plan_->size();
      plan_->Add({first, size}, CopyPlan::Kind::kFrames);
    }
    const Piece& piece = plan_->at(chunk.piece);
    if (begin < piece.address || end > piece.address + piece.size) break;
    bytes->assign(chunk.copy, begin - piece.address, layout_.frame.size);
    return *in_chunk = true;
  }
  *in_chunk = false;
  bytes->resize(layout_.frame.size);
  return memory_->Read(begin, bytes->data(), layout_.frame.size);
}

v1::HostSampleQuality StackFinder::Find(uint64_t state, uint64_t thread_id) {
  const int low = layout_.thread.low;
  std::string thread(layout_.thread.size, 0);
  if (!memory_->Read(OffsetBy(state, low), thread.data(), layout_.thread.size)) {
    return v1::HOST_SAMPLE_QUALITY_FAILED;
  }
  if (LoadAt<uint64_t>(thread.data(), layout_.at.tstate_thread_id - low) != thread_id) {
    return v1::HOST_SAMPLE_QUALITY_NO_STATE;
  }
  plan_->Add({OffsetBy(state, low), layout_.thread.size}, CopyPlan::Kind::kThread);
  uint64_t at = LoadAt<uint64_t>(thread.data(), layout_.at.tstate_frame - low);
  if (layout_.at.cframe_frame >= 0) {
    const uint64_t word = OffsetBy(at, layout_.at.cframe_frame);
    if (!Plausible(at) || !memory_->Read(word, &at, sizeof(at)))
      return v1::HOST_SAMPLE_QUALITY_FAILED;
    plan_->Add(BlocksOf({word, sizeof(at)}), CopyPlan::Kind::kLink);
  }
  FindChunks(thread);
  std::string bytes;
  uint32_t frames = 0;
  for (uint32_t steps = 0; at != 0 && steps < kMostSteps; ++steps) {
    DecodedFrame frame;
    bool in_chunk = false;
    if (frames == kMostFrames || plan_->size() > CopyPlan::kMost || !Plausible(at) ||
        !FindFrame(at, &bytes, &in_chunk) ||
        !DecodeFrame(layout_, bytes.data(), at, &frame)) {
      break;  // the copies will tell
    }
    if (!frame.foreign) ++frames;
    const Piece piece{OffsetBy(at, layout_.frame.low), layout_.frame.size};
    if (!in_chunk) plan_->Add(PieceOf(piece, frame.foreign), KindOf(frame.foreign));
    at = frame.previous;
  }
  return v1::HOST_SAMPLE_QUALITY_EXACT;
}

void StackFinder::FindBeyond(const Piece& missing, CopyPlan::Kind kind) {
  if (plan_->Has(missing)) return;
  uint64_t at = OffsetBy(missing.address, -layout_.frame.low);
  if (kind == CopyPlan::Kind::kLink) {
    if (!memory_->Read(missing.address, &at, sizeof(at)) ||
        !plan_->Extend(BlocksOf(missing), kind)) {
      return;
    }
  }
  std::string bytes(layout_.frame.size, 0);
  for (int i = 0; i < kMostBeyond && Plausible(at); ++i) {
    const Piece piece{OffsetBy(at, layout_.frame.low), layout_.frame.size};
    DecodedFrame frame;
    if (plan_->Has(piece) || !memory_->Read(piece.address, bytes.data(), piece.size) ||
        !DecodeFrame(layout_, bytes.data(), at, &frame) ||
        !plan_->Extend(PieceOf(piece, frame.foreign), KindOf(frame.foreign))) {
      return;
    }
    at = frame.previous;
  }
}

}  // namespace lull::relay
