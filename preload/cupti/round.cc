#include "preload/cupti/round.h"

namespace lull::cupti {
namespace {

constexpr uint64_t kKnown = uint64_t{1} << 32;
constexpr uint64_t kCopyKey = uint64_t{1} << 32;

// Between CUPTI's clock and ours, on a busy machine. A call that is taken for one of
// the window by it does no harm: its kernel, or the next one of its stream, comes after
// all that was before.
constexpr uint64_t kClockToleranceNs = 200'000;

// Two seconds to the nanosecond; what is longer in microseconds, and rather too long.
// Never 0.
constexpr uint32_t kLong = uint32_t{1} << 31;
uint32_t packed(uint64_t ns) {
  if (ns < kLong) return static_cast<uint32_t>(ns) + 1;
  uint64_t us = ns / 1000 + 1;
  return kLong | static_cast<uint32_t>(us < kLong ? us : kLong - 1);
}
uint64_t unpacked(uint32_t time) {
  return time <= kLong ? time - 1 : uint64_t{time - kLong} * 1000;
}

uint32_t id_of(uint64_t known) { return static_cast<uint32_t>(known); }
// How far `a` is ahead of `b`; ids begin anew after 2^32.
int32_t ahead(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b); }

template <typename Better>
void replace(std::atomic<uint64_t>& known, uint64_t next, Better better) {
  uint64_t now = known.load(std::memory_order_relaxed);
  while ((now == 0 || better(now)) &&
         !known.compare_exchange_weak(now, next, std::memory_order_relaxed)) {
  }
}
void keep_first(std::atomic<uint64_t>& known, uint32_t id) {
  replace(known, kKnown | id,
          [=](uint64_t other) { return ahead(id, id_of(other)) < 0; });
}
void keep_last(std::atomic<uint64_t>& known, uint32_t id) {
  replace(known, kKnown | id,
          [=](uint64_t other) { return ahead(id, id_of(other)) > 0; });
}

}  // namespace

void Round::begin(uint64_t now, bool nothing_before, uint64_t old_calls,
                  const Round* before) {
  now_ns_ = now;
  begun_ns_ = now > kClockToleranceNs ? now - kClockToleranceNs : 0;
  nothing_before_ = nothing_before;
  end_ns_.store(UINT64_MAX, std::memory_order_relaxed);
  stop_ns_.store(UINT64_MAX, std::memory_order_relaxed);
  old_call_.store(old_calls, std::memory_order_relaxed);
  for (auto* known :
       {&first_call_, &last_call_, &newest_launch_, &last_launch_, &last_copy_,
        &capture_begun_, &capture_ended_, &captured_, &unsure_, &base_, &crowd_}) {
    known->store(0, std::memory_order_relaxed);
  }
  for (Stream& stream : streams_) {
    stream.key.store(0, std::memory_order_relaxed);
    for (auto* known :
         {&stream.first, &stream.first_sure, &stream.latest, &stream.newest}) {
      known->store(0, std::memory_order_relaxed);
    }
  }
  nodes_.begin(before == nullptr ? nullptr : &before->nodes_);
  for (Ids* ids : {&launched_, &copied_, &done_}) {
    // What was never written is not touched: it would become memory.
    for (std::atomic<uint64_t>& word : *ids) {
      if (word.load(std::memory_order_relaxed) != 0) {
        word.store(0, std::memory_order_relaxed);
      }
    }
  }
}

// False: it is too far from the first one.
bool Round::index_of(uint32_t id, uint32_t* index) {
  uint64_t base = kKnown | static_cast<uint32_t>(id - kIdsBefore);
  uint64_t known = 0;
  if (!base_.compare_exchange_strong(known, base, std::memory_order_relaxed)) {
    base = known;
  }
  *index = id - id_of(base);
  return *index < kIds;
}

