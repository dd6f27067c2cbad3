// What PyTorch's allocators report.
//
//  * c10::reportMemoryUsageToProfiler: called by the CUDA caching allocator for
//    each block that it hands out or takes back, whether a profiler is on or not,
//    while it holds its lock. So nothing here takes the GIL, calls CUDA or waits.
//    Three manglings: up to 1.9, up to about 2.2, and since. From 1.10 on it says how
//    many bytes are allocated and reserved in all; the latter changes seldom and gets
//    an event of its own when it does.
//  * c10::ProfiledCPUMemoryReporter::New and Delete: called for each CPU tensor
//    block. They report on only while torch.profiler records memory; making them
//    always do so (by answering true for c10::memoryProfilingEnabled) would put
//    blocks into the user's profile that are not in it without us, warn on stderr
//    about blocks of unknown size, and cost a lock and a hash table per tensor.
//    Hence these two instead. Delete does not know the size: such frees have 0 bytes.
//
// All of them are forwarded unchanged, so that torch.profiler sees what it always
// sees. When it is on, New and Delete call reportMemoryUsageToProfiler themselves;
// the guard lets that inner call through unrecorded.
#include <atomic>

#include "preload/abi/hook_list.h"
#include "preload/autograd/backward.h"
#include "preload/hooks/record.h"
#include "preload/hooks/torch_original.h"
#include "preload/python/python.h"
#include "preload/python/step_hook.h"
#include "preload/stacks/interning.h"
#include "preload/steps/control_step.h"
#include "preload/support/raw_syscall.h"

