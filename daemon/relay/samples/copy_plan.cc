#include "daemon/relay/samples/copy_plan.h"

#include <string.h>

#include <algorithm>
#include <string>
#include <tuple>

namespace lull::relay {
namespace {

// Each piece costs up to 1 us with each look.
constexpr uint32_t kRememberedLooks = 64;
constexpr size_t kMostOfOneUse = 6;  // of them
constexpr size_t kMostRemembered = 24;
constexpr size_t kMostRememberedBytes = 16 << 10;
constexpr uint64_t kMergedGap = 1024;
constexpr uint64_t kMostMerged = 2048;
constexpr size_t kMostBytes = 512 << 10;  // of one copy

bool Contains(const Piece& piece, uint64_t address, size_t size) {
  return address >= piece.address && address - piece.address <= piece.size &&
         piece.size - (address - piece.address) >= size;
}

}  // namespace

const char* CopyPlan::Find(const char* copy, uint64_t address, size_t size,
                           size_t* hint, uint32_t depth) {
  for (size_t i = 0; i < planned_.size(); ++i, ++*hint) {
    if (*hint >= planned_.size()) *hint = 0;
    Planned& planned = planned_[*hint];
    if (Contains(planned.piece, address, size)) {
      if (planned.used != looks_) {
        ++planned.uses;
        planned.depth = depth;
      }
      planned.used = looks_;
      planned.depth = std::min(planned.depth, depth);
      return copy + offsets_[*hint] + (address - planned.piece.address);
    }
  }
  return nullptr;
}

bool CopyPlan::Has(const Piece& piece) const {
  return std::any_of(planned_.begin(), planned_.end(), [&](const Planned& planned) {
    return Contains(planned.piece, piece.address, piece.size);
  });
}

// Places of which each has been needed once only (generators that are made anew with
// each call) soon go: they would take longer to copy than the stack.
void CopyPlan::NextLook() {
  auto unneeded =
      std::partition(planned_.begin(), planned_.end(), [&](const Planned& planned) {
        return planned.kind == Kind::kThread || planned.used == looks_;
      });
  std::sort(unneeded, planned_.end(),
            [](const Planned& a, const Planned& b) { return a.used > b.used; });
  size_t kept = 0, once = 0, bytes = 0;
  auto forgotten = [&](const Planned& planned) {
    const uint32_t age = looks_ - planned.used;
    bytes += planned.piece.size;
    return ++kept > kMostRemembered || bytes > kMostRememberedBytes ||
           age > kRememberedLooks || (planned.uses == 1 && ++once > kMostOfOneUse);
  };
  planned_.erase(std::remove_if(unneeded, planned_.end(), forgotten), planned_.end());
  Merge();
  LayOut();
  ++looks_;
}

bool CopyPlan::SameFrames(const char* copy, const char* other) const {
  for (size_t i = 0; i < planned_.size(); ++i) {
    const Planned& planned = planned_[i];
    if (planned.kind != Kind::kThread && planned.kind != Kind::kFrames) continue;
    if (memcmp(copy + offsets_[i], other + offsets_[i], planned.piece.size) != 0) {
      return false;
    }
  }
  return true;
}

bool CopyPlan::Extend(Piece piece, Kind kind) {
  if (planned_.empty() || planned_.size() >= kMost) return false;
  Add(piece, kind);
  Merge();
  LayOut();
  return true;
}

void CopyPlan::Clear() {
  planned_.clear();
  offsets_.clear();
  copy_bytes_ = 0;
}

void CopyPlan::Settle(const CopyPlan& earlier) {
  std::vector<Planned> before(earlier.planned_);
  std::erase_if(before, [&](const Planned& planned) {
    return planned.kind == Kind::kThread || looks_ - planned.used > kRememberedLooks ||
           Has(planned.piece);
  });
  std::sort(before.begin(), before.end(),
            [](const Planned& a, const Planned& b) { return a.used > b.used; });
  if (before.size() > kMostRemembered) before.resize(kMostRemembered);
  size_t bytes = 0;
  for (const Planned& planned : planned_) bytes += planned.piece.size;
  for (const Planned& planned : before) {
    bytes += planned.piece.size + kMergedGap;
    if (bytes > kMostBytes) break;  // the stack that is there comes first
    planned_.push_back(planned);
  }
  Merge();
  LayOut();
}

void CopyPlan::AppendPieces(size_t copies, std::vector<Piece>* pieces) const {
  for (size_t i = 0; i < copies; ++i) {
    for (const Planned& planned : planned_) pieces->push_back(planned.piece);
    if (i % 2 == 1) {
      std::reverse(pieces->end() - static_cast<ptrdiff_t>(size()), pieces->end());
    }
  }
}

void CopyPlan::TurnRound(char* copy) const {
  const std::string read(copy, copy_bytes_);
  const char* from = read.data() + copy_bytes_;
  for (const Planned& planned : planned_) {
    from -= planned.piece.size;
    copy = std::copy_n(from, planned.piece.size, copy);
  }
}

// Frames that are objects often lie close to each other, and a piece costs as much as a
// few KiB. But not all generators that ever were are to become one piece.
void CopyPlan::Merge() {
  std::sort(planned_.begin(), planned_.end(), [](const Planned& a, const Planned& b) {
    return std::tie(a.kind, a.piece.address) < std::tie(b.kind, b.piece.address);
  });
  size_t kept = 0;
  for (size_t i = 1; i < planned_.size(); ++i) {
    Planned& last = planned_[kept];
    const Planned& next = planned_[i];
    const uint64_t end = last.piece.address + last.piece.size;
    const uint64_t both = std::max(end, next.piece.address + next.piece.size);
    if (next.kind == last.kind && next.piece.address < end + kMergedGap &&
        (next.piece.address <= end || both - last.piece.address <= kMostMerged)) {
      last.piece.size = static_cast<uint32_t>(both - last.piece.address);
      last.used = std::max(last.used, next.used);
      last.uses = std::max(last.uses, next.uses);
      last.depth = std::min(last.depth, next.depth);
    } else {
      planned_[++kept] = next;
    }
  }
  if (!planned_.empty()) planned_.resize(kept + 1);
  std::stable_sort(planned_.begin(), planned_.end(),
                   [](const Planned& a, const Planned& b) {
                     return std::tie(a.kind, a.depth) < std::tie(b.kind, b.depth);
                   });
}

void CopyPlan::LayOut() {
  offsets_.clear();
  copy_bytes_ = 0;
  for (const Planned& planned : planned_) {
    if (copy_bytes_ + planned.piece.size > kMostBytes) break;
    offsets_.push_back(copy_bytes_);
    copy_bytes_ += planned.piece.size;
  }
  planned_.resize(offsets_.size());
}

}  // namespace lull::relay
