#include "tests/sim/cupti/cbids.h"

#include <string_view>
#include <unordered_map>

namespace lull::sim::cupti {
namespace {

struct Entry {
  const char* function;
  const char* name;
  uint32_t cbid;
};

constexpr Entry kRuntimeCalls[] = {
#define R(function, enumerator, id) {#function, #enumerator, id},
#include "tests/sim/cupti/runtime_cbids.inc"
#undef R
};
constexpr Entry kDriverCalls[] = {
#define D(function, id) {#function, #function, id},
#include "tests/sim/cupti/driver_cbids.inc"
#undef D
};

using Table = std::unordered_map<std::string_view, uint32_t>;

template <typename Entries>
const Table* make(const Entries& entries) {
  auto* table = new Table;  // never freed: calls come until the very end
  for (const Entry& entry : entries) table->emplace(entry.function, entry.cbid);
  return table;
}

uint32_t find(const Table& table, const char* function) {
  auto it = table.find(function);
  return it == table.end() ? 0 : it->second;
}

template <typename Entries>
const char* name(const Entries& entries, uint32_t cbid) {
  for (const Entry& entry : entries) {
    if (entry.cbid == cbid) return entry.name;
  }
  return nullptr;
}

}  // namespace

uint32_t runtime_cbid(const char* function) {
  static const Table* table = make(kRuntimeCalls);
  return find(*table, function);
}

uint32_t driver_cbid(const char* function) {
  static const Table* table = make(kDriverCalls);
  return find(*table, function);
}

const char* runtime_name(uint32_t cbid) { return name(kRuntimeCalls, cbid); }
const char* driver_name(uint32_t cbid) { return name(kDriverCalls, cbid); }

}  // namespace lull::sim::cupti
