// Steps from an NVTX range that the user named (LULL_STEP_RANGE): a step ends where
// the range does.
//
// NVTX (version 3, header-only) loads what NVTX_INJECTION64_PATH names, once for each
// library that uses it, and calls InitializeInjectionNvtx2 with a way to its tables
// of function pointers (nvtxDetail/nvtxTypes.h, nvtxImpl.h). `lull run --step-range`
// sets the variable to this library. Nothing is called without it.
//
// What the functions return is what NVTX returns where no tool listens.
#include <stdint.h>
#include <string.h>

#include "preload/entry/settings.h"
#include "preload/hooks/record.h"
#include "preload/ring/writer.h"
#include "preload/steps/boundary.h"

namespace lull {
namespace {

constexpr uint32_t kCallbacksTable = 1;  // NVTX_ETID_CALLBACKS
constexpr uint32_t kCoreModule = 1;      // NVTX_CB_MODULE_CORE
enum CoreFunction : unsigned {           // NvtxCallbackIdCore
  kRangeStartEx = 4,
  kRangeStartA = 5,
  kRangeEnd = 7,
  kRangePushEx = 8,
  kRangePushA = 9,
  kRangePop = 11,
};

using NvtxFunction = void (*)();
struct Callbacks {
  size_t struct_size;
  int (*get_module)(uint32_t module, NvtxFunction*** table, unsigned* size);
};

// The head of nvtxEventAttributes_t, version 2 and 3.
struct Attributes {
  uint16_t version;
  uint16_t size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type;
  int32_t reserved;
  uint64_t payload;
  int32_t message_type;
  const char* message;
};
static_assert(sizeof(Attributes) == 48);
constexpr int32_t kAsciiMessage = 1;    // NVTX_MESSAGE_TYPE_ASCII
constexpr int kNoPushPopTracking = -2;  // NVTX_NO_PUSH_POP_TRACKING
constexpr uint64_t kOurRange = 1;       // any id but 0, which is everybody else's

// Which of this thread's open ranges are ours: a bit each, the innermost lowest.
// Ranges nested deeper than 64 are none of ours.
struct OpenRanges {
  uint64_t ours;
  uint32_t depth;
};
constinit thread_local OpenRanges t_open
    __attribute__((tls_model("initial-exec"))) = {0, 0};

bool is_step(const char* name) {
  return name != nullptr && strcmp(name, settings().step_range) == 0;
}
const char* name_of(const Attributes* attributes) {
  return attributes != nullptr && attributes->size >= sizeof(Attributes) &&
                 attributes->message_type == kAsciiMessage
             ? attributes->message
             : nullptr;
}

int push(const char* name) {
  if (t_open.depth++ < 64) t_open.ours = t_open.ours << 1 | uint64_t{is_step(name)};
  return kNoPushPopTracking;
}

void end_step() {
  ErrnoKeeper keep_errno;
  Guard guard(__builtin_frame_address(0), Layer::kTorch);
  if (!guard.outermost()) return;
  guard.own_work(__builtin_frame_address(0));
  step_boundary(abi::StepSource::kNvtxRange);
}

int push_named(const char* name) { return push(name); }
int push_with_attributes(const Attributes* attributes) {
  return push(name_of(attributes));
}
int pop() {
  if (t_open.depth == 0) return kNoPushPopTracking;
  if (--t_open.depth >= 64) return kNoPushPopTracking;
  bool ours = (t_open.ours & 1) != 0;
  t_open.ours >>= 1;
  if (ours) end_step();
  return kNoPushPopTracking;
}
uint64_t start_named(const char* name) { return is_step(name) ? kOurRange : 0; }
uint64_t start_with_attributes(const Attributes* attributes) {
  return start_named(name_of(attributes));
}
void end(uint64_t range) {
  if (range == kOurRange) end_step();
}

template <typename Function>
void listen(NvtxFunction** table, unsigned size, CoreFunction id, Function* function) {
  if (id < size && table[id] != nullptr) {
    *table[id] = reinterpret_cast<NvtxFunction>(function);
  }
}

}  // namespace

// 1: we listen. 0: NVTX stays as it is.
extern "C" __attribute__((visibility("protected"))) int InitializeInjectionNvtx2(
    const void* (*get_table)(uint32_t)) {
  if (!settings().enabled || settings().step_range[0] == 0) return 0;
  auto* callbacks = static_cast<const Callbacks*>(get_table(kCallbacksTable));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(Callbacks)) return 0;
  NvtxFunction** table = nullptr;
  unsigned size = 0;
  if (callbacks->get_module(kCoreModule, &table, &size) == 0 || table == nullptr) {
    return 0;
  }
  listen(table, size, kRangePushA, push_named);
  listen(table, size, kRangePushEx, push_with_attributes);
  listen(table, size, kRangePop, pop);
  listen(table, size, kRangeStartA, start_named);
  listen(table, size, kRangeStartEx, start_with_attributes);
  listen(table, size, kRangeEnd, end);
  return 1;
}

}  // namespace lull
