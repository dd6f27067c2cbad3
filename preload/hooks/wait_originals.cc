#include "preload/hooks/wait_originals.h"

#include <errno.h>

#include "preload/support/symbols.h"

namespace lull {
namespace {

using abi::HookId;

// Those that return their error instead of setting errno.
constexpr bool returns_error(HookId hook) {
  return hook == HookId::k_pthread_cond_wait ||
         hook == HookId::k_pthread_cond_timedwait ||
         hook == HookId::k_pthread_cond_clockwait || hook == HookId::k_clock_nanosleep;
}

// The answer for a function that this libc is too old to have.
template <HookId hook>
int not_here() {
  if (returns_error(hook)) return ENOSYS;
  errno = ENOSYS;
  return -1;
}

// What the slots hold at first.
#define LULL_EARLY(result, name, parameters, arguments)                     \
  result early_##name parameters {                                          \
    resolve_wait_originals();                                               \
    auto* original = g_wait_originals.name.load(std::memory_order_relaxed); \
    if (original == early_##name) return not_here<HookId::k_##name>();      \
    return original arguments;                                              \
  }
#define LULL_ROW(id, family, need, result, name, parameters, arguments, event) \
  LULL_IF_##family(LULL_EARLY, result, name, parameters, arguments)
LULL_LIBC_HOOKS(LULL_ROW)
#undef LULL_ROW

template <typename Function>
void set(std::atomic<Function*>& slot, void* address) {
  if (address == nullptr) return;
  slot.store(reinterpret_cast<Function*>(address), std::memory_order_relaxed);
}

}  // namespace

constinit WaitOriginals g_wait_originals = {
#define LULL_FIRST(result, name, parameters, arguments) early_##name,
#define LULL_ROW(id, family, need, result, name, parameters, arguments, event) \
  LULL_IF_##family(LULL_FIRST, result, name, parameters, arguments)
    LULL_LIBC_HOOKS(LULL_ROW)
#undef LULL_ROW
};

void resolve_wait_originals() {
  NextSymbol symbols[] = {
#define LULL_WANTED(result, name, parameters, arguments) {#name, nullptr},
#define LULL_ROW(id, family, need, result, name, parameters, arguments, event) \
  LULL_IF_##family(LULL_WANTED, result, name, parameters, arguments)
      LULL_LIBC_HOOKS(LULL_ROW)
#undef LULL_ROW
  };
  find_next_symbols(symbols, sizeof symbols / sizeof symbols[0]);
  const NextSymbol* next = symbols;
#define LULL_SET(result, name, parameters, arguments) \
  set(g_wait_originals.name, next++->address);
#define LULL_ROW(id, family, need, result, name, parameters, arguments, event) \
  LULL_IF_##family(LULL_SET, result, name, parameters, arguments)
  LULL_LIBC_HOOKS(LULL_ROW)
#undef LULL_ROW
}

}  // namespace lull
