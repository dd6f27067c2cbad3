#include "daemon/relay/deliver/hello.h"

#include "preload/abi/hook_list.h"

namespace lull::relay {
namespace {

const char* FamilyName(abi::HookFamily family) {
  switch (family) {
    case abi::HookFamily::k_launch:
      return "launch";
    case abi::HookFamily::k_sync:
      return "sync";
    case abi::HookFamily::k_copy:
      return "copy";
    case abi::HookFamily::k_memory:
      return "memory";
    case abi::HookFamily::k_wait:
      return "wait";
    case abi::HookFamily::k_torch:
      return "torch";
    case abi::HookFamily::k_life:
      return "life";
    case abi::HookFamily::k_none:
      break;
  }
  return "";
}

}  // namespace

bool HelloNames(uint16_t id) { return id < kHookIds && abi::hook_name(id)[0] != '\0'; }

lull::v1::Hello MakeHello(const lull::v1::JobInfo& job) {
  lull::v1::Hello hello;
  hello.set_protocol_version(kProtocolVersion);
  *hello.mutable_job() = job;
  for (uint16_t id = 1; id < kHookIds; ++id) {
    if (!HelloNames(id)) continue;
    lull::v1::ApiName* api = hello.add_apis();
    api->set_id(id);
    api->set_name(abi::hook_name(id));
    api->set_family(FamilyName(abi::hook_family(id)));
  }
  return hello;
}

}  // namespace lull::relay
