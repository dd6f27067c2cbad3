// Collectives, messages, groups.
#include "tests/sim/nccl/api.h"
#include "tests/sim/nccl/group.h"

using namespace lull::sim::nccl;

namespace {

int enqueue(void* handle, void* stream, Call call) {
  Group& group = Group::mine();
  if (!is_live(handle)) return group.refuse(kInvalidArgument);
  auto* communicator = static_cast<Communicator*>(handle);
  if (type_size(call.type) == 0 || call.peer >= communicator->size() ||
      (reduces(call.function) && !valid_operation(call.operation))) {
    return group.refuse(kInvalidArgument);
  }
  return group.add_call(communicator, stream, call);
}

// A rank below 0 is none.
uint32_t peer(int rank) { return static_cast<uint32_t>(rank); }

}  // namespace

SIM_EXPORT int ncclAllReduce(const void*, void*, size_t count, int type, int operation,
                             void* communicator, void* stream) {
  return enqueue(communicator, stream, {Function::kAllReduce, count, type, operation});
}
SIM_EXPORT int ncclAllGather(const void* from, void* to, size_t count, int type,
                             void* communicator, void* stream) {
  return enqueue(communicator, stream,
                 {Function::kAllGather, count, type, 0, 0, from, to});
}
SIM_EXPORT int ncclReduceScatter(const void*, void*, size_t count, int type,
                                 int operation, void* communicator, void* stream) {
  return enqueue(communicator, stream,
                 {Function::kReduceScatter, count, type, operation});
}
SIM_EXPORT int ncclBroadcast(const void* from, void* to, size_t count, int type,
                             int root, void* communicator, void* stream) {
  return enqueue(communicator, stream,
                 {Function::kBroadcast, count, type, 0, peer(root), from, to});
}
SIM_EXPORT int ncclBcast(void* bytes, size_t count, int type, int root,
                         void* communicator, void* stream) {
  return enqueue(communicator, stream,
                 {Function::kBroadcast, count, type, 0, peer(root), bytes, bytes});
}
SIM_EXPORT int ncclReduce(const void*, void*, size_t count, int type, int operation,
                          int root, void* communicator, void* stream) {
  return enqueue(communicator, stream,
                 {Function::kReduce, count, type, operation, peer(root)});
}
SIM_EXPORT int ncclSend(const void*, size_t count, int type, int to, void* communicator,
                        void* stream) {
  return enqueue(communicator, stream, {Function::kSend, count, type, 0, peer(to)});
}
SIM_EXPORT int ncclRecv(void*, size_t count, int type, int from, void* communicator,
                        void* stream) {
  return enqueue(communicator, stream, {Function::kRecv, count, type, 0, peer(from)});
}

SIM_EXPORT int ncclGroupStart() {
  Group::mine().start();
  return kSuccess;
}
SIM_EXPORT int ncclGroupEnd() { return Group::mine().end(); }

// Declared without parameters: none is looked at.
#define X(name) \
  SIM_EXPORT int name() { return kInvalidUsage; }
X(ncclCommRegister)
X(ncclCommDeregister)
X(ncclCommShrink)
X(ncclCommWindowRegister)
X(ncclCommWindowDeregister)
X(ncclGroupSimulateEnd)
X(ncclMemAlloc)
X(ncclMemFree)
X(ncclRedOpCreatePreMulSum)
X(ncclRedOpDestroy)
#undef X
