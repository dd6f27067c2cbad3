#include "preload/cupti/other_users.h"

namespace lull::cupti {

void OtherUsers::prepared(uint64_t now) {
  last_call_ns_ = now;
  flush_ = Flush::kNone;
}

void OtherUsers::enabled(Kind kind, uint64_t now) {
  auto number = static_cast<uint32_t>(kind) % kMostKinds;
  kinds_[number / 64] |= uint64_t{1} << number % 64;
  prepared(now);
}

void OtherUsers::disabled(Kind kind, uint64_t now) {
  auto number = static_cast<uint32_t>(kind) % kMostKinds;
  kinds_[number / 64] &= ~(uint64_t{1} << number % 64);
  prepared(now);
}

void OtherUsers::flushed(uint32_t flag, uint64_t now) {
  if (last_call_ns_ == 0) return;  // it has nothing on: the flush was for ours
  last_call_ns_ = now;
  if (flush_ != Flush::kForced) {
    flush_ = (flag & kFlushForced) != 0 ? Flush::kForced : Flush::kPlain;
  }
}

void OtherUsers::subscribed(const void* handle, uint64_t now) {
  if (handle_count_ < kMostHandles) handles_[handle_count_++] = handle;
  prepared(now);
}

void OtherUsers::unsubscribed(const void* handle, uint64_t now) {
  for (uint32_t i = 0; i < handle_count_; ++i) {
    if (handles_[i] != handle) continue;
    handles_[i] = handles_[--handle_count_];
    last_call_ns_ = now;
    return;
  }
}

void OtherUsers::finalized(uint64_t now) {
  *this = OtherUsers();
  prepared(now);
}

bool OtherUsers::active(uint64_t now) const {
  if (any_kind() || handle_count_ > 0) return true;
  if (last_call_ns_ == 0) return false;
  uint64_t silence = flush_ == Flush::kForced  ? kGoneAfterForcedFlushNs
                     : flush_ == Flush::kPlain ? kGoneAfterFlushNs
                                               : kGoneAfterSilenceNs;
  return now < last_call_ns_ + silence;
}

}  // namespace lull::cupti
