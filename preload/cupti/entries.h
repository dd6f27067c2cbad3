// The arena entries of GPU truth: names, kernels, streams, devices. Each is one
// integer once it was met (stacks/interning.h).
#pragma once

#include "preload/abi/arena.h"
#include "preload/abi/segment.h"
#include "preload/cupti/types.h"

namespace lull::cupti {

// Longer names are cut: templates nested that deep say no more.
inline constexpr size_t kLongestText = 4096;

// Kernels whose launch shape changes all the time (ragged batches) would fill the
// arena. Beyond this share of it they are kept without their shape (grid all 0).
inline constexpr size_t kShapesUpTo = abi::kArenaSize / 4 * 3;

abi::Ref intern_text(char* segment, const char* text, size_t size);
abi::Ref intern_kernel(char* segment, const Kernel& record);

// The device of an entry that CUPTI does not tell.
inline constexpr uint32_t kDeviceUnknown = UINT32_MAX;
abi::Ref intern_stream(char* segment, uint32_t device, uint32_t context,
                       uint32_t stream);

}  // namespace lull::cupti