void Round::saw_call(uint32_t id, uint64_t start_ns, Submits what) {
  keep_last(last_call_, id);
  if (start_ns < begun_ns_) return keep_last(old_call_, id);
  keep_first(first_call_, id);
  bool in_round = start_ns < end_ns_.load(std::memory_order_relaxed);
  if (what == Submits::kNothing) return;
  if (what == Submits::kCaptureBegin || what == Submits::kCaptureEnd) {
    keep_first(captured_, id);
    if (!in_round) return;
    return what == Submits::kCaptureBegin ? keep_first(capture_begun_, id)
                                          : keep_last(capture_ended_, id);
  }
  // Calls are seen before kernels are when CUPTI is switched on, and after that when it
  // is switched off. What such a call launched would be waited for in vain.
  if (start_ns < now_ns_ || start_ns >= stop_ns_.load(std::memory_order_relaxed))
    return;
  uint32_t index;
  if (!index_of(id, &index)) return;
  bool copies = what == Submits::kCopy;
  Ids& called = copies ? copied_ : launched_;
  called[index / 64].fetch_or(uint64_t{1} << index % 64, std::memory_order_relaxed);
  if (!copies) keep_last(newest_launch_, id);
  if (in_round) keep_last(copies ? last_copy_ : last_launch_, id);
}

bool Round::is_of_before(uint32_t id, uint64_t start_ns) const {
  uint64_t old = old_call_.load(std::memory_order_relaxed);
  return start_ns < begun_ns_ || (old != 0 && ahead(id, id_of(old)) <= 0);
}

void Round::saw_operation(uint32_t id, uint64_t start_ns, abi::Ref stream, bool copy) {
  uint64_t call = first_call_.load(std::memory_order_relaxed);
  if (is_of_before(id, start_ns)) return;
  uint32_t index;
  if (index_of(id, &index)) {
    done_[index / 64].fetch_or(uint64_t{1} << index % 64, std::memory_order_relaxed);
  }
  uint64_t start = packed(start_ns - begun_ns_);
  auto later = [=](uint64_t known) { return start > known; };
  Stream* slot = stream == 0 ? nullptr : stream_of(stream | (copy ? kCopyKey : 0));
  if (slot == nullptr) return replace(crowd_, start, later);
  auto earlier = [=](uint64_t known) { return ahead(id, id_of(known)) < 0; };
  replace(slot->first, start << 32 | id, earlier);
  replace(slot->latest, start, later);
  keep_last(slot->newest, id);
  // Threads' calls come buffer by buffer, and an earlier one may be told later: whether
  // this was launched before the window shows only then.
  if (call == 0 || ahead(id, id_of(call)) < 0) return keep_last(unsure_, id);
  replace(slot->first_sure, start << 32 | id, earlier);
}

void Round::saw_node(uint32_t graph, uint32_t id, uint64_t start_ns, uint64_t end_ns,
                     abi::Ref stream) {
  if (!is_of_before(id, start_ns)) nodes_.saw(graph, id, end_ns, stream);
}

// Null: there are too many.
Round::Stream* Round::stream_of(uint64_t key) {
  for (Stream& stream : streams_) {
    uint64_t known = stream.key.load(std::memory_order_relaxed);
    if (known == 0 &&
        stream.key.compare_exchange_strong(known, key, std::memory_order_relaxed)) {
      known = key;
    }
    if (known == key) return &stream;
  }
  return nullptr;
}

void Round::end(uint64_t now) {
  bool any = last_launch_.load(std::memory_order_relaxed) != 0 ||
             last_copy_.load(std::memory_order_relaxed) != 0;
  if (any && !ended()) end_ns_.store(now, std::memory_order_relaxed);
}

void Round::stop(uint64_t now) {
  stop_ns_.store(now > kClockToleranceNs ? now - kClockToleranceNs : 0,
                 std::memory_order_relaxed);
}

