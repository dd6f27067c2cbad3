// NCCL: which collective is which, on all ranks. An event is made in windows of GPU
// tracing alone, since what matters is when its kernel ran; but collectives are always
// counted (communicators.h).
//
// No Guard is held while NCCL works: the launches below it are launches like any
// others, and their hooks record them. Functions of NCCL call each other, so only the
// outermost counts.
#include "preload/hooks/communicators.h"
#include "preload/hooks/cuda_record.h"
#include "preload/hooks/nccl_original.h"
#include "preload/support/symbols.h"

namespace lull {
namespace {

constexpr int kNcclInProgress = 7;  // of a communicator that does not block
constexpr int kNoColor = -1;        // NCCL_SPLIT_NOCOLOR

Communicators g_communicators;

class NcclCall {
 public:
  explicit NcclCall(const void* original)
      : original_(original),
        outermost_(t_nccl.depth++ == 0),
        start_ns_(monotonic_ns()) {}
  ~NcclCall() { --t_nccl.depth; }
  NcclCall(const NcclCall&) = delete;
  NcclCall& operator=(const NcclCall&) = delete;

  bool counts(int status) const {
    return outermost_ && (status == 0 || status == kNcclInProgress);
  }
  const void* original() const { return original_; }
  uint64_t start_ns() const { return start_ns_; }

