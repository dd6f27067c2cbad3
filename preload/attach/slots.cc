#include "preload/attach/slots.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <initializer_list>
#include <utility>

#include "preload/attach/object.h"
#include "preload/attach/targets.h"
#include "preload/hooks/record.h"
#include "preload/support/clock.h"
#include "preload/support/libdl.h"
#include "preload/support/own_code.h"
#include "preload/support/raw_syscall.h"
#include "preload/support/relocation_kinds.h"
#include "preload/support/work_clock.h"

namespace lull {
namespace {

// Where to go on in the object in which the last call's time was over.
struct Cursor {
  const void* dynamic = nullptr;
  size_t entry = 0;  // over both tables
  uintptr_t exchanged = 0;
};

// An object that is as wanted. Another one may lie in its place after a dlclose, or the
// same, loaded again: so what is known of it is compared, and a slot is looked at.
struct Done {
  const void* dynamic;  // nullptr: a free place
  size_t tables;        // entries of both
  uintptr_t exchanged;  // one of its slots; 0: it has none of ours
};
constexpr size_t kPlaces = 4096;  // a hash table, by `dynamic`

std::atomic<pid_t> g_busy{0};  // the process that is at work: a fork child has another
Slots g_wanted = Slots::kTheirs;
Done g_done[kPlaces];
size_t g_done_count = 0;
Cursor g_cursor;
unsigned long long g_adds = 0;  // the loader's count of objects, when we were through
std::atomic<bool> g_following{false};

class Busy {
 public:
  Busy() {
    pid_t us = raw_getpid();
    pid_t at_work = g_busy.load(std::memory_order_relaxed);
    mine_ = at_work != us &&
            g_busy.compare_exchange_strong(at_work, us, std::memory_order_acquire);
  }
  ~Busy() {
    if (mine_) g_busy.store(0, std::memory_order_release);
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  bool mine() const { return mine_; }

 private:
  bool mine_;
};

// What the object's own scope has under this name, for a slot that was never used.
void* resolve_in(const Object& object, const char* name) {
  libdl::Dlsym real = libdl::real_dlsym();
  void* found = real != nullptr ? real(object.handle, name) : nullptr;
  if (found == nullptr) libdl::error();
  return found;
}

// A slot that the loader has not bound yet leads into the object's own PLT.
bool is_unbound(const Object& object, const ElfW(Sym) & symbol, uintptr_t value) {
  if (value < object.begin || value >= object.end) return false;
  return symbol.st_shndx == SHN_UNDEF || value != object.base + symbol.st_value;
}

// What the loader has sealed after binding, opened for as long as one object takes: a
// system call costs a thread that is traced 26 us.
class Seal {
 public:
  explicit Seal(const Object& object) : object_(object) {}
  ~Seal() {
    if (open_) protect(PROT_READ);
  }
  Seal(const Seal&) = delete;
  Seal& operator=(const Seal&) = delete;

  bool open_for(uintptr_t slot) {
    if (slot < object_.relro_begin || slot >= object_.relro_end) return true;
    if (!open_) open_ = protect(PROT_READ | PROT_WRITE);
    return open_;
  }

 private:
  bool protect(int how) {
    return mprotect(reinterpret_cast<void*>(object_.relro_begin),
                    object_.relro_end - object_.relro_begin, how) == 0;
  }

