// The two functions that `lull attach` calls in a process that is running already
// (abi/attach.h). The thread that they run on was stopped anywhere outside of libc and
// the loader: they may allocate, load libraries and take locks of libc's, and nothing
// of Python's.
#include "preload/abi/attach.h"

#include <string.h>

#include "preload/abi/segment.h"
#include "preload/attach/slots.h"
#include "preload/entry/settings.h"
#include "preload/entry/start.h"
#include "preload/entry/state.h"
#include "preload/hooks/record.h"
#include "preload/python/python.h"
#include "preload/stacks/stacks.h"
#include "preload/support/libdl.h"
#include "preload/support/pins.h"
#include "preload/support/raw_syscall.h"

namespace lull {
namespace {

using abi::AttachResult;

// A fork child has our slots and this phase, too.
enum class Phase { kAway, kSlots, kStacks, kThere };
Phase g_phase = Phase::kAway;

bool read_request(const void* argument, size_t size, abi::AttachRequest* request) {
  if (size != sizeof *request) return false;
  memcpy(request, argument, size);
  return request->magic == abi::kSegmentMagic && request->version == abi::kVersion &&
         request->socket[0] != '\0' &&
         memchr(request->socket, '\0', sizeof request->socket) != nullptr;
}

// Taken from each request: the one before may be of a lull that was killed half-way.
void take_settings(const abi::AttachRequest& request) {
  Settings& ours = settings();
  static_assert(sizeof ours.socket == sizeof request.socket);
  ours.enabled = true;
  ours.kind = ProcessKind::kOrdinary;  // whoever attaches has chosen this process
  ours.no_samples = request.no_samples != 0;
  memcpy(ours.socket, request.socket, sizeof ours.socket);
}

AttachResult attach(const void* argument, size_t size) {
  if (!libdl::loaded_late()) return AttachResult::kPreloaded;
  abi::AttachRequest request;
  if (!read_request(argument, size, &request)) return AttachResult::kBadRequest;
  take_settings(request);
  // Left behind by a lull that was killed. The relay of this one knows nothing of it.
  if (g_state->mode.load(std::memory_order_acquire) == Mode::kRecording) {
    rest();
    g_phase = Phase::kAway;
  }
  if (g_phase == Phase::kAway) {
    if (!initialize_late()) return AttachResult::kRefused;
    g_phase = Phase::kSlots;
    return AttachResult::kMore;  // that has taken long enough
  }
  if (g_phase == Phase::kSlots) {
    if (!slots_set(Slots::kOurs, abi::kCallBudgetNs)) {
      return AttachResult::kMore;
    }
    g_phase = Phase::kStacks;
    return AttachResult::kMore;
  }
  // libunwind and the handshake have calls of their own.
  if (g_phase == Phase::kStacks) {
    stacks_load();
    g_phase = Phase::kThere;
    return AttachResult::kMore;
  }
  return start_late() ? AttachResult::kDone : AttachResult::kRefused;
}

// CUPTI is switched off by a hook, as the relay has asked for. Not from here: the
// thread may be in the middle of CUPTI.
bool is_tracing() {
  if (g_state->mode.load(std::memory_order_acquire) != Mode::kRecording) return false;
  char* segment = g_state->segment.load(std::memory_order_relaxed);
  return abi::SegmentView(segment).header().cupti_state.load(
             std::memory_order_relaxed) ==
         static_cast<uint32_t>(abi::CuptiState::kTracing);
}

AttachResult detach(const void* argument, size_t size) {
  if (!libdl::loaded_late()) return AttachResult::kPreloaded;
  abi::DetachRequest request;
  if (size != sizeof request) return AttachResult::kBadRequest;
  memcpy(&request, argument, size);
  if (request.magic != abi::kSegmentMagic || request.version != abi::kVersion) {
    return AttachResult::kBadRequest;
  }
  if (is_tracing() && request.force == 0) return AttachResult::kTracing;
  rest();
  pin_now();  // our dlclose goes with the slots
  g_phase = Phase::kAway;
  if (!slots_set(Slots::kTheirs, abi::kCallBudgetNs)) {
    return AttachResult::kMore;
  }
  return python_callbacks_are_out() ? AttachResult::kDone
                                    : AttachResult::kPythonPending;
}

void answer(AttachResult result, int64_t* out) { *out = static_cast<int64_t>(result); }

}  // namespace

#define LULL_ATTACH_EXPORT extern "C" __attribute__((visibility("protected")))

LULL_ATTACH_EXPORT void lull_attach(const void* argument, size_t size,
                                    int64_t* result) {
  ErrnoKeeper keep_errno;
  SignalsBlocked signals_blocked;
  OwnCall own(__builtin_frame_address(0));
  answer(attach(argument, size), result);
}

LULL_ATTACH_EXPORT void lull_detach(const void* argument, size_t size,
                                    int64_t* result) {
  ErrnoKeeper keep_errno;
  SignalsBlocked signals_blocked;
  OwnCall own(__builtin_frame_address(0));
  answer(detach(argument, size), result);
}

}  // namespace lull
