#include "preload/scopes/open_scopes.h"

namespace lull {

constinit thread_local ThreadScopes t_scopes
    __attribute__((tls_model("initial-exec"))) = {};

uint32_t OpenScopes::first_place(uint64_t key) {
  return static_cast<uint32_t>((key * 0x9e3779b97f4a7c15u) >> 40) % kMost;
}

// A scope of this key whose end was never told: its address is another's now.
void OpenScopes::forget_word(uint64_t word, uint32_t first) {
  for (uint32_t i = 0; i < kProbes; ++i) {
    uint64_t seen = word;
    std::atomic<uint64_t>& at = words_[(first + i) % kMost];
    if (at.load(std::memory_order_relaxed) == word) {
      at.compare_exchange_strong(seen, word | kOver, std::memory_order_acq_rel);
    }
  }
}

// A free place, or one of another generation; else one that is over.
bool OpenScopes::claim(uint64_t word, uint32_t first, uint32_t* place) {
  constexpr int kShift = 64 - kGenerationBits;
  for (bool take_over : {false, true}) {
    for (uint32_t i = 0; i < kProbes; ++i) {
      *place = (first + i) % kMost;
      uint64_t seen = words_[*place].load(std::memory_order_relaxed);
      bool may = seen == 0 || seen >> kShift != word >> kShift ||
                 (take_over && (seen & kOver) != 0);
      if (may && words_[*place].compare_exchange_strong(seen, word,
                                                        std::memory_order_acq_rel)) {
        return true;
      }
    }
  }
  return false;
}

// Leaves what others have ended. What is read of a place counts if its sequence is
// still the one of then: whoever takes it over changes that before anything else.
void OpenScopes::prune(ThreadScopes& thread) {
  while (thread.top != 0) {
    const uint32_t at = thread.top - 1;
    Place& place = places_[at];
    uint64_t word = words_[at].load(std::memory_order_acquire);
    const uint64_t link = place.link.load(std::memory_order_acquire);
    const uint32_t in_data = place.in_data.load(std::memory_order_acquire);
    if (place.sequence.load(std::memory_order_relaxed) != thread.top_sequence) {
      ++thread.cut;
      break;
    }
    if ((word & kOver) == 0) {
      thread.in_data = in_data;
      return;
    }
    set_top(thread, link);
    // Not where it has been taken over meanwhile.
    words_[at].compare_exchange_strong(word, 0, std::memory_order_acq_rel);
  }
  thread.top = thread.top_sequence = thread.in_data = 0;
}

// From wherever it is in the thread's chain. Its own: nobody takes it over.
void OpenScopes::unlink(ThreadScopes& thread, uint32_t place) {
  const Place& gone = places_[place];
  const uint64_t to_it = link_to(place, gone.sequence.load(std::memory_order_relaxed));
  const uint64_t beyond = gone.link.load(std::memory_order_relaxed);
  uint64_t link = top_of(thread);
  if (link == to_it) return set_top(thread, beyond);
  for (uint32_t i = 0; i < kMost && link != 0; ++i) {
    Place& inner = places_[static_cast<uint32_t>(link) - 1];
    uint64_t next = inner.link.load(std::memory_order_acquire);
    if (inner.sequence.load(std::memory_order_relaxed) != link >> 32) return;
    if (next == to_it) {
      // If another scope has come here meanwhile, the link is another, and stays.
      inner.link.compare_exchange_strong(next, beyond, std::memory_order_acq_rel);
      return;
    }
    link = next;
  }
}

uint32_t OpenScopes::open_in(uint64_t link) const {
  uint32_t count = 0;
  for (uint32_t i = 0; i < kMost && link != 0 && count < abi::kMaxNativeFrames; ++i) {
    const uint32_t at = static_cast<uint32_t>(link) - 1;
    const uint64_t word = words_[at].load(std::memory_order_acquire);
    const uint64_t next = places_[at].link.load(std::memory_order_acquire);
    if (places_[at].sequence.load(std::memory_order_relaxed) != link >> 32) break;
    if ((word & kOver) == 0) ++count;
    link = next;
  }
  return count;
}

Scope* OpenScopes::begin(uint64_t key, abi::ScopeKind kind, ThreadScopes& thread) {
  const uint64_t word = word_of(key, thread.generation);
  const uint32_t first = first_place(key);
  forget_word(word, first);
  prune(thread);
  uint32_t at;
  if (!claim(word, first, &at)) return nullptr;
  Place& place = places_[at];
  const uint64_t around = top_of(thread);
  const uint32_t sequence = place.sequence.load(std::memory_order_relaxed) + 1;
  const uint32_t in_data = kind == abi::ScopeKind::kData || thread.in_data != 0;
  place.sequence.store(sequence, std::memory_order_relaxed);
  place.in_data.store(in_data, std::memory_order_release);
  place.link.store(around, std::memory_order_release);
  place.scope = {0, 0, 0, thread.tid, open_in(around) + 1, kind, false};
  set_top(thread, link_to(at, sequence));
  thread.in_data = in_data;
  return &place.scope;
}

uint32_t OpenScopes::names(const ThreadScopes& thread, uint64_t* names,
                           uint32_t most) const {
  uint32_t count = 0;
  uint64_t link = top_of(thread);
  while (link != 0 && count < most) {
    const uint32_t at = static_cast<uint32_t>(link) - 1;
    const Place& place = places_[at];
    const uint64_t word = words_[at].load(std::memory_order_acquire);
    const uint64_t next = place.link.load(std::memory_order_acquire);
    if (place.sequence.load(std::memory_order_relaxed) != link >> 32) break;
    if ((word & kOver) == 0) names[count++] = place.scope.name;
    link = next;
  }
  return count;
}

bool OpenScopes::end(uint64_t key, ThreadScopes& thread, Scope* scope,
                     bool* elsewhere) {
  const uint64_t word = word_of(key, thread.generation);
  const uint32_t first = first_place(key);
  for (uint32_t i = 0; i < kProbes; ++i) {
    const uint32_t at = (first + i) % kMost;
    uint64_t seen = words_[at].load(std::memory_order_acquire);
    if (seen != word) continue;
    *scope = places_[at].scope;
    *elsewhere = scope->tid != thread.tid;
    if (*elsewhere) {
      words_[at].compare_exchange_strong(seen, word | kOver, std::memory_order_acq_rel);
    } else {
      unlink(thread, at);
      words_[at].store(0, std::memory_order_release);
      prune(thread);
    }
    return true;
  }
  return false;
}

}  // namespace lull