  const Object& object_;
  bool open_ = false;
};

bool store(Seal& seal, uintptr_t slot, void* value) {
  if (!seal.open_for(slot)) return false;
  __atomic_store_n(reinterpret_cast<void**>(slot), value, __ATOMIC_RELEASE);
  return true;
}

uint32_t kind_of(const ElfW(Rela) & entry) {
  return static_cast<uint32_t>(ELF64_R_TYPE(entry.r_info));
}

// The hooked function that the entry is a slot of; nullptr: none.
const char* hooked_name(const Object& object, const ElfW(Rela) & entry) {
  if (kind_of(entry) != kJumpSlot && kind_of(entry) != kGlobalData) return nullptr;
  const char* name = object.strings + object.symbols[ELF64_R_SYM(entry.r_info)].st_name;
  return is_hooked_name(name, object.strings_end) ? name : nullptr;
}

// True: the slot is as wanted, and one of ours.
bool exchange(const Object& object, const ElfW(Rela) & entry, Seal& seal) {
  const char* name = hooked_name(object, entry);
  if (name == nullptr) return false;
  const ElfW(Sym)& symbol = object.symbols[ELF64_R_SYM(entry.r_info)];
  uintptr_t slot = object.base + entry.r_offset;
  if (slot % sizeof(void*) != 0 || slot < object.begin || slot >= object.end)
    return false;
  void* bound = __atomic_load_n(reinterpret_cast<void**>(slot), __ATOMIC_ACQUIRE);
  void* wanted = bound;
  if (g_wanted == Slots::kOurs) {
    void* original = bound;
    if (kind_of(entry) == kJumpSlot &&
        is_unbound(object, symbol, reinterpret_cast<uintptr_t>(bound))) {
      original = resolve_in(object, name);
    }
    if (original == nullptr) return false;
    wanted = wrapper_of_bound(name, original);
    if (wanted == original) return is_wrapper(name, bound, &original);
  } else {
    void* original = nullptr;
    if (!is_wrapper(name, bound, &original)) return false;
    wanted = original != nullptr ? original : resolve_in(object, name);
    if (wanted == nullptr || wanted == bound) return false;
  }
  return store(seal, slot, wanted);
}

// An object without need not be held.
bool has_hooked_slots(const Object& object) {
  for (const Object::Table& table : {object.tables[1], object.tables[0]}) {
    for (size_t i = 0; i < table.count; ++i) {
      if (hooked_name(object, table.entries[i]) != nullptr) return true;
    }
  }
  return false;
}

// False: the time was over first; the cursor says where.
bool treat(const Object& object, WorkClock* clock) {
  if (g_cursor.dynamic != object.dynamic) g_cursor = {object.dynamic, 0, 0};
  constexpr size_t kBetweenLooks = 256;
  Seal seal(object);
  for (;; ++g_cursor.entry) {
    size_t at = g_cursor.entry;
    const Object::Table* table = &object.tables[0];
    if (at >= table->count) at -= table++->count;
    if (at >= table->count) return true;
    const ElfW(Rela)& entry = table->entries[at];
    if (exchange(object, entry, seal)) {
      g_cursor.exchanged = object.base + entry.r_offset;
    }
    if (g_cursor.entry % kBetweenLooks == kBetweenLooks - 1 &&
        clock->is_over(monotonic_ns())) {
      ++g_cursor.entry;
      return false;
    }
  }
}

size_t entries_of(const Object& object) {
  return object.tables[0].count + object.tables[1].count;
}

Done* place_of(const void* dynamic) {
  size_t at = (reinterpret_cast<uintptr_t>(dynamic) >> 4) * 0x9e3779b97f4a7c15 >> 52;
  while (g_done[at].dynamic != nullptr && g_done[at].dynamic != dynamic) {
    at = (at + 1) % kPlaces;
  }
  return &g_done[at];
}
static_assert(kPlaces == size_t{1} << 12);

bool is_done(const Object& object) {
  const Done* done = place_of(object.dynamic);
  if (done->dynamic == nullptr || done->tables != entries_of(object)) return false;
  if (done->exchanged == 0) return true;
  const void* bound =
      __atomic_load_n(reinterpret_cast<void**>(done->exchanged), __ATOMIC_ACQUIRE);
  return is_our_code(bound) == (g_wanted == Slots::kOurs);
}

void forget_all() {
  memset(g_done, 0, sizeof g_done);
  g_done_count = 0;
  g_cursor = {};
}

void set_done(const Object& object, uintptr_t exchanged) {
  Done* done = place_of(object.dynamic);
  if (done->dynamic == nullptr && ++g_done_count > kPlaces / 2) {
    forget_all();  // thousands that came and went
    done = place_of(object.dynamic);
    g_done_count = 1;
  }
  *done = {object.dynamic, entries_of(object), exchanged};
}

struct Search {
  WorkClock* clock;
  Object object = {};
  bool found = false;
  bool late = false;
  unsigned long long adds = 0;
  char name[4096];
  // Those that could not be held: they are going just now.
  static constexpr size_t kMaxGone = 16;
  const void* gone[kMaxGone];
  size_t gone_count = 0;

