// What made the host wait at a sync point. The frames of its longest call and the call
// itself show it.
#pragma once

#include "query.pb.h"

namespace lull {

enum class SyncKind {
  kUnknown,
  kReadValue,   // .item(), float(t), bool(t), `if t:`
  kPrint,       // str(t)
  kShape,       // a result whose size depends on values: nonzero, boolean masks, unique
  kFromPython,  // a device tensor made of a Python number or list
  kToHost,      // .cpu(), .tolist(), .numpy()
  kPageableCopy,  // a large copy from or to pageable memory
  kCopy,          // any other copy that blocks
  kExplicit,      // synchronize()
  kGradScaler,    // GradScaler looks whether gradients overflowed
  kClipGrad,      // clip_grad_norm_ looks at the norm
};

SyncKind KindOf(const v1::SyncPoint& point);

// "a value read back (.item(), float(), bool(), `if`)"
const char* WhatItIs(SyncKind kind);
// What to change, without a full stop.
const char* HowToAvoid(SyncKind kind);

// A copy that is a few bytes each time takes microseconds by itself: its time is that
// of the work queued before it, and pinned memory would win nothing.
bool IsReadBack(const v1::SyncPoint& point);
// An asynchronous copy is a sync point when its host side is pageable.
bool IsAsyncCopy(const v1::SyncPoint& point);

}  // namespace lull
