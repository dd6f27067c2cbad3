#include "preload/cupti/call_names.h"

#include <string.h>

#include "preload/cupti/entries.h"

namespace lull::cupti {
namespace {

constexpr const char* kWantedParts[] = {"Launch",         "Memcpy",      "Memset",
                                        "Graph",          "MemPrefetch", "Synchronize",
                                        "StreamWaitEvent"};

// An answer: 0 not asked yet, kUnwanted, else kWanted + the Ref of the name.
constexpr uint32_t kUnwanted = 1;
constexpr uint32_t kWanted = 2;

uint32_t ask(char* segment, const Api& api, Domain domain, uint32_t callback,
             Submits* submits) {
  const char* name = nullptr;
  if (api.get_callback_name(domain, callback, &name) != kSuccess || name == nullptr) {
    return kUnwanted;
  }
  *submits = what_submits(name);
  if (!is_wanted_call(name)) return kUnwanted;
  return kWanted + intern_text(segment, name, plain_name_length(name));
}

}  // namespace

bool is_wanted_call(const char* name) {
  for (const char* part : kWantedParts) {
    if (strstr(name, part) != nullptr) return true;
  }
  return false;
}

Submits what_submits(const char* name) {
  auto has = [name](const char* part) { return strstr(name, part) != nullptr; };
  if (has("StreamBeginCapture")) return Submits::kCaptureBegin;
  if (has("StreamEndCapture")) return Submits::kCaptureEnd;
  if (has("Launch") && !has("HostFunc") && !has("Attribute")) return Submits::kKernels;
  if (has("Graph") || has("Params")) return Submits::kNothing;
  return has("Memcpy") || has("Memset") ? Submits::kCopy : Submits::kNothing;
}

// "_v7000", "_v11010": driver functions end in "_v2", which is part of the name.
size_t plain_name_length(const char* name) {
  constexpr size_t kFewestDigits = 4;
  size_t size = strlen(name);
  size_t digits = 0;
  while (digits < size && name[size - 1 - digits] >= '0' &&
         name[size - 1 - digits] <= '9') {
    ++digits;
  }
  size_t suffix = digits + 2;
  bool versioned = digits >= kFewestDigits && size > suffix &&
                   name[size - suffix] == '_' && name[size - suffix + 1] == 'v';
  return versioned ? size - suffix : size;
}

bool CallNames::look_up(char* segment, uint32_t generation, const Api& api,
                        Domain domain, uint32_t callback, abi::Ref* text) {
  uint32_t answer;
  Submits submits = Submits::kNothing;
  if (callback < kIds) {
    std::atomic<uint64_t>& slot = known_[domain == Domain::kRuntime][callback];
    uint64_t known = slot.load(std::memory_order_acquire);
    answer = known >> 32 == generation ? static_cast<uint32_t>(known) : 0;
    if (answer == 0) {
      answer = ask(segment, api, domain, callback, &submits);
      submits_[domain == Domain::kRuntime][callback].store(submits,
                                                           std::memory_order_relaxed);
      // Pairs with the acquire above: what it submits is known, too.
      slot.store(uint64_t{generation} << 32 | answer, std::memory_order_release);
    }
  } else {
    answer = ask(segment, api, domain, callback, &submits);
  }
  if (answer == kUnwanted) return false;
  *text = answer - kWanted;
  return true;
}

}  // namespace lull::cupti