namespace lull {
namespace {

using abi::HookId;

// c10::Device: two bytes, passed in one register.
struct Device {
  int8_t type;
  int8_t index;
};
constexpr Device kCpu{0, -1};
constexpr int8_t kCudaType = 1;

uint32_t bits(Device device) {
  return static_cast<uint32_t>(static_cast<uint8_t>(device.type)) << 8 |
         static_cast<uint8_t>(device.index);
}

// What an allocator holds of a device, by its own account.
struct Totals {
  bool told;
  uint64_t allocated;
  uint64_t reserved;
};
constexpr Totals kUntold{false, 0, 0};

// What was told last of each device. A fork child (`generation`) begins anew, and so
// does who has slept meanwhile. The allocator's lock lets in one thread at a time for
// each device.
struct Reserved {
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> asleep_since_ns{0};
  std::atomic<uint32_t> rests{0};
  std::atomic<uint32_t> generation{0};
};
constexpr size_t kMaxDevices = 64;
Reserved g_reserved[kMaxDevices];

// The segment to record into. An allocation makes a candidate start, a free does
// not, and neither does a constant that some module makes while it is imported.
char* segment_for(bool is_free) {
  char* segment = recording_segment();
  if (segment != nullptr || is_free) return segment;
  Mode mode = g_state->mode.load(std::memory_order_acquire);
  if (mode != Mode::kCandidate && mode != Mode::kUnknown) return nullptr;
  if (python_stack_contains("<frozen importlib._bootstrap>")) return nullptr;
  return try_start_recording(Trigger::kTensor);
}

// What an allocation tells of its line.
enum class Told { kAll, kDrawn, kNothing };

Told told_of(uint64_t bytes) {
  if (bytes >= abi::kSmallBytes) return Told::kAll;
  DrawnBlocks& drawn = t_thread.drawn;
  if (__builtin_expect(!drawn.is_seeded(), 0)) {
    drawn.seed(mix(monotonic_ns(), static_cast<uint64_t>(raw_gettid())));
  }
  return drawn.draws(bytes) ? Told::kDrawn : Told::kNothing;
}

abi::Ref native_stack_of(char* segment, uint64_t bytes) {
  return bytes >= abi::kUnthinnedBytes ? unthinned_native_stack(segment, 0)
                                       : native_stack(segment, 0);
}

// In a window of GPU tracing, where launches have native stacks, too: they name the
// operator (docs/operators.md). Of the host's tensors no operator is told.
bool is_of_traced_device(char* segment, Device device) {
  return device.type == kCudaType &&
         abi::SegmentView(segment).header().cupti_state.load(
             std::memory_order_relaxed) ==
             static_cast<uint32_t>(abi::CuptiState::kTracing);
}

// The operator that made a node has its line noted, whatever is told of its block. True
// if that took a stack.
bool note_untold(char* segment) {
  if (!a_node_is_new(segment)) return false;
  uint32_t thinning =
      abi::SegmentView(segment).control().thinning.load(std::memory_order_relaxed);
  bool takes_stack = thinning == abi::kThinNothing;
  note_forward(segment, takes_stack ? python_stack(segment) : 0);
  return takes_stack;
}

// The first report of a device says what was allocated of it before we looked.
void record_before(char* segment, uint64_t now, Device device, uint64_t bytes) {
  abi::Event* event = bytes == 0 ? nullptr : reserve_event(segment);
  if (event == nullptr) return;
  *event = {
      .start_ns = now,
      .duration_ns = 0,
      .arg0 = 0,
      .arg1 = bytes,
      .py_stack = 0,
      .native_stack = 0,
      .arg2 = bits(device),
      .api = 0,
      .type = abi::EventType::kTorchMemory,
      .flags = abi::kFlagBefore,
  };
  commit_event();
}

// `before`: what was allocated before the call that tells.
void record_reserved(char* segment, uint64_t now, Device device, const Totals& totals,
                     uint64_t before) {
  auto index = static_cast<uint8_t>(device.index);
  if (!totals.told || device.type != kCudaType || index >= kMaxDevices) return;
  Reserved& last = g_reserved[index];
  uint32_t generation = g_state->generation.load(std::memory_order_relaxed);
  uint64_t slept_ns = abi::SegmentView(segment).control().asleep_since_ns.load(
      std::memory_order_relaxed);
  uint32_t rests = control_steps_ended(segment);
  bool first = last.generation.load(std::memory_order_relaxed) != generation ||
               last.asleep_since_ns.load(std::memory_order_relaxed) != slept_ns ||
               last.rests.load(std::memory_order_relaxed) != rests;
  if (!first && last.bytes.load(std::memory_order_relaxed) == totals.reserved) return;
  if (first) record_before(segment, now, device, before);
  last.bytes.store(totals.reserved, std::memory_order_relaxed);
  last.asleep_since_ns.store(slept_ns, std::memory_order_relaxed);
  last.rests.store(rests, std::memory_order_relaxed);
  last.generation.store(generation, std::memory_order_relaxed);
  abi::Event* event = reserve_event(segment);
  if (event == nullptr) return;
  *event = {
      .start_ns = now,
      .duration_ns = 0,
      .arg0 = totals.allocated,
      .arg1 = totals.reserved,
      .py_stack = 0,
      .native_stack = 0,
      .arg2 = bits(device),
      .api = 0,
      .type = abi::EventType::kTorchReserved,
      .flags = 0,
  };
  commit_event();
}

void record(HookId hook, void* block, uint64_t bytes, bool is_free, Device device,
            const Totals& totals) {
  ErrnoKeeper keep_errno;
  char* segment = segment_for(is_free);
  if (segment == nullptr) return;
  uint64_t now = monotonic_ns();
  uint64_t before = is_free                     ? totals.allocated + bytes
                    : totals.allocated >= bytes ? totals.allocated - bytes
                                                : 0;
  record_reserved(segment, now, device, totals, before);
  abi::Ref python = 0;
  abi::Ref native = 0;
  bool took_stack = false;
  uint8_t flags = is_free ? abi::kFlagFree : 0;
  if (!is_free) {
    abi::SegmentView(segment).header().torch_allocations.fetch_add(
        1, std::memory_order_relaxed);
    step_hook_poll(now);
    Told told = told_of(bytes);
    if (told != Told::kNothing) {
      took_stack = true;
      python = python_stack(segment);
      if (python == 0 || is_backward_without_node(segment, python) ||
          is_of_traced_device(segment, device)) {
        native = native_stack_of(segment, bytes);
      }
      note_forward(segment, python);
      if (told == Told::kDrawn) flags |= abi::kFlagDrawn;
    } else {
      took_stack = note_untold(segment);
      flags |= abi::kFlagUndrawn;
    }
  }
  if (abi::Event* event = reserve_event(segment)) {
    *event = {
        .start_ns = now,
        .duration_ns = 0,
        .arg0 = reinterpret_cast<uint64_t>(block),
        .arg1 = bytes,
        .py_stack = python,
        .native_stack = native,
        .arg2 = bits(device),
        .api = static_cast<uint16_t>(hook),
        .type = abi::EventType::kTorchMemory,
        .flags = flags,
    };
    commit_event();
  }
  took_stack ? account_self(now) : account_self_sampled(now);
}

void report(const Guard& guard, HookId hook, void* block, int64_t bytes, Device device,
            const Totals& totals) {
  if (!guard.outermost() || bytes == 0) return;
  python_poll_install();
  uint64_t size = static_cast<uint64_t>(bytes);
  record(hook, block, bytes < 0 ? 0 - size : size, bytes < 0, device, totals);
}

TorchOriginal g_report, g_report_signed, g_report_unsigned, g_new, g_delete;

}  // namespace

#define LULL_TORCH_EXPORT extern "C" __attribute__((visibility("protected")))

// Calls the original and holds a Guard named `guard` around it and what follows. Asleep
// it does nothing but call: an eager trainer comes here a thousand times a step, and with
// `--sample-steps` most steps are slept through.
#define LULL_FORWARD(layer, name, slot, ...)                                          \
  if (is_asleep()) {                                                                  \
    if (auto* original = torch_original<decltype(name)>(                              \
            #name, __builtin_return_address(0), slot)) {                              \
      original(__VA_ARGS__);                                                          \
    }                                                                                 \
    return;                                                                           \
  }                                                                                   \
  Guard guard(__builtin_frame_address(0), layer);                                     \
  if (auto* original =                                                                \
          torch_original<decltype(name)>(#name, __builtin_return_address(0), slot)) { \
    original(__VA_ARGS__);                                                            \
  }                                                                                   \
  guard.own_work(__builtin_frame_address(0));

LULL_TORCH_EXPORT void _ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE(
    void* block, int64_t bytes, Device device) {
  LULL_FORWARD(Layer::kTorchReport, _ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE,
               g_report, block, bytes, device)
  report(guard, HookId::k__ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE, block,
         bytes, device, kUntold);
}

LULL_TORCH_EXPORT void _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE(
    void* block, int64_t bytes, int64_t allocated, int64_t reserved, Device device) {
  LULL_FORWARD(Layer::kTorchReport,
               _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE, g_report_signed,
               block, bytes, allocated, reserved, device)
  report(guard, HookId::k__ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE, block,
         bytes, device,
         {allocated >= 0 && reserved >= 0, static_cast<uint64_t>(allocated),
          static_cast<uint64_t>(reserved)});
}

LULL_TORCH_EXPORT void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(
    void* block, int64_t bytes, size_t allocated, size_t reserved, Device device) {
  LULL_FORWARD(Layer::kTorchReport,
               _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE, g_report_unsigned,
               block, bytes, allocated, reserved, device)
  report(guard, HookId::k__ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE, block,
         bytes, device, {true, allocated, reserved});
}

LULL_TORCH_EXPORT void _ZN3c1025ProfiledCPUMemoryReporter3NewEPvm(void* reporter,
                                                                  void* block,
                                                                  size_t bytes) {
  LULL_FORWARD(Layer::kTorch, _ZN3c1025ProfiledCPUMemoryReporter3NewEPvm, g_new,
               reporter, block, bytes)
  report(guard, HookId::k__ZN3c1025ProfiledCPUMemoryReporter3NewEPvm, block,
         static_cast<int64_t>(bytes), kCpu, kUntold);
}

LULL_TORCH_EXPORT void _ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv(void* reporter,
                                                                    void* block) {
  LULL_FORWARD(Layer::kTorch, _ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv, g_delete,
               reporter, block)
  if (guard.outermost() && block != nullptr) {
    record(HookId::k__ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv, block, 0, true, kCpu,
           kUntold);
  }
}

}  // namespace lull
