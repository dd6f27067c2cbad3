#include "daemon/relay/read/definitions.h"

#include "daemon/relay/deliver/hello.h"
#include "daemon/relay/read/resolver.h"

namespace lull::relay {
namespace {

// Ids of hooks are named in Hello, and no target may give them other names.
bool IsCuptiCall(uint16_t api) {
  return api >= abi::kRuntimeCallBase && api < abi::kCallIdEnd;
}

}  // namespace

Definitions::Roles Definitions::RolesOf(abi::EventType type) {
  switch (type) {
    case abi::EventType::kGpuKernel:
      return {kKernel, kStream};
    case abi::EventType::kGpuCopy:
    case abi::EventType::kGpuMemset:
    case abi::EventType::kGpuGraph:
    case abi::EventType::kGpuStreamWait:
      return {kNothing, kStream};
    case abi::EventType::kApiCall:
      return {kCall, kNothing};
    case abi::EventType::kGpuDevice:
      return {kDevice, kNothing};
    case abi::EventType::kGpuTracing:
    case abi::EventType::kGpuLost:
    case abi::EventType::kGpuMark:
      return {kNothing, kNothing};
    default:
      return {kStack, kStack};
  }
}

Definitions::Definitions(uint64_t process_key, const SegmentReader* segment,
                         AsyncSymbolizer* symbols, size_t batch_bytes)
    : process_key_(process_key),
      segment_(segment),
      batch_bytes_(batch_bytes),
      symbols_(symbols) {
  std::vector<uint64_t>& calls = known_[kCall];
  calls.resize(kHookIds / 64);
  for (uint16_t id = 1; id < kHookIds; ++id) {
    if (HelloNames(id)) calls[id / 64] |= uint64_t{1} << (id % 64);
  }
}

Definitions::Result Definitions::Define(abi::Event* event, BatchBuilder* batch) {
  Roles roles = RolesOf(event->type);
  if (roles.python == kCall) {
    if (IsCuptiCall(event->api)) {
      Result result = Need(kCall, event->py_stack, event->api, batch);
      if (result != Result::kDone) return result;
    }
    event->py_stack = 0;  // the wire has no reference for it
  }
  if (event->api != 0 && !IsKnown(kCall, event->api)) return Result::kUndeclared;
  if (roles.python == kNothing) {
    event->py_stack = 0;
  } else if (roles.python != kCall) {
    Result result = Need(roles.python, event->py_stack, event->py_stack, batch);
    if (result != Result::kDone) return result;
  }
  if (roles.native == kNothing) {
    event->native_stack = 0;
    return Result::kDone;
  }
  return Need(roles.native, event->native_stack, event->native_stack, batch);
}

Definitions::Result Definitions::Need(Role role, abi::Ref ref, uint32_t id,
                                      BatchBuilder* batch) {
  if (ref == 0 || IsKnown(role, id)) return Result::kDone;
  if (batch->approximate_bytes() >= batch_bytes_) return Result::kBatchFull;
  if (!Add(role, ref, id, batch)) return Result::kCorrupt;
  Remember(role, id);
  return Result::kDone;
}

bool Definitions::AddStack(abi::Ref ref, BatchBuilder* batch) {
  std::optional<v1::StackDef> stack = ResolveStack(*segment_, ref, &codes_);
  if (!stack) return false;
  if (symbols_ != nullptr && stack->return_addresses_size() > 0) {
    symbols_->Expect(process_key_, stack->return_addresses());
  }
  batch->AddStack(process_key_, *std::move(stack));
  return true;
}

bool Definitions::Add(Role role, abi::Ref ref, uint32_t id, BatchBuilder* batch) {
  auto add = [&](auto resolved, auto method) {
    if (resolved) (batch->*method)(process_key_, *std::move(resolved));
    return resolved.has_value();
  };
  switch (role) {
    case kStack:
      return AddStack(ref, batch);
    case kKernel:
      return add(ResolveKernel(*segment_, ref), &BatchBuilder::AddKernel);
    case kStream:
      return add(ResolveGpuStream(*segment_, ref), &BatchBuilder::AddGpuStream);
    case kDevice:
      return add(ResolveGpuDevice(*segment_, ref), &BatchBuilder::AddGpuDevice);
    case kCall: {
      auto call = ResolveCall(*segment_, ref, id);
      if (call) batch->AddApi(*std::move(call));
      return call.has_value();
    }
    case kNothing:
    case kRoles:
      break;
  }
  return true;
}

void Definitions::Remember(Role role, uint32_t id) {
  std::vector<uint64_t>& bits = known_[role];
  if (bits.size() <= id / 64) bits.resize(id / 64 + 64);
  bits[id / 64] |= uint64_t{1} << (id % 64);
  fresh_.emplace_back(role, id);
}

void Definitions::Drop() {
  for (auto [role, id] : fresh_) known_[role][id / 64] &= ~(uint64_t{1} << (id % 64));
  fresh_.clear();
}

}  // namespace lull::relay