  bool is_gone(const void* dynamic) const {
    for (size_t i = 0; i < gone_count; ++i) {
      if (gone[i] == dynamic) return true;
    }
    return false;
  }
};

int find_undone(dl_phdr_info* info, size_t, void* argument) {
  auto* search = static_cast<Search*>(argument);
  search->adds = info->dlpi_adds;
  size_t length = strlen(info->dlpi_name);
  if (length >= sizeof search->name) return 0;
  if (!describe(*info, &search->object) || is_done(search->object) ||
      search->is_gone(search->object.dynamic)) {
    return 0;
  }
  if (!has_hooked_slots(search->object)) {
    set_done(search->object, 0);
    search->late = search->clock->is_over(monotonic_ns());
    return search->late ? 1 : 0;
  }
  memcpy(search->name, info->dlpi_name, length + 1);
  search->found = true;
  return 1;
}

// Keeps the object where it is. Not while the loader's list is locked: a thread in
// dlopen takes the loader's two locks in the other order.
bool hold(Search* search) {
  const char* path = search->name[0] != '\0' ? search->name : nullptr;  // the program
  search->object.handle = libdl::open(path, RTLD_LAZY | RTLD_NOLOAD);
  if (search->object.handle == nullptr) {
    libdl::error();
    return false;
  }
  if (static_cast<link_map*>(search->object.handle)->l_ld == search->object.dynamic) {
    return true;
  }
  libdl::close(search->object.handle);
  return false;
}

// The loader may change its list between any two looks at it.
bool go_on(uint64_t budget_ns) {
  WorkClock clock(monotonic_ns(), budget_ns);
  Search search;
  search.clock = &clock;
  for (size_t rounds = 0; rounds < kPlaces; ++rounds) {
    search.found = false;
    dl_iterate_phdr(find_undone, &search);
    if (search.late) return false;
    if (!search.found) {
      g_adds = search.adds;
      return true;
    }
    if (!hold(&search)) {
      if (search.gone_count == Search::kMaxGone) return false;
      search.gone[search.gone_count++] = search.object.dynamic;
      continue;
    }
    bool in_time = treat(search.object, &clock);
    libdl::close(search.object.handle);
    if (!in_time) return false;
    set_done(search.object, std::exchange(g_cursor, {}).exchanged);
    if (clock.is_over(monotonic_ns())) return false;
  }
  return false;
}

int look_at_count(dl_phdr_info* info, size_t, void* changed) {
  *static_cast<bool*>(changed) = info->dlpi_adds != g_adds;
  return 1;
}

}  // namespace

bool slots_set(Slots wanted, uint64_t budget_ns) {
  ErrnoKeeper keep_errno;
  Busy busy;
  if (!busy.mine()) return false;
  if (wanted != g_wanted) {
    g_wanted = wanted;
    forget_all();
  }
  bool complete = go_on(budget_ns);
  g_following.store(complete && wanted == Slots::kOurs, std::memory_order_release);
  return complete;
}

void slots_follow() {
  if (!g_following.load(std::memory_order_acquire)) return;
  ErrnoKeeper keep_errno;
  Busy busy;
  if (!busy.mine() || g_wanted != Slots::kOurs) return;
  bool changed = false;
  dl_iterate_phdr(look_at_count, &changed);
  if (changed) go_on(WorkClock::kNoEnd);
}

}  // namespace lull
