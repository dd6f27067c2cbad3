#include "daemon/import/api_names.h"

#include "daemon/base/text.h"

namespace lull::imports {
namespace {

// "cudaFree" -> "Free", "hipExtModuleLaunchKernel" -> "ExtModuleLaunchKernel"; "" for
// calls of nobody that we know.
std::string_view Verb(std::string_view name) {
  for (std::string_view prefix : {"cuda", "hip", "cu"}) {
    if (!name.starts_with(prefix)) continue;
    std::string_view rest = name.substr(prefix.size());
    if (!rest.empty() && rest[0] >= 'A' && rest[0] <= 'Z') return rest;
  }
  return {};
}

}  // namespace

CallFacts FactsOfCall(std::string_view name) {
  const std::string_view verb = Verb(name);
  if (verb.empty()) return {};
  if (Contains(verb, "Synchronize")) return {CallKind::kSync};
  if (Contains(verb, "Launch") && !Contains(verb, "Attribute")) {
    return {CallKind::kLaunch};
  }
  if (verb.starts_with("Memcpy")) {
    return {CallKind::kCopy, false, !Contains(verb, "Async")};
  }
  if (verb.starts_with("Memset")) return {CallKind::kMemset};
  if (verb.starts_with("MallocHost") || verb.starts_with("HostAlloc") ||
      verb.starts_with("HostMalloc") || verb.starts_with("MemHostAlloc") ||
      verb.starts_with("MemAllocHost")) {
    return {CallKind::kAllocate, true};
  }
  if (verb.starts_with("FreeHost") || verb.starts_with("HostFree") ||
      verb.starts_with("MemFreeHost")) {
    return {CallKind::kFree, true};
  }
  if (verb.starts_with("Malloc") || verb.starts_with("ExtMalloc") ||
      verb.starts_with("MemAlloc") || verb.starts_with("MemCreate") ||
      verb.starts_with("MemMap")) {
    return {CallKind::kAllocate};
  }
  if (verb.starts_with("Free") || verb.starts_with("MemFree") ||
      verb.starts_with("MemUnmap") || verb.starts_with("MemRelease")) {
    return {CallKind::kFree};
  }
  return {};
}

const char* FamilyOf(CallKind kind) {
  switch (kind) {
    case CallKind::kLaunch:
      return "launch";
    case CallKind::kCopy:
    case CallKind::kMemset:
      return "copy";
    case CallKind::kSync:
      return "sync";
    case CallKind::kAllocate:
    case CallKind::kFree:
      return "memory";
    case CallKind::kOther:
      break;
  }
  return "";
}

}  // namespace lull::imports
