// Whether the device has come to work that was launched in this window.
//
// CUPTI records what is launched while it is on. A host that is ahead of the device
// leaves it with a queue of launches that nobody recorded, and as long as the device
// works on that it looks idle. So a window counts only from when a kernel that was
// launched in it has ended: streams run in order, and those of a step wait for each
// other. Copies do not count: they often have a stream of their own, which is never
// behind.
//
// Correlation ids grow with the calls, whatever thread makes them. Any thread, no
// locks; begin() under the tracer's.
#pragma once

#include <atomic>
#include <cstdint>

namespace lull::cupti {

class Backlog {
 public:
  // `nothing_before`: the program has launched nothing yet.
  void begin(uint64_t now, bool nothing_before) {
    begun_inverted_.store(0, std::memory_order_relaxed);
    first_call_.store(0, std::memory_order_relaxed);
    first_kernel_.store(0, std::memory_order_relaxed);
    done_ns_.store(nothing_before ? now : 0, std::memory_order_relaxed);
    uint64_t begun = now > kClockToleranceNs ? now - kClockToleranceNs : 0;
    begun_inverted_.store(~begun, std::memory_order_release);
  }

  // A call that began at `start_ns`; a kernel, or a graph, that has ended.
  void saw_call(uint32_t correlation, uint64_t start_ns) {
    if (start_ns < begun_ns()) return;
    replace(first_call_, kKnown | correlation,
            [=](uint64_t known) { return ahead(correlation, id(known)) < 0; });
  }
  void saw_kernel(uint32_t correlation, uint64_t start_ns) {
    uint64_t begun = begun_ns();
    if (start_ns < begun) return;  // so it was launched before
    uint64_t next = uint64_t{packed(start_ns - begun)} << 32 | correlation;
    replace(first_kernel_, next, [=, this](uint64_t known) {
      uint64_t call = first_call_.load(std::memory_order_relaxed);
      if (call != 0 && ahead(id(known), id(call)) < 0) return true;  // of no call here
      if (call != 0 && ahead(correlation, id(call)) < 0) return false;
      return ahead(correlation, id(known)) < 0;
    });
  }

  // Operations of all kinds that were decoded, ever.
  void count(uint64_t operations) {
    operations_.fetch_add(operations, std::memory_order_relaxed);
  }
  uint64_t operations() const { return operations_.load(std::memory_order_relaxed); }

  // Since when all that the device works on was launched in the window, as far as that
  // is known, to the microsecond; 0: it is not there yet.
  uint64_t caught_up_ns() const {
    uint64_t done = done_ns_.load(std::memory_order_relaxed);
    uint64_t call = first_call_.load(std::memory_order_relaxed);
    uint64_t kernel = first_kernel_.load(std::memory_order_relaxed);
    if (call == 0 || kernel == 0 || ahead(id(kernel), id(call)) < 0) return done;
    uint64_t start = begun_ns() + unpacked(static_cast<uint32_t>(kernel >> 32));
    return done != 0 && done < start ? done : start;
  }

 private:
  // Between CUPTI's clock and ours, on a busy machine. A call that is taken for one of
  // the window by it does no harm: its kernel, or the next one of its stream, comes
  // after all that was before.
  static constexpr uint64_t kClockToleranceNs = 200'000;
  static constexpr uint64_t kKnown = uint64_t{1} << 32;

  // Two seconds to the nanosecond; what is longer in microseconds, and rather too long.
  // Never 0.
  static uint32_t packed(uint64_t ns) {
    if (ns < kLong) return static_cast<uint32_t>(ns) + 1;
    uint64_t us = ns / 1000 + 1;
    return kLong | static_cast<uint32_t>(us < kLong ? us : kLong - 1);
  }
  static uint64_t unpacked(uint32_t time) {
    return time <= kLong ? time - 1 : uint64_t{time - kLong} * 1000;
  }
  static constexpr uint32_t kLong = uint32_t{1} << 31;

  static uint32_t id(uint64_t known) { return static_cast<uint32_t>(known); }
  // How far `a` is ahead of `b`; ids begin anew after 2^32.
  static int32_t ahead(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b); }
  template <typename Better>
  static void replace(std::atomic<uint64_t>& known, uint64_t next, Better better) {
    uint64_t now = known.load(std::memory_order_relaxed);
    while ((now == 0 || better(now)) &&
           !known.compare_exchange_weak(now, next, std::memory_order_relaxed)) {
    }
  }
  uint64_t begun_ns() const { return ~begun_inverted_.load(std::memory_order_acquire); }

  std::atomic<uint64_t> begun_inverted_{0};  // ~begun; 0: never, as in .bss
  std::atomic<uint64_t> first_call_{0};      // kKnown | correlation
  std::atomic<uint64_t> first_kernel_{0};    // packed(after begun) << 32 | correlation
  std::atomic<uint64_t> done_ns_{0};  // nothing had been launched; 0: something had
  std::atomic<uint64_t> operations_{0};
};

}  // namespace lull::cupti