 private:
  const void* original_;
  bool outermost_;
  uint64_t start_ns_;
};

// What a row of the hook list says of a call.
struct Work {
  const void* communicator;
  uint64_t bytes;
  bool all;         // all ranks wait for all others: their kernels end together
  bool collective;  // all ranks make this call
};
inline Work of_all(const void* communicator, size_t count, int datatype) {
  return {communicator, count * bytes_of_type(datatype), true, true};
}
inline Work of_some(const void* communicator) { return {communicator, 0, false, true}; }
inline Work of_two(const void* communicator) { return {communicator, 0, false, false}; }

// How many ranks a communicator has that was split off: only NCCL knows. A pure getter,
// of the library that `original` is of.
uint32_t members_of(Communicator& communicator, const void* original) {
  if (communicator.members != 0) return communicator.members;
  auto* count = reinterpret_cast<int (*)(const void*, int*)>(
      symbol_beside(original, "ncclCommCount"));
  int members = 0;
  if (count != nullptr &&
      count(communicator.handle.load(std::memory_order_relaxed), &members) == 0 &&
      members > 0) {
    communicator.members = static_cast<uint32_t>(members);
  }
  return communicator.members;
}

// `comparable`: its kernels end together on all ranks. Else its number is told by none.
void record(const NcclCall& call, Communicator& communicator, uint16_t hook,
            uint64_t bytes, bool comparable, void* frame) {
  uint32_t number =
      communicator.collectives.fetch_add(1, std::memory_order_relaxed) + 1;
  char* segment = recording_segment();
  if (segment == nullptr) return;
  CudaCall made = {segment,           call.start_ns(), monotonic_ns(),
                   abi::HookId{hook}, Library::kNccl,  false};
  if (!is_traced(made)) return;
  Guard guard(frame, Layer::kRuntime);
  if (!guard.outermost()) return;
  ErrnoKeeper keeper;
  uint64_t members = members_of(communicator, call.original());
  guard.own_work(frame);
  uint64_t kib = bytes / 1024 + (bytes % 1024 != 0);
  commit_traced(made, {abi::EventType::kCollective, 0, comparable ? communicator.id : 0,
                       uint64_t{number} | members << 32,
                       kib > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(kib)});
}

void join_group(Communicator& communicator, uint16_t hook, const Work& work) {
  if (!communicator.in_group) {
    communicator.in_group = true;
    communicator.group_hook = 0;
    communicator.group_bytes = 0;
    communicator.group_has_some = false;
    communicator.next_in_group = t_nccl.first;
    t_nccl.first = static_cast<uint16_t>(g_communicators.IndexOf(communicator) + 1);
  }
  if (!work.all) communicator.group_has_some = true;
  if (work.collective && communicator.group_hook == 0) communicator.group_hook = hook;
  communicator.group_bytes += work.bytes;
}

void end_group(const NcclCall& call, bool succeeded, void* frame) {
  uint32_t next = t_nccl.first;
  t_nccl.first = 0;
  // Bounded, should two threads use one communicator, which NCCL forbids.
  for (uint32_t i = 0; next != 0 && i < Communicators::kMost; ++i) {
    Communicator& one = g_communicators.At(next - 1);
    next = one.next_in_group;
    one.in_group = false;
    if (!succeeded || one.group_hook == 0) continue;
    if (one.handle.load(std::memory_order_relaxed) == nullptr) continue;  // destroyed
    record(call, one, one.group_hook, one.group_bytes, !one.group_has_some, frame);
  }
}

void submitted(const NcclCall& call, abi::HookId hook, const Work& work, void* frame) {
  Communicator* communicator = g_communicators.Find(work.communicator);
  if (communicator == nullptr) return;
  auto id = static_cast<uint16_t>(hook);
  if (t_nccl.groups > 0) return join_group(*communicator, id, work);
  if (work.collective) record(call, *communicator, id, work.bytes, work.all, frame);
}

// Nothing will ever be recorded here, so nobody needs numbers.
bool is_inert_for_good() {
  return g_state->mode.load(std::memory_order_relaxed) == Mode::kInert;
}

}  // namespace

#define LULL_NCCL_BEGIN(name, parameters, arguments)                           \
  auto* original = nccl_original<int parameters>(#name, NcclIndex::k_##name,   \
                                                 __builtin_return_address(0)); \
  if (__builtin_expect(original == nullptr, 0)) return kNcclInternalError;     \
  if (__builtin_expect(is_inert_for_good(), 0)) return original arguments;     \
  NcclCall call(reinterpret_cast<const void*>(original));                      \
  int status = original arguments

#define LULL_NCCL_ENTRY(name) \
  LULL_TABLE_ENTRY(name, name, kNccl, g_nccl_originals[size_t(NcclIndex::k_##name)])

#define LULL_ON_collective(id, need, result, name, parameters, arguments, event) \
  LULL_EXPORT int name parameters {                                              \
    LULL_NCCL_BEGIN(name, parameters, arguments);                                \
    if (call.counts(status)) {                                                   \
      submitted(call, abi::HookId::k_##name, event, __builtin_frame_address(0)); \
    }                                                                            \
    return status;                                                               \
  }                                                                              \
  LULL_NCCL_ENTRY(name)
#define LULL_ON_life(...)
#define LULL_ROW(id, family, ...) LULL_ON_##family(id, __VA_ARGS__)
LULL_NCCL_HOOKS(LULL_ROW)

LULL_EXPORT int ncclGroupStart() {
  LULL_NCCL_BEGIN(ncclGroupStart, (), ());
  if (call.counts(status)) ++t_nccl.groups;
  return status;
}
LULL_NCCL_ENTRY(ncclGroupStart)

LULL_EXPORT int ncclGroupEnd() {
  LULL_NCCL_BEGIN(ncclGroupEnd, (), ());
  // NCCL has closed the group also where what was in it has failed.
  if (t_nccl.depth == 1 && t_nccl.groups > 0 && --t_nccl.groups == 0) {
    end_group(call, call.counts(status), __builtin_frame_address(0));
  }
  return status;
}
LULL_NCCL_ENTRY(ncclGroupEnd)

LULL_EXPORT int ncclCommInitRank(void** out, int members, UniqueId id, int rank) {
  LULL_NCCL_BEGIN(ncclCommInitRank, (void** out, int members, UniqueId id, int rank),
                  (out, members, id, rank));
  if (call.counts(status) && out != nullptr && members > 0) {
    g_communicators.Add(*out, communicator_id(&id, 1), static_cast<uint32_t>(members));
  }
  return status;
}
LULL_NCCL_ENTRY(ncclCommInitRank)

LULL_EXPORT int ncclCommInitRankConfig(void** out, int members, UniqueId id, int rank,
                                       void* config) {
  LULL_NCCL_BEGIN(ncclCommInitRankConfig,
                  (void** out, int members, UniqueId id, int rank, void* config),
                  (out, members, id, rank, config));
  if (call.counts(status) && out != nullptr && members > 0) {
    g_communicators.Add(*out, communicator_id(&id, 1), static_cast<uint32_t>(members));
  }
  return status;
}
LULL_NCCL_ENTRY(ncclCommInitRankConfig)

LULL_EXPORT int ncclCommInitRankScalable(void** out, int members, int rank, int ids,
                                         UniqueId* id, void* config) {
  LULL_NCCL_BEGIN(
      ncclCommInitRankScalable,
      (void** out, int members, int rank, int ids, UniqueId* id, void* config),
      (out, members, rank, ids, id, config));
  if (call.counts(status) && out != nullptr && id != nullptr && members > 0) {
    g_communicators.Add(*out, communicator_id(id, ids), static_cast<uint32_t>(members));
  }
  return status;
}
LULL_NCCL_ENTRY(ncclCommInitRankScalable)

LULL_EXPORT int ncclCommSplit(void* comm, int color, int key, void** out,
                              void* config) {
  LULL_NCCL_BEGIN(ncclCommSplit,
                  (void* comm, int color, int key, void** out, void* config),
                  (comm, color, key, out, config));
  Communicator* parent = g_communicators.Find(comm);
  if (call.counts(status) && parent != nullptr) {
    uint32_t split = parent->splits.fetch_add(1, std::memory_order_relaxed);
    if (color != kNoColor && out != nullptr) {
      g_communicators.Add(*out, split_id(parent->id, split, color), 0);
    }
  }
  return status;
}
LULL_NCCL_ENTRY(ncclCommSplit)

// Its address may come again while the original is still at work.
LULL_EXPORT int ncclCommDestroy(void* comm) {
  g_communicators.Remove(comm);
  LULL_NCCL_BEGIN(ncclCommDestroy, (void* comm), (comm));
  return status;
}
LULL_NCCL_ENTRY(ncclCommDestroy)

LULL_EXPORT int ncclCommAbort(void* comm) {
  g_communicators.Remove(comm);
  LULL_NCCL_BEGIN(ncclCommAbort, (void* comm), (comm));
  return status;
}
LULL_NCCL_ENTRY(ncclCommAbort)

}  // namespace lull
