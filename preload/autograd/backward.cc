#include "preload/autograd/backward.h"

#include <string.h>
#include <sys/prctl.h>

#include "preload/abi/segment.h"
#include "preload/autograd/forward_table.h"
#include "preload/autograd/node.h"
#include "preload/entry/state.h"
#include "preload/hooks/record.h"
#include "preload/stacks/interning.h"
#include "preload/stacks/stacks.h"
#include "preload/support/libdl.h"
#include "preload/support/raw_syscall.h"

namespace lull {
namespace {

ForwardTable g_forward;
BackwardCallers g_callers;

// Longer ones are those of templates.
constexpr size_t kMostTypeName = 512;

uint32_t generation() { return g_state->generation.load(std::memory_order_relaxed); }

// A thread that began before we came has a name by which it is known (2.6 and later).
__attribute__((cold, noinline)) bool judge_thread() {
  constexpr char kPrefix[] = "pt_autograd_";
  char name[16] = {};  // TASK_COMM_LEN
  ErrnoKeeper keep_errno;
  syscall(SYS_prctl, PR_GET_NAME, name, 0, 0, 0);
  bool engines = memcmp(name, kPrefix, sizeof kPrefix - 1) == 0;
  t_autograd.is_engines = engines ? kEngines : kOther;
  return engines;
}

bool is_of_the_engine() {
  uint32_t judged = t_autograd.is_engines;
  if (__builtin_expect(judged == kNotJudged, 0)) return judge_thread();
  return judged == kEngines;
}

abi::Ref intern_type(char* segment, const char* type) {
  size_t size = type == nullptr ? 0 : strnlen(type, kMostTypeName);
  if (size == 0) return 0;
  abi::TextEntry entry = {
      {abi::EntryKind::kText, 0}, 0, static_cast<uint32_t>(size), 0};
  return intern_entry(segment, &entry, sizeof entry, type, size);
}

const abi::EntryHeader& header_of(char* segment, abi::Ref stack) {
  return *reinterpret_cast<const abi::EntryHeader*>(
      abi::SegmentView(segment).entry(stack));
}

uint64_t asleep_since(char* segment) {
  return abi::SegmentView(segment).control().asleep_since_ns.load(
      std::memory_order_relaxed);
}

// We have looked at this thread since recording began, or began again.
bool is_followed(char* segment) {
  const ThreadAutograd& thread = t_autograd;
  return thread.generation == generation() &&
         thread.asleep_since_ns == asleep_since(segment);
}

// One of the engine's own, at work on a node. The name alone does not say it: every
// thread that one of the engine's makes inherits it.
bool is_in_a_node() {
  if (t_autograd.is_engines != kEngines) return false;
  Node node;
  return !autograd_is_known() || current_node(&node);
}

}  // namespace

constinit thread_local ThreadAutograd t_autograd
    __attribute__((tls_model("initial-exec"))) = {};

abi::Ref backward_stack(char* segment) {
  if (!is_of_the_engine()) return 0;
  abi::BackwardEntry entry = {};
  entry.header.kind = abi::EntryKind::kBackward;
  const bool known = autograd_is_known();
  entry.caller = g_callers.only(generation(), known ? graph_task() : kNoTask);
  if (known) {
    Node node;
    if (!current_node(&node)) return 0;
    entry.node = intern_type(segment, node.type);
    entry.forward =
        g_forward.find(generation(), node.forward_thread, node.sequence_number);
  }
  if (entry.node == 0 && entry.caller == 0) return 0;
  return intern_entry(segment, &entry, sizeof entry);
}

abi::Ref backward_within(char* segment, abi::Ref stack) {
  abi::Ref backward = stack == 0 ? 0 : backward_stack(segment);
  return backward != 0 ? backward : stack;
}

void backward_begin(void* frame) {
  ThreadAutograd& thread = t_autograd;
  // A node that calls backward() again is still the work of whoever called first.
  const bool is_within =
      thread.within > 0 || (thread.backward.depth == 0 && is_in_a_node());
  abi::Ref all = 0, tip = 0;
  uint32_t taken_in = 0;
  if (char* segment = recording_segment()) {
    ErrnoKeeper keep_errno;
    Guard guard(frame, Layer::kTorch);
    if (guard.outermost()) {
      guard.own_work(frame);
      taken_in = generation();
      all = python_stack(segment);
      tip = is_within ? python_tip(segment) : 0;
    }
  }
  if (!is_within) {
    return g_callers.enter(taken_in, all, libdl::loaded_late(), &thread.backward);
  }
  if (thread.within < kMostAround) {
    memcpy(thread.around[thread.within], thread.at_engine, sizeof thread.at_engine);
  }
  ++thread.within;
  thread.at_engine[0] = all;
  thread.at_engine[1] = tip;
}

void backward_end() {
  ThreadAutograd& thread = t_autograd;
  if (thread.within == 0) return g_callers.leave(&thread.backward);
  --thread.within;
  if (thread.within < kMostAround) {
    memcpy(thread.at_engine, thread.around[thread.within], sizeof thread.at_engine);
  } else {
    memset(thread.at_engine, 0, sizeof thread.at_engine);
  }
}

bool is_backward(char* segment, abi::Ref stack) {
  return stack != 0 && header_of(segment, stack).kind == abi::EntryKind::kBackward;
}

bool is_backward_without_node(char* segment, abi::Ref stack) {
  return is_backward(segment, stack) && reinterpret_cast<const abi::BackwardEntry*>(
                                            abi::SegmentView(segment).entry(stack))
                                                ->node == 0;
}

void note_forward(char* segment, abi::Ref python) {
  if (!autograd_is_known()) return;
  ThreadAutograd& thread = t_autograd;
  const uint64_t made = nodes_made(), before = thread.noted;
  thread.noted = made;
  if (__builtin_expect(!is_followed(segment), 0)) {
    thread.generation = generation();
    thread.asleep_since_ns = asleep_since(segment);
    return;
  }
  if (made == before) return;
  if (is_backward(segment, python)) python = 0;
  if (thread.thread == 0) {
    uint64_t number = forward_thread();
    thread.thread =
        number < UINT32_MAX - 1 ? static_cast<uint32_t>(number) + 1 : UINT32_MAX;
  }
  g_forward.put(generation(), thread.thread - 1, made - 1, python);
}

bool a_node_is_new(char* segment) {
  return autograd_is_known() &&
         (nodes_made() != t_autograd.noted || !is_followed(segment));
}

}  // namespace lull
