// NVTX ranges: regions (preload/scopes), and steps from the one that the user named
// (LULL_STEP_RANGE): a step ends where the range does.
//
// NVTX (version 3, header-only) loads what NVTX_INJECTION64_PATH names, once for each
// library that uses it, and calls InitializeInjectionNvtx2 with a way to its tables
// of function pointers (nvtxDetail/nvtxTypes.h, nvtxImpl.h). `lull run` sets
// the variable to this library, unless another tool has it. Nothing is called without
// it. Ranges of domains (the nvtx package of Python) are not listened to.
//
// What the functions return is what NVTX returns where no tool listens.
#include <stdint.h>
#include <string.h>

#include <atomic>

#include "preload/entry/settings.h"
#include "preload/hooks/record.h"
#include "preload/ring/writer.h"
#include "preload/scopes/scope.h"
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
  kRangePushW = 10,
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

// Which of this thread's open ranges are steps: a bit each, the innermost lowest.
// Ranges nested deeper than 64 are neither steps nor regions.
struct OpenRanges {
  uint64_t ours;
  uint32_t depth;
};
constinit thread_local OpenRanges t_open
    __attribute__((tls_model("initial-exec"))) = {0, 0};

bool is_step(const char* name) {
  return name != nullptr && settings().step_range[0] != 0 &&
         strcmp(name, settings().step_range) == 0;
}

// Keys of scopes that are none of PyTorch's: of this thread's range at a depth, by
// where its thread-local storage lies.
constexpr uint64_t kNotPyTorchs = uint64_t{1} << 51;
uint64_t key_at(uint32_t depth) {
  uint64_t thread = reinterpret_cast<uintptr_t>(&t_open) & (kNotPyTorchs / 2 - 1);
  return kNotPyTorchs | (thread + depth);
}
uint64_t number_of(uint64_t range) { return range & (kNotPyTorchs - 1); }

// Ids of ranges that are ended by id: odd for steps, never 0.
std::atomic<uint64_t> g_ranges{0};
const char* name_of(const Attributes* attributes) {
  return attributes != nullptr && attributes->size >= sizeof(Attributes) &&
                 attributes->message_type == kAsciiMessage
             ? attributes->message
             : nullptr;
}

int push(const char* name) {
  uint32_t depth = t_open.depth++;
  if (depth < 64) {
    t_open.ours = t_open.ours << 1 | uint64_t{is_step(name)};
    scope_begin(key_at(depth), name);
  } else {
    scope_unopened();
  }
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
// A wide name: nobody's step, and a region without a name; its pop is like any other.
int push_wide(const wchar_t*) { return push(nullptr); }
int push_with_attributes(const Attributes* attributes) {
  return push(name_of(attributes));
}
int pop() {
  if (t_open.depth == 0) return kNoPushPopTracking;
  if (--t_open.depth >= 64) return kNoPushPopTracking;
  bool ours = (t_open.ours & 1) != 0;
  t_open.ours >>= 1;
  scope_end(key_at(t_open.depth), abi::ScopeSource::kNvtx);
  if (ours) end_step();
  return kNoPushPopTracking;
}
uint64_t start_named(const char* name) {
  uint64_t range = 2 * (g_ranges.fetch_add(1, std::memory_order_relaxed) + 1) +
                   uint64_t{is_step(name)};
  range_begin(number_of(range), name);
  return range;
}
uint64_t start_with_attributes(const Attributes* attributes) {
  return start_named(name_of(attributes));
}
void end(uint64_t range) {
  if (range == 0) return;
  range_end(number_of(range), abi::ScopeSource::kNvtx);
  if ((range & 1) != 0) end_step();
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
  if (!settings().enabled) return 0;
  auto* callbacks = static_cast<const Callbacks*>(get_table(kCallbacksTable));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(Callbacks)) return 0;
  NvtxFunction** table = nullptr;
  unsigned size = 0;
  if (callbacks->get_module(kCoreModule, &table, &size) == 0 || table == nullptr) {
    return 0;
  }
  listen(table, size, kRangePushA, push_named);
  listen(table, size, kRangePushW, push_wide);
  listen(table, size, kRangePushEx, push_with_attributes);
  listen(table, size, kRangePop, pop);
  listen(table, size, kRangeStartA, start_named);
  listen(table, size, kRangeStartEx, start_with_attributes);
  listen(table, size, kRangeEnd, end);
  return 1;
}

}  // namespace lull
