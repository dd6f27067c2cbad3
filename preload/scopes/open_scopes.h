// Which scopes are open, and within which others: a table for all threads.
//
// A scope is known by a key of its own (the address of PyTorch's RecordFunction) from
// its beginning to its end, so nothing must balance. A scope that began before
// recording did is not in the table when it ends; one that ends on another thread (a
// generator, a coroutine) leaves the thread that began it; those that were open at a
// fork belong to another generation and give way.
//
// Any number of threads, no locks, no memory but its own. A scope's begin and end are
// never at the same time: whoever ends it was handed it. Where a place is given to
// another scope it is one that is over, or of another generation; the word of a place
// says so in itself, so that nobody frees or takes what has become somebody else's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "preload/abi/arena.h"
#include "preload/abi/event.h"

namespace lull {

// The innermost scope of a thread. All zero at its start.
struct ThreadScopes {
  uint32_t generation;    // of State; another value: nothing is open
  uint32_t tid;           // of the kernel
  uint32_t top;           // place in the table + 1; 0: nothing is open
  uint32_t top_sequence;  // of that place
  uint32_t in_data;       // 1: it is, or is within, one of kind kData
  uint32_t cut;  // times that what is open around was lost: a crowded table gave the
                 // place of one that another thread had ended to somebody else
};

struct Scope {
  uint64_t start_ns;
  abi::Ref name;   // kText, 0: no room
  abi::Ref stack;  // kScopeStack, 0: no room
  uint32_t tid;    // began it
  uint32_t depth;  // 1 = outermost; deeper than kMaxNativeFrames is that + 1
  abi::ScopeKind kind;
  bool of_optimizer;
};

class OpenScopes {
 public:
  static constexpr uint32_t kMost = 1024;
  // Below 2^51 for PyTorch's, above for others'.
  static constexpr uint64_t kKeyEnd = uint64_t{1} << 52;

  // Begins the scope `key` as the innermost one of the thread, whose generation is the
  // current one. nullptr: no room. The caller fills in start_ns, name and stack.
  Scope* begin(uint64_t key, abi::ScopeKind kind, ThreadScopes& thread);

  // Names of the thread's open scopes, innermost first; how many there are. With `most`
  // written there may be more.
  uint32_t names(const ThreadScopes& thread, uint64_t* names, uint32_t most) const;

  // How many the thread has open; of more than kMaxNativeFrames, that many.
  uint32_t open_in(const ThreadScopes& thread) const { return open_in(top_of(thread)); }

  // `key` begins a scope that is not recorded: what its address was before is over.
  void forget(uint64_t key, uint32_t generation) {
    forget_word(word_of(key, generation), first_place(key));
  }

  // False: it is not open, or was begun in another generation. *elsewhere: it was begun
  // by another thread.
  bool end(uint64_t key, ThreadScopes& thread, Scope* scope, bool* elsewhere);

 private:
  // Places looked at: two cache lines.
  static constexpr uint32_t kProbes = 16;
  // A bit of a word, between the key and the generation: another thread has ended the
  // scope, and the thread that began it has not come by since.
  static constexpr uint64_t kOver = kKeyEnd;
  static constexpr int kGenerationBits = 11;

  struct Place {
    std::atomic<uint32_t> sequence;  // grows with every scope that comes here
    std::atomic<uint32_t> in_data;
    std::atomic<uint64_t> link;  // to the one around it
    Scope scope = {};
  };

  // A place + 1 and the sequence that it had; 0: none.
  static uint64_t link_to(uint32_t place, uint32_t sequence) {
    return (uint64_t{place} + 1) | uint64_t{sequence} << 32;
  }
  static uint64_t top_of(const ThreadScopes& thread) {
    return thread.top | uint64_t{thread.top_sequence} << 32;
  }
  static void set_top(ThreadScopes& thread, uint64_t link) {
    thread.top = static_cast<uint32_t>(link);
    thread.top_sequence = static_cast<uint32_t>(link >> 32);
  }

  static uint64_t word_of(uint64_t key, uint32_t generation) {
    return key | uint64_t{generation} << (64 - kGenerationBits);
  }
  static uint32_t first_place(uint64_t key);
  bool claim(uint64_t word, uint32_t first, uint32_t* place);
  void forget_word(uint64_t word, uint32_t first);
  uint32_t open_in(uint64_t link) const;
  void prune(ThreadScopes& thread);
  void unlink(ThreadScopes& thread, uint32_t place);

  // Key, kOver and the low bits of the generation; 0: free. Apart from the places, so
  // that a look at sixteen of them is one at two cache lines.
  std::atomic<uint64_t> words_[kMost];
  Place places_[kMost];
};

// This thread's own. constinit: no wrapper that asks for a constructor.
extern constinit thread_local ThreadScopes t_scopes
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

// True while a DataLoader makes this thread wait for a batch, or makes it one.
inline bool is_in_data_scope(uint32_t generation) {
  return t_scopes.in_data != 0 && t_scopes.generation == generation;
}

}  // namespace lull
