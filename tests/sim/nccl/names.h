// The calls that communicate, and what their kernels are called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace lull::sim::nccl {

enum class Function {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kReduce,
  kSend,
  kRecv
};

struct Call {
  Function function;
  size_t count = 0;   // as given to the call
  int type = 0;       // ncclDataType_t
  int operation = 0;  // ncclRedOp_t, of those that reduce
  uint32_t peer = 0;  // or root
  const void* from = nullptr;
  void* to = nullptr;
};

inline bool is_message(Function f) {
  return f == Function::kSend || f == Function::kRecv;
}
inline bool reduces(Function f) {
  return f == Function::kAllReduce || f == Function::kReduceScatter ||
         f == Function::kReduce;
}

// Those that only copy.
inline bool copies(Function f) {
  return f == Function::kAllGather || f == Function::kBroadcast;
}

// Bytes of one element; 0 if there is no such type.
size_t type_size(int type);
bool valid_operation(int operation);

const char* name(Function function);

// Bytes that cross the links of a rank, by the bandwidth-optimal ring among `size`.
double moved(const Call& call, uint32_t size);

// What the call is to all of its ranks: "AllReduce/Sum/f32/1024".
std::string describe(const Call& call);

// The mangled name of the kernel, as NCCL has named them since 2.19.
std::string kernel_name(const Call& call);

}  // namespace lull::sim::nccl
