#include "preload/scopes/scope.h"

#include "preload/entry/state.h"
#include "preload/hooks/record.h"
#include "preload/python/api.h"
#include "preload/python/python.h"
#include "preload/python/step_hook.h"
#include "preload/scopes/open_scopes.h"
#include "preload/scopes/scope_name.h"
#include "preload/scopes/started_ranges.h"
#include "preload/stacks/interning.h"
#include "preload/support/raw_syscall.h"

namespace lull {
namespace {

constinit OpenScopes g_open;
constinit StartedRanges g_ranges;

// Names that are made up as the program runs must not fill the arena.
constexpr uint32_t kMostNameBytes = 512 << 10;

ThreadScopes& this_thread(uint32_t generation) {
  ThreadScopes& thread = t_scopes;
  if (__builtin_expect(thread.generation != generation, 0)) {
    thread = {generation, static_cast<uint32_t>(raw_gettid()), 0, 0, 0, 0};
  }
  return thread;
}

// As for waits (hooks/wait_recorder.h): of the threads that the GPU waits for.
bool holds_up_the_training() {
  return t_thread.watched != 0 || (python_api() != nullptr && python_is_main_thread());
}

abi::ScopeKind kind_of(const ScopeName& name) {
  if (!name.of_loader) return abi::ScopeKind::kUser;
  return holds_up_the_training() ? abi::ScopeKind::kData : abi::ScopeKind::kDataAside;
}

uint32_t thinning(char* segment) {
  return abi::SegmentView(segment).control().thinning.load(std::memory_order_relaxed);
}

// Those by which data and steps are known are few.
bool is_thinned(char* segment, const ScopeName& name) {
  if (name.of_loader || name.of_optimizer) return false;
  if (thinning(segment) < abi::kThinLaunches) return false;
  abi::SegmentView(segment).header().scopes_thinned.fetch_add(
      1, std::memory_order_relaxed);
  return true;
}

void count_unopened(char* segment, uint32_t count) {
  abi::SegmentView(segment).header().scopes_unopened.fetch_add(
      count, std::memory_order_relaxed);
}

void leave_unopened(char* segment, uint64_t entered) {
  count_unopened(segment, 1);
  account_self_sampled(entered);
}

// What the thread begins from here on is told as if it were within nothing.
void tell_of_cuts(char* segment, ThreadScopes& thread) {
  if (__builtin_expect(thread.cut == 0, 1)) return;
  count_unopened(segment, thread.cut);
  thread.cut = 0;
}

abi::Ref intern_name(char* segment, const ScopeName& name) {
  ArenaShare share = {&abi::SegmentView(segment).header().scope_bytes, kMostNameBytes};
  abi::TextEntry entry = {
      {abi::EntryKind::kText, 0}, 0, static_cast<uint32_t>(name.size), 0};
  return intern_entry(segment, &entry, sizeof entry, name.text, name.size, &share);
}

// `names`: its own, and those around it, innermost first.
void nest(char* segment, uint64_t* names, uint32_t count, Scope* scope) {
  abi::SegmentHeader& header = abi::SegmentView(segment).header();
  ArenaShare share = {&header.scope_bytes, kMostNameBytes};
  if (scope->name != 0) {
    uint32_t flags = count < scope->depth ? uint32_t{abi::kStackTruncated} : 0;
    scope->stack =
        intern_stack(segment, abi::EntryKind::kScopeStack, names, count, flags, &share);
  }
  if (scope->stack == 0) {
    header.scopes_unnamed.fetch_add(1, std::memory_order_relaxed);
  }
}

// `thread` is within the scope already, which has no name yet.
void give_name(char* segment, const ScopeName& name, const ThreadScopes& thread,
               Scope* scope) {
  uint64_t names[abi::kMaxNativeFrames];
  scope->name = intern_name(segment, name);
  uint32_t count = g_open.names(thread, names, abi::kMaxNativeFrames);
  nest(segment, names, count, scope);
}

void write(char* segment, const Scope& scope, uint64_t end_ns, bool elsewhere,
           abi::ScopeSource source) {
  bool stackless = scope.kind == abi::ScopeKind::kUser && !scope.of_optimizer &&
                   thinning(segment) >= abi::kThinNativeStacks;
  abi::Ref python = stackless ? 0 : python_stack(segment);
  if (abi::Event* event = reserve_event(segment)) {
    *event = {
        .start_ns = scope.start_ns,
        .duration_ns = end_ns - scope.start_ns,
        .arg0 = elsewhere ? scope.tid : 0,
        .arg1 = uint64_t{scope.depth} | static_cast<uint64_t>(source) << 32,
        .py_stack = python,
        .native_stack = scope.stack,
        .arg2 = static_cast<uint32_t>(scope.kind),
        .api = 0,
        .type = abi::EventType::kScope,
        .flags = stackless ? uint8_t{abi::kFlagStackThinned} : uint8_t{0},
    };
    commit_event();
  }
  if (scope.of_optimizer) step_scope_ended(python);
}

bool slept_since(char* segment, uint64_t time_ns) {
  return abi::SegmentView(segment).control().asleep_since_ns.load(
             std::memory_order_relaxed) >= time_ns;
}

// What has ended `now`, of this generation.
void tell(const Scope& scope, uint64_t now, bool elsewhere, abi::ScopeSource source,
          void* frame) {
  char* segment = recording_segment();
  if (segment == nullptr || now < scope.start_ns ||
      slept_since(segment, scope.start_ns)) {
    return;
  }
  Guard guard(frame, Layer::kTorch);
  if (!guard.outermost()) return;
  guard.own_work(frame);
  write(segment, scope, now, elsewhere, source);
  account_self(now);
}

}  // namespace

void scope_begin(uint64_t key, const char* name) {
  char* segment = recording_segment();
  if (segment == nullptr) return;
  ErrnoKeeper keep_errno;
  Guard guard(__builtin_frame_address(0), Layer::kTorch);
  if (!guard.outermost()) return;
  guard.own_work(__builtin_frame_address(0));
  uint64_t entered = monotonic_ns();
  ThreadScopes& thread =
      this_thread(g_state->generation.load(std::memory_order_relaxed));
  ScopeName judged = judge_scope_name(name);
  if (is_thinned(segment, judged)) {
    g_open.forget(key, thread.generation);
    return account_self_sampled(entered);
  }
  Scope* scope = g_open.begin(key, kind_of(judged), thread);
  tell_of_cuts(segment, thread);
  if (scope == nullptr) return leave_unopened(segment, entered);
  scope->of_optimizer = judged.of_optimizer;
  give_name(segment, judged, thread, scope);
  account_self_sampled(entered);
  scope->start_ns = monotonic_ns();
}

void scope_unopened() {
  if (char* segment = recording_segment()) count_unopened(segment, 1);
}

void scope_end(uint64_t key, abi::ScopeSource source) {
  uint32_t generation = g_state->generation.load(std::memory_order_relaxed);
  if (generation == 0) return;  // a fork child that records nothing
  uint64_t now = monotonic_ns();
  ErrnoKeeper keep_errno;
  Scope scope;
  bool elsewhere;
  // Also where nothing is recorded any more: it is over.
  if (!g_open.end(key, this_thread(generation), &scope, &elsewhere)) return;
  tell(scope, now, elsewhere, source, __builtin_frame_address(0));
}

void range_begin(uint64_t number, const char* name) {
  char* segment = recording_segment();
  if (segment == nullptr) return;
  ErrnoKeeper keep_errno;
  Guard guard(__builtin_frame_address(0), Layer::kTorch);
  if (!guard.outermost()) return;
  guard.own_work(__builtin_frame_address(0));
  uint64_t entered = monotonic_ns();
  uint32_t generation = g_state->generation.load(std::memory_order_relaxed);
  const ThreadScopes& thread = this_thread(generation);
  ScopeName judged = judge_scope_name(name);
  if (is_thinned(segment, judged)) return account_self_sampled(entered);
  Scope* scope = g_ranges.begin(number, generation);
  if (scope == nullptr) return leave_unopened(segment, entered);
  uint64_t names[abi::kMaxNativeFrames];
  uint32_t around = g_open.names(thread, names + 1, abi::kMaxNativeFrames - 1);
  const uint32_t depth = g_open.open_in(thread) + 1;
  *scope = {0, 0, 0, thread.tid, depth, abi::ScopeKind::kUser, false};
  scope->name = names[0] = intern_name(segment, judged);
  nest(segment, names, around + 1, scope);
  account_self_sampled(entered);
  scope->start_ns = monotonic_ns();
}

void range_end(uint64_t number, abi::ScopeSource source) {
  uint32_t generation = g_state->generation.load(std::memory_order_relaxed);
  if (generation == 0) return;
  uint64_t now = monotonic_ns();
  ErrnoKeeper keep_errno;
  Scope scope;
  if (!g_ranges.end(number, generation, &scope)) return;
  tell(scope, now, scope.tid != this_thread(generation).tid, source,
       __builtin_frame_address(0));
}

}  // namespace lull
