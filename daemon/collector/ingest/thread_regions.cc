#include "daemon/collector/ingest/thread_regions.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "daemon/aggregate/buckets.h"
#include "daemon/aggregate/event_views.h"
#include "daemon/aggregate/host_sample.h"

namespace lull::collector {

using aggregate::Cell;
using aggregate::Event;

namespace {

// More regions than this at once are told early: samples that come late are then in
// those around them.
constexpr size_t kMostWaiting = 200'000;

uint64_t InProportion(uint64_t value, uint64_t part, uint64_t whole) {
  // What is as long as what it lies in keeps every nanosecond.
  if (value == whole) return part;
  return static_cast<uint64_t>(static_cast<double>(value) * static_cast<double>(part) /
                               static_cast<double>(whole));
}

// The part of `sum`, which is spread evenly over `whole` nanoseconds, that lies in
// `part` of them. A stretch that is cut counts on both sides.
Cell PartOf(const Cell& sum, bool sample, uint64_t part, uint64_t whole) {
  if (part >= whole) return sum;
  Cell cut = sum;
  cut.total_ns = InProportion(sum.total_ns, part, whole);
  cut.amount = InProportion(sum.amount, part, whole);
  if (sample) cut.count = std::max<uint64_t>(1, InProportion(sum.count, part, whole));
  cut.min_ns = std::min(sum.min_ns, cut.total_ns);
  cut.max_ns = std::min(sum.max_ns, cut.total_ns);
  return cut;
}

}  // namespace

ThreadRegions::Thread* ThreadRegions::ThreadOf(ThreadId tid) {
  if (threads_.size() >= kMostThreads && !threads_.contains(tid)) {
    // Once none of them is, each event of one more thread would look at all: of 100,000
    // threads an import took 18 s in place of 3.
    if (!std::exchange(may_be_empty_, false)) return nullptr;
    absl::erase_if(threads_, [](const auto& one) { return one.second.empty(); });
    if (threads_.size() >= kMostThreads) return nullptr;
    may_be_empty_ = true;
  }
  return &threads_[tid];
}

void ThreadRegions::AddOfTheEngine(ThreadId tid) {
  Thread* thread = ThreadOf(tid);
  if (thread == nullptr) return;
  thread->serves = true;
  may_be_empty_ = may_be_empty_ || thread->empty();
}

void ThreadRegions::Add(ThreadId tid, const Piece& piece) {
  Thread* thread = ThreadOf(tid);
  if (thread == nullptr) return;
  thread->fresh.push_back(piece);
  thread->longest_ns = std::max(thread->longest_ns, piece.end_ns - piece.start_ns);
  if (++held_ > kMost) MakeRoom();
}

void ThreadRegions::AddIdle(const Event& idle) {
  if (idle.tid == 0) return;  // nobody knows whose it is
  Add(ThreadId{idle.tid}, {.start_ns = idle.start_ns,
                           .end_ns = idle.start_ns + idle.duration_ns,
                           .total_ns = idle.duration_ns,
                           .squares = 0,
                           .series = idle.series,
                           .sample = false,
                           .continued = (idle.flags & aggregate::kFlagContinued) != 0});
}

void ThreadRegions::AddSample(const Event& sample) {
  const uint64_t weight_ns = SampleView{sample}.weight_ns();
  // One of an imported trace has a duration, and is no matter of chance.
  const bool exact = sample.duration_ns != 0;
  Add(ThreadId{sample.tid},
      {.start_ns = sample.start_ns,
       .end_ns = sample.start_ns + sample.duration_ns,
       .total_ns = weight_ns,
       .squares = exact ? 0 : aggregate::SquareOfWeight(weight_ns),
       .series = sample.series,
       .sample = true,
       .continued = false});
}

ThreadRegions::Item ThreadRegions::ItemOf(const Piece& piece) {
  Item item{piece.end_ns, piece.series, piece.sample, false, {}};
  if (piece.continued) {
    item.sum.AddTime(piece.total_ns, piece.total_ns);
  } else {
    item.sum.Add(piece.total_ns, piece.squares, 0);
  }
  return item;
}

void ThreadRegions::AddScope(ThreadId tid, uint64_t start_ns, uint64_t end_ns,
                             uint32_t stack) {
  Thread* thread = ThreadOf(tid);
  if (thread == nullptr) return;
  thread->has_scopes = true;
  may_be_empty_ = may_be_empty_ || thread->empty();
  if (waiting_.size() >= kMostWaiting) {
    Apply(waiting_.front());
    waiting_.pop_front();
  }
  waiting_.push_back({start_ns, end_ns, tid, stack});
}

std::vector<ThreadRegions::Found> ThreadRegions::Advance(uint64_t judged_ns) {
  std::vector<Scope> over;
  std::deque<Scope> later;
  for (const Scope& scope : waiting_) {
    const bool known = judged_ns >= kLateNs && scope.end_ns <= judged_ns - kLateNs;
    if (known) {
      over.push_back(scope);
    } else {
      later.push_back(scope);
    }
  }
  waiting_.swap(later);
  // Those of several threads, too. Of two that end at once the inner began later.
  std::stable_sort(over.begin(), over.end(), [](const Scope& a, const Scope& b) {
    return std::make_tuple(a.end_ns, b.start_ns) <
           std::make_tuple(b.end_ns, a.start_ns);
  });
  for (const Scope& scope : over) Apply(scope);
  return std::exchange(found_, {});
}

void ThreadRegions::Apply(const Scope& scope) {
  if (auto own = threads_.find(scope.tid); own != threads_.end()) {
    Take(scope, own->second);
  }
  if (scope.tid != main_) return;
  for (auto& [tid, thread] : threads_) {
    if (tid != main_ && (thread.serves || !thread.has_scopes)) Take(scope, thread);
  }
}

void ThreadRegions::Take(const Scope& scope, Thread& thread) {
  Settle(thread);
  Items& items = thread.items;
  const bool told = told_ns_ >= kLateNs && scope.end_ns <= told_ns_ - kLateNs;
  const uint64_t from = scope.start_ns - std::min(scope.start_ns, thread.longest_ns);
  Items outside;
  for (auto at = items.lower_bound(from);
       at != items.end() && at->first < scope.end_ns;) {
    const uint64_t start = at->first;
    const Item item = at->second;
    const uint64_t in = std::max(start, scope.start_ns);
    const uint64_t out = std::min(item.end_ns, scope.end_ns);
    if (in > out || (in == out && item.end_ns != start)) {
      ++at;
      continue;
    }
    at = items.erase(at);
    --held_;
    const uint64_t whole = item.end_ns - start;
    if (!told) {
      found_.push_back({item.sample, item.series, scope.stack, in,
                        PartOf(item.sum, item.sample, out - in, whole)});
    }
    auto keep = [&](uint64_t begin, uint64_t end) {
      if (begin >= end) return;
      Item rest = item;
      rest.end_ns = end;
      rest.sum = PartOf(item.sum, item.sample, end - begin, whole);
      outside.emplace(begin, rest);
      ++held_;
    };
    keep(start, in);
    keep(out, item.end_ns);
  }
  items.merge(outside);
  may_be_empty_ = may_be_empty_ || items.empty();
}

// Mostly it came in order: then it need not be copied.
void ThreadRegions::Sort(std::vector<Piece>& pieces) {
  auto earlier = [](const Piece& a, const Piece& b) { return a.start_ns < b.start_ns; };
  if (std::is_sorted(pieces.begin(), pieces.end(), earlier)) return;
  std::stable_sort(pieces.begin(), pieces.end(), earlier);
}

// What is fresh becomes items. The memory goes back: there may be many threads.
void ThreadRegions::Settle(Thread& thread) {
  std::vector<Piece> fresh = std::exchange(thread.fresh, {});
  Sort(fresh);
  for (const Piece& piece : fresh) {
    thread.items.emplace_hint(thread.items.end(), piece.start_ns, ItemOf(piece));
  }
}

// Pieces of one series and second become one, in its place.
void ThreadRegions::Merge(Thread& thread) {
  std::vector<Piece> fresh = std::exchange(thread.fresh, {});
  Sort(fresh);
  struct First {
    uint64_t start_ns;
    Item* item;
  };
  absl::flat_hash_map<uint32_t, First> firsts;  // of one second, by series
  std::deque<Made> made;                        // of what is fresh
  uint64_t second = 0;
  bool merged_items = false;
  auto old = thread.items.begin();
  auto next = fresh.begin();
  while (old != thread.items.end() || next != fresh.end()) {
    const bool is_old = next == fresh.end() ||
                        (old != thread.items.end() && old->first <= next->start_ns);
    const uint64_t start = is_old ? old->first : next->start_ns;
    const uint64_t its = start / aggregate::kBucketNs;
    if (std::exchange(second, its) != its) firsts.clear();
    const Item item = is_old ? old->second : ItemOf(*next);
    auto [known, is_first] = firsts.try_emplace(item.series, First{start, nullptr});
    First& first = known->second;
    if (is_first) {
      first.item = is_old ? &old->second : &made.emplace_back(start, item).second;
    } else {
      first.item->end_ns = std::max(first.item->end_ns, item.end_ns);
      first.item->sum.Append(item.sum);
      thread.longest_ns =
          std::max(thread.longest_ns, first.item->end_ns - first.start_ns);
      if (is_old) old->second.merged = merged_items = true;
    }
    if (is_old) {
      ++old;
    } else {
      ++next;
    }
  }
  if (merged_items) {
    absl::erase_if(thread.items, [](const auto& one) { return one.second.merged; });
  }
  for (const Made& one : made) {
    thread.items.emplace_hint(thread.items.end(), one.first, one.second);
  }
}

// Where merging is not enough, the older half of each thread's goes.
void ThreadRegions::MakeRoom() {
  held_ = 0;
  for (auto& [tid, thread] : threads_) {
    Merge(thread);
    held_ += thread.items.size();
  }
  if (held_ <= kMost / 2) return;
  held_ = 0;
  for (auto& [tid, thread] : threads_) {
    auto half = std::next(thread.items.begin(),
                          static_cast<ptrdiff_t>((thread.items.size() + 1) / 2));
    thread.items.erase(thread.items.begin(), half);
    held_ += thread.items.size();
    may_be_empty_ = may_be_empty_ || thread.empty();
  }
}

}  // namespace lull::collector