// What is captured does not run. Whoever launched beside it is not told apart.
bool Round::is_captured(uint32_t id) const {
  uint64_t begun = capture_begun_.load(std::memory_order_relaxed);
  uint64_t ended = capture_ended_.load(std::memory_order_relaxed);
  if (begun == 0) return ended != 0 && ahead(id, id_of(ended)) < 0;
  bool open = ended == 0 || ahead(id_of(ended), id_of(begun)) < 0;
  return ahead(id, id_of(begun)) > 0 && (open || ahead(id, id_of(ended)) < 0);
}

// Of those called up to `last`.
bool Round::pending(const Ids& called, uint32_t last) const {
  uint32_t base = id_of(base_.load(std::memory_order_relaxed));
  for (uint32_t i = 0; i < kWords; ++i) {
    uint64_t open = called[i].load(std::memory_order_relaxed) &
                    ~done_[i].load(std::memory_order_relaxed);
    for (; open != 0; open &= open - 1) {
      uint32_t id = base + i * 64 + static_cast<uint32_t>(__builtin_ctzll(open));
      if (ahead(id, last) <= 0 && !is_captured(id)) return true;
    }
  }
  return false;
}

bool Round::has_unended() const {
  uint64_t newest = newest_launch_.load(std::memory_order_relaxed);
  bool captured = captured_.load(std::memory_order_relaxed) != 0;
  return newest != 0 && !captured && pending(launched_, id_of(newest));
}

// Streams run in order.
uint64_t Round::unsure_since() const {
  return nodes_.unsure_since([this](abi::Ref ref, uint32_t id) {
    for (const Stream& stream : streams_) {
      const uint64_t key = stream.key.load(std::memory_order_relaxed) & ~kCopyKey;
      const uint64_t newest = stream.newest.load(std::memory_order_relaxed);
      if (key == ref && newest != 0 && ahead(id_of(newest), id) > 0) return true;
    }
    return false;
  });
}

// When it had done all from before, packed; rather too late. 0: nothing of the round
// ran on it. Of the round are the calls from `call` to `last`, all of which have ended.
uint32_t Round::begun_on(const Stream& stream, uint32_t call, uint32_t last) const {
  uint64_t first = stream.first.load(std::memory_order_relaxed);
  if (first == 0) return 0;
  if (ahead(id_of(first), call) < 0) {  // launched before
    uint64_t unsure = unsure_.load(std::memory_order_relaxed);
    if (unsure == 0 || ahead(id_of(unsure), call) >= 0) {
      return static_cast<uint32_t>(stream.latest.load(std::memory_order_relaxed));
    }
    first = stream.first_sure.load(std::memory_order_relaxed);
  }
  if (first == 0 || ahead(id_of(first), last) > 0) return 0;
  return static_cast<uint32_t>(first >> 32);
}

// 0: nothing of the round has run.
uint64_t Round::since(bool copies, uint32_t last) const {
  uint32_t call = id_of(first_call_.load(std::memory_order_relaxed));
  auto latest = static_cast<uint32_t>(crowd_.load(std::memory_order_relaxed));
  for (const Stream& stream : streams_) {
    uint64_t key = stream.key.load(std::memory_order_relaxed);
    if ((key & kCopyKey) != (copies ? kCopyKey : 0)) continue;
    uint32_t begun = begun_on(stream, call, last);
    if (begun > latest) latest = begun;
  }
  return latest == 0 ? 0 : begun_ns_ + unpacked(latest);
}

// Copies do not count where there are kernels: they often have a stream of their own,
// some leave no record, and what is behind them waits for them.
uint64_t Round::caught_up_ns() const {
  if (nothing_before_) return now_ns_;
  if (!ended()) return 0;
  uint64_t launch = last_launch_.load(std::memory_order_relaxed);
  uint64_t copy = last_copy_.load(std::memory_order_relaxed);
  bool copies = launch == 0;
  uint32_t last = id_of(copies ? copy : launch);
  if ((copies && copy == 0) || pending(copies ? copied_ : launched_, last)) return 0;
  return since(copies, last);
}

}  // namespace lull::cupti
