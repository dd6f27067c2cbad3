// Whether the device has come to work that was launched in this window.
//
// CUPTI records what is launched while it is on. A host that is ahead of the device
// leaves it with a queue of launches that nobody recorded, and as long as the device
// works on that it looks idle. So a window counts only from when all that the device
// works on was launched in it, which its first round tells (round.h).
//
// Correlation ids grow with the calls, whatever thread makes them. Any thread, no
// locks; begin() and the questions under the tracer's.
#pragma once

#include <atomic>
#include <cstdint>

#include "preload/cupti/round.h"

namespace lull::cupti {

class Backlog {
 public:
  // Tells of what was decoded to the window at whose time that began, for as long as it
  // lives: one that has begun since hears nothing of it.
  class Report {
   public:
    explicit Report(Backlog* backlog) : backlog_(backlog) {
      if (backlog == nullptr) return;
      for (;;) {
        window_ = backlog->window_.load();
        backlog->reports_[window_ % kRounds].fetch_add(1);
        if (backlog->window_.load() == window_) return;
        backlog->reports_[window_ % kRounds].fetch_sub(1);
      }
    }
    ~Report() {
      if (backlog_ != nullptr) backlog_->reports_[window_ % kRounds].fetch_sub(1);
    }
    Report(const Report&) = delete;
    Report& operator=(const Report&) = delete;

    // Null: nobody wants to know.
    Round* round() const {
      return backlog_ == nullptr ? nullptr : &backlog_->rounds_[window_ % kRounds];
    }

   private:
    Backlog* backlog_;
    uint32_t window_ = 0;
  };

  // `nothing_before`: the program has launched nothing yet.
  void begin(uint64_t now, bool nothing_before) {
    uint32_t next = window_.load() + 1;
    // A thread that has been at one buffer since the window before the last one has not
    // let go of its round. Where is it? Nobody knows; this window does not count.
    blind_ = reports_[next % kRounds].load() != 0;
    if (blind_) return;
    const Round* before = forgotten_ ? nullptr : &round();
    uint64_t old_calls = before == nullptr ? 0 : before->last_call();
    rounds_[next % kRounds].begin(now, nothing_before, old_calls, before);
    forgotten_ = false;
    window_.store(next);
  }

  // The round goes on until then, if there was a launch in it; what comes later is of
  // the second one.
  void end_round(uint64_t now) {
    if (!blind_) round().end(now);
  }
  // As long as its round goes on, nothing is known of the window.
  bool needs_round() const { return !round().nothing_before(); }
  void stop(uint64_t now) {
    if (!blind_) round().stop(now);
  }
  // As Round has it. `told_ns`: all calls that ended before then have been told.
  uint64_t caught_up_ns(uint64_t told_ns) const {
    bool known = round().nothing_before() || told_ns > round().end_ns();
    return known && !blind_ ? round().caught_up_ns() : 0;
  }

  // Launches of the window, or of the one that was last, have not ended, or of a graph
  // nobody knows.
  bool has_unended() const { return unended_since(0) != UINT64_MAX; }
  // Since when the device may be at them: `begun_ns`, the window's begin, or later;
  // UINT64_MAX: there are none.
  uint64_t unended_since(uint64_t begun_ns) const {
    if (blind_ || forgotten_) return UINT64_MAX;
    return round().has_unended() ? begun_ns : round().unsure_since();
  }
  void all_ended() {
    if (!blind_) round().all_ended();
  }
  // CUPTI was taken down: nothing of before is told any more, and ids may begin anew.
  void forget() { forgotten_ = true; }

  // Operations of all kinds that were decoded, ever.
  void count(uint64_t operations) {
    operations_.fetch_add(operations, std::memory_order_relaxed);
  }
  uint64_t operations() const { return operations_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kRounds = 2;

  Round& round() { return rounds_[window_.load() % kRounds]; }
  const Round& round() const { return rounds_[window_.load() % kRounds]; }

  std::atomic<uint32_t> window_{0};
  std::atomic<uint32_t> reports_[kRounds] = {};  // under way
  bool blind_ = false;
  bool forgotten_ = false;
  Round rounds_[kRounds];
  std::atomic<uint64_t> operations_{0};
};

}  // namespace lull::cupti
