#include "preload/entry/state_page.h"

#include <sys/mman.h>

#include <new>

#include "preload/support/raw_syscall.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

namespace lull {
namespace {

State g_before_page;
StatePage* g_page = nullptr;
std::atomic<uint32_t> g_generation{0};  // not on the page: survives fork

}  // namespace

State* g_state = &g_before_page;

bool create_state_page() {
  void* page = mmap(nullptr, abi::kPage, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return false;
  madvise(page, abi::kPage, MADV_WIPEONFORK);  // else wipe_state_of_parent() alone
  g_page = new (page) StatePage();
  g_page->owner.store(raw_getpid(), std::memory_order_relaxed);
  g_page->loaded_here.store(1, std::memory_order_relaxed);
  g_state = &g_page->state;
  return true;
}

StatePage* state_page() { return g_page; }

void wipe_state_of_parent() {
  if (g_page == nullptr) return;
  pid_t owner = g_page->owner.load(std::memory_order_relaxed);
  if (owner == 0 || owner == raw_getpid()) return;  // wiped, or already ours again
  new (g_page) StatePage();
}

uint32_t next_generation() {
  uint32_t next = g_generation.fetch_add(1, std::memory_order_relaxed) + 1;
  return next != 0 ? next : next_generation();
}

}  // namespace lull
