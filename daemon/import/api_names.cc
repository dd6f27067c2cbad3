#include "daemon/import/api_names.h"

#include <algorithm>

namespace lull::imports {
namespace {

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// "cudaFree" -> "Free", "hipExtModuleLaunchKernel" -> "ExtModuleLaunchKernel"; "" for
// calls of nobody that we know.
std::string_view Verb(std::string_view name) {
  for (std::string_view prefix : {"cuda", "hip", "cu"}) {
    if (name.substr(0, prefix.size()) != prefix) continue;
    std::string_view rest = name.substr(prefix.size());
    if (!rest.empty() && rest[0] >= 'A' && rest[0] <= 'Z') return rest;
  }
  return {};
}

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

}  // namespace

CallFacts FactsOfCall(std::string_view name) {
  const std::string_view verb = Verb(name);
  if (verb.empty()) return {};
  if (Contains(verb, "Synchronize")) return {CallKind::kSync};
  if (Contains(verb, "Launch") && !Contains(verb, "Attribute")) {
    return {CallKind::kLaunch};
  }
  if (StartsWith(verb, "Memcpy")) {
    return {CallKind::kCopy, false, !Contains(verb, "Async")};
  }
  if (StartsWith(verb, "Memset")) return {CallKind::kMemset};
  if (StartsWith(verb, "MallocHost") || StartsWith(verb, "HostAlloc") ||
      StartsWith(verb, "HostMalloc") || StartsWith(verb, "MemHostAlloc") ||
      StartsWith(verb, "MemAllocHost")) {
    return {CallKind::kAllocate, true};
  }
  if (StartsWith(verb, "FreeHost") || StartsWith(verb, "HostFree") ||
      StartsWith(verb, "MemFreeHost")) {
    return {CallKind::kFree, true};
  }
  if (StartsWith(verb, "Malloc") || StartsWith(verb, "ExtMalloc") ||
      StartsWith(verb, "MemAlloc") || StartsWith(verb, "MemCreate") ||
      StartsWith(verb, "MemMap")) {
    return {CallKind::kAllocate};
  }
  if (StartsWith(verb, "Free") || StartsWith(verb, "MemFree") ||
      StartsWith(verb, "MemUnmap") || StartsWith(verb, "MemRelease")) {
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
