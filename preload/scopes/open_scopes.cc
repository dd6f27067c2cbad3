#include "preload/scopes/open_scopes.h"

namespace lull {

constinit thread_local ThreadScopes t_scopes
    __attribute__((tls_model("initial-exec"))) = {};

uint32_t OpenScopes::first_place(uint64_t key) {
  return static_cast<uint32_t>((key * 0x9e3779b97f4a7c15u) >> 40) % kMost;
}

// The place of a word that is there already (its end was never told, and its address is
// another scope's now), a free one, or one of another generation; else one that is over
// and whose owner has not come by since.
OpenScopes::Claim OpenScopes::claim(uint64_t word, uint32_t at, uint32_t* place) {
  for (uint32_t i = 0; i < kProbes; ++i) {
    *place = (at + i) % kMost;
    if (words_[*place].load(std::memory_order_relaxed) == word) return Claim::kAgain;
  }
  for (bool take_over : {false, true}) {
    for (uint32_t i = 0; i < kProbes; ++i) {
      *place = (at + i) % kMost;
      uint64_t seen = words_[*place].load(std::memory_order_relaxed);
      bool may =
          seen == 0 || seen >> 52 != word >> 52 ||
          (take_over && places_[*place].over.load(std::memory_order_relaxed) != 0);
      if (may && words_[*place].compare_exchange_strong(seen, word,
                                                        std::memory_order_acq_rel)) {
        return Claim::kFresh;
      }
    }
  }
  return Claim::kNoRoom;
}

OpenScopes::Place* OpenScopes::top_of(const ThreadScopes& thread) {
  if (thread.top == 0) return nullptr;
  Place& place = places_[thread.top - 1];
  return place.sequence.load(std::memory_order_relaxed) == thread.top_sequence
             ? &place
             : nullptr;
}

// Leaves what others have ended.
void OpenScopes::prune(ThreadScopes& thread) {
  while (Place* place = top_of(thread)) {
    if (place->over.load(std::memory_order_acquire) == 0) {
      thread.in_data = place->in_data;
      return;
    }
    uint32_t at = thread.top - 1;
    thread.top = place->parent;
    thread.top_sequence = place->parent_sequence;
    words_[at].store(0, std::memory_order_release);
  }
  thread.top = thread.top_sequence = thread.in_data = 0;
}

// From wherever it is in the thread's chain.
void OpenScopes::unlink(ThreadScopes& thread, uint32_t place) {
  Place& gone = places_[place];
  const uint32_t link = place + 1;
  const uint32_t gone_sequence = gone.sequence.load(std::memory_order_relaxed);
  if (thread.top == link) {
    if (thread.top_sequence != gone_sequence) return;
    thread.top = gone.parent;
    thread.top_sequence = gone.parent_sequence;
    return;
  }
  uint32_t at = thread.top, sequence = thread.top_sequence;
  for (uint32_t i = 0; i < kMost && at != 0; ++i) {
    Place& inner = places_[at - 1];
    if (inner.sequence.load(std::memory_order_relaxed) != sequence) return;
    if (inner.parent == link && inner.parent_sequence == gone_sequence) {
      inner.parent = gone.parent;
      inner.parent_sequence = gone.parent_sequence;
      return;
    }
    at = inner.parent;
    sequence = inner.parent_sequence;
  }
}

Scope* OpenScopes::begin(uint64_t key, abi::ScopeKind kind, ThreadScopes& thread) {
  prune(thread);
  uint32_t at;
  Claim claimed = claim(word_of(key, thread.generation), first_place(key), &at);
  if (claimed == Claim::kNoRoom) return nullptr;
  Place& place = places_[at];
  if (claimed == Claim::kAgain && place.owner == &thread) {
    unlink(thread, at);
    prune(thread);
  }
  Place* parent = top_of(thread);
  uint32_t sequence = place.sequence.load(std::memory_order_relaxed) + 1;
  place.sequence.store(sequence, std::memory_order_relaxed);
  place.over.store(0, std::memory_order_relaxed);
  place.owner = &thread;
  place.parent = thread.top;
  place.parent_sequence = thread.top_sequence;
  place.in_data =
      kind == abi::ScopeKind::kData || (parent != nullptr && parent->in_data);
  place.scope = {
      0,    0,    0, thread.tid, parent == nullptr ? 1 : parent->scope.depth + 1,
      kind, false};
  thread.top = at + 1;
  thread.top_sequence = sequence;
  thread.in_data = place.in_data;
  return &place.scope;
}

uint32_t OpenScopes::names(const ThreadScopes& thread, uint64_t* names,
                           uint32_t most) const {
  uint32_t count = 0;
  uint32_t at = thread.top, sequence = thread.top_sequence;
  while (at != 0 && count < most) {
    const Place& place = places_[at - 1];
    if (place.sequence.load(std::memory_order_relaxed) != sequence) break;
    if (place.over.load(std::memory_order_relaxed) == 0) {
      names[count++] = place.scope.name;
    }
    at = place.parent;
    sequence = place.parent_sequence;
  }
  return count;
}

bool OpenScopes::end(uint64_t key, ThreadScopes& thread, Scope* scope,
                     bool* elsewhere) {
  const uint64_t word = word_of(key, thread.generation);
  const uint32_t first = first_place(key);
  for (uint32_t i = 0; i < kProbes; ++i) {
    const uint32_t at = (first + i) % kMost;
    if (words_[at].load(std::memory_order_acquire) != word) continue;
    Place& place = places_[at];
    if (place.over.load(std::memory_order_relaxed) != 0) return false;
    *scope = place.scope;
    *elsewhere = place.owner != &thread;
    if (*elsewhere) {
      place.over.store(1, std::memory_order_release);
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
