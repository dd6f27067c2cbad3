#include "tests/sim/nccl/names.h"

#include <iterator>

namespace lull::sim::nccl {
namespace {

struct Type {
  const char* name;
  size_t size;
};
constexpr Type kTypes[] = {{"i8", 1},  {"u8", 1},   {"i32", 4},    {"u32", 4},
                           {"i64", 8}, {"u64", 8},  {"f16", 2},    {"f32", 4},
                           {"f64", 8}, {"bf16", 2}, {"f8e4m3", 1}, {"f8e5m2", 1}};
constexpr const char* kOperations[] = {"Sum", "Prod", "MinMax", "MinMax", "SumPostDiv"};
constexpr int kAverage = 4;

const char* operation_name(const Call& call) {
  const bool real = *kTypes[call.type].name != 'i' && *kTypes[call.type].name != 'u';
  // A mean of real numbers is a sum of what was divided before.
  return call.operation == kAverage && real ? "PreMulSum" : kOperations[call.operation];
}

}  // namespace

size_t type_size(int type) {
  bool known = type >= 0 && static_cast<size_t>(type) < std::size(kTypes);
  return known ? kTypes[type].size : 0;
}

bool valid_operation(int operation) {
  return operation >= 0 && static_cast<size_t>(operation) < std::size(kOperations);
}

const char* name(Function function) {
  switch (function) {
    case Function::kAllReduce:
      return "AllReduce";
    case Function::kAllGather:
      return "AllGather";
    case Function::kReduceScatter:
      return "ReduceScatter";
    case Function::kBroadcast:
      return "Broadcast";
    case Function::kReduce:
      return "Reduce";
    case Function::kSend:
      return "Send";
    case Function::kRecv:
      return "Recv";
  }
  return "";
}

double moved(const Call& call, uint32_t size) {
  auto bytes = static_cast<double>(call.count * type_size(call.type));
  double ranks = size;
  switch (call.function) {
    case Function::kAllReduce:
      return 2 * (ranks - 1) / ranks * bytes;
    case Function::kAllGather:  // of what one rank gives, or is given
    case Function::kReduceScatter:
      return (ranks - 1) * bytes;
    default:
      return bytes;
  }
}

std::string describe(const Call& call) {
  std::string text = name(call.function);
  if (reduces(call.function)) text += "/" + std::to_string(call.operation);
  text += "/" + std::string(kTypes[call.type].name) + "/" + std::to_string(call.count);
  return text + "/" + std::to_string(call.peer);
}

std::string kernel_name(const Call& call) {
  std::string base = "ncclDevKernel_";
  if (is_message(call.function)) {
    base += "SendRecv";
  } else {
    base += name(call.function);
    if (reduces(call.function)) {
      base += std::string("_") + operation_name(call) + "_" + kTypes[call.type].name;
    }
    base += "_RING_LL";
  }
  return "_Z" + std::to_string(base.size()) + base +
         "24ncclDevKernelArgsStorageILm4096EE";
}

}  // namespace lull::sim::nccl
