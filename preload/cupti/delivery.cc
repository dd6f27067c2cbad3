#include "preload/cupti/delivery.h"

#include "preload/ring/writer.h"
#include "preload/support/clock.h"
#include "preload/support/raw_syscall.h"

namespace lull::cupti {
namespace {

constexpr uint64_t kPauseNs = 1'000'000;
constexpr uint64_t kLongestExitNs = 1'000'000'000;
// What one record may need: itself, and one that was held back.
constexpr uint64_t kEventsPerRecord = 2;

void raise(std::atomic<uint64_t>& value, uint64_t to) {
  uint64_t seen = value.load(std::memory_order_relaxed);
  while (to > seen && !value.compare_exchange_weak(seen, to)) {
  }
}

// Waits for room as long as it may.
class Room {
 public:
  Room(char* segment, Patience patience, Endurance* endurance)
      : segment_(segment),
        endurance_(patience == Patience::kNone ? nullptr : endurance),
        keep_free_(patience == Patience::kNone ? abi::kRingEvents / 2
                                               : kEventsPerRecord) {}
  bool wait() {
    while (!ring_has_room(segment_, keep_free_)) {
      if (endurance_ == nullptr || t_thread.ring == nullptr ||
          !endurance_->pause(*t_thread.ring)) {
        return false;
      }
    }
    return true;
  }

 private:
  char* segment_;
  Endurance* endurance_;
  uint64_t keep_free_;
};

// A runtime call and the driver call below it come as two records with one
// correlation id, the inner one first. One is enough: the outer, if there is one.
class CallPairs {
 public:
  explicit CallPairs(char* segment) : segment_(segment) {}
  CallPairs(const CallPairs&) = delete;
  CallPairs& operator=(const CallPairs&) = delete;

  void add(const abi::Event& event) {
    bool is_call = event.type == abi::EventType::kApiCall;
    bool is_driver = is_call && event.api >= abi::kDriverCallBase;
    if (is_call && holds_ && !is_driver && held_.arg2 == event.arg2) holds_ = false;
    if (is_call) flush();
    if (is_driver) {
      held_ = event;
      holds_ = true;
    } else {
      send(event);
    }
  }

  // Once all have been added.
  void flush() {
    if (holds_) send(held_);
    holds_ = false;
  }
  uint64_t lost() const { return lost_; }

 private:
  // Room for one event is sure; a second one may need a chunk that is not to be had.
  void send(const abi::Event& event) {
    if (!deliver(segment_, event)) ++lost_;
  }

  char* segment_;
  uint64_t lost_ = 0;
  abi::Event held_;
  bool holds_ = false;
};

// 0: of none. A record of a whole graph (kGpuGraph) is no node.
uint32_t graph_of(const abi::Event& event) {
  switch (event.type) {
    case abi::EventType::kGpuKernel:
      return static_cast<uint32_t>(event.arg0);
    case abi::EventType::kGpuCopy:
      return static_cast<uint32_t>(event.arg1 >> 32);
    case abi::EventType::kGpuMemset:
      return static_cast<uint32_t>(event.arg1);
    default:
      return 0;
  }
}

// True: it is an operation. Calls are told by whoever knows what they submit.
bool tell(Round* round, const abi::Event& event) {
  bool kernels = event.type == abi::EventType::kGpuKernel ||
                 event.type == abi::EventType::kGpuGraph;
  bool copies = event.type == abi::EventType::kGpuCopy ||
                event.type == abi::EventType::kGpuMemset;
  if (!kernels && !copies) return false;
  if (round != nullptr) {
    round->saw_operation(event.arg2, event.start_ns, event.native_stack, copies);
    if (uint32_t graph = graph_of(event); graph != 0) {
      round->saw_node(graph, event.arg2, event.start_ns,
                      event.start_ns + event.duration_ns, event.native_stack);
    }
  }
  return true;
}

}  // namespace

bool ring_has_room(char* segment, uint64_t keep_free) {
  ThreadState& thread = t_thread;
  if (thread.generation != g_state->generation.load(std::memory_order_relaxed) &&
      !take_ring(segment)) {
    return false;
  }
  uint64_t unread = thread.head - thread.ring->tail.load(std::memory_order_relaxed);
  if (unread + keep_free >= abi::kRingEvents) return false;
  return thread.next < thread.end || open_chunk(segment);
}

bool deliver(char* segment, const abi::Event& event) {
  if (!ring_has_room(segment, 0)) return false;
  abi::Event* slot = reserve_event(segment);
  if (slot == nullptr) return false;
  *slot = event;
  commit_event();
  return true;
}

void Losses::note(uint64_t records, uint64_t from, uint64_t to) {
  if (records == 0) return;
  raise(from_inverted_, ~from);
  raise(to_, to);
  records_.fetch_add(records, std::memory_order_release);  // pairs with tell()
}

void Losses::tell(char* segment) {
  if (!pending() || !ring_has_room(segment, 0)) return;
  uint64_t records = records_.exchange(0, std::memory_order_acquire);
  uint64_t from = ~from_inverted_.exchange(0, std::memory_order_relaxed);
  uint64_t to = to_.exchange(0, std::memory_order_relaxed);
  if (records == 0 || to < from) return;  // another thread has told it
  abi::Event event = {};
  event.type = abi::EventType::kGpuLost;
  event.start_ns = from;
  event.duration_ns = to - from;
  event.arg0 = records;
  deliver(segment, event);
}

void Endurance::begin_exit(uint64_t now) {
  pauses_.store(kPauses, std::memory_order_relaxed);
  until_.store(now + kLongestExitNs, std::memory_order_relaxed);
}

bool Endurance::pause(const abi::RingHeader& ring) {
  uint64_t tail = ring.tail.load(std::memory_order_relaxed);
  bool same_ring = ring_.exchange(&ring, std::memory_order_relaxed) == &ring;
  bool was_read = tail_.exchange(tail, std::memory_order_relaxed) != tail;
  if (same_ring && was_read) pauses_.store(kPauses, std::memory_order_relaxed);
  if (pauses_.load(std::memory_order_relaxed) <= 0 ||
      monotonic_ns() >= until_.load(std::memory_order_relaxed)) {
    return false;
  }
  pauses_.fetch_sub(1, std::memory_order_relaxed);
  raw_poll_one(-1, 0, kPauseNs);
  return true;
}

bool deliver_buffer(const Decoder& of_segment, const ClockView& clock, Buffer* buffer,
                    uint8_t* data, Patience patience, Endurance* endurance,
                    Losses* losses) {
  Backlog::Report report(of_segment.backlog);
  Decoder decoder = of_segment;
  decoder.round = report.round();
  Room room(decoder.segment, patience, endurance);
  CallPairs pairs(decoder.segment);
  Lifetime lifetime = {buffer->lent_ns.load(std::memory_order_relaxed),
                       buffer->returned_ns};
  uint64_t bad = 0;
  uint64_t unreadable = 0;
  uint64_t operations = 0;
  bool done = false;
  while (room.wait()) {
    // Entries that were made for one segment mean nothing in the next.
    if (decoder.generation != g_state->generation.load(std::memory_order_acquire)) {
      return true;
    }
    Activity* record = buffer->last;
    Result result = decoder.api->get_next_record(data, buffer->valid, &record);
    auto* at = reinterpret_cast<uint8_t*>(record);
    bool forward = record > buffer->last && at >= data && at < data + buffer->valid;
    if (result != kSuccess || !forward) {
      // Anything but the end of the buffer hides what comes after it.
      if (result != kNoMoreRecords) ++bad;
      done = true;
      break;
    }
    abi::Event event;
    size_t size = static_cast<size_t>(data + buffer->valid - at);
    switch (decode(decoder, clock, lifetime, record, size, &event)) {
      case Outcome::kEvent:
        operations += tell(decoder.round, event) ? 1 : 0;
        pairs.add(event);
        break;
      case Outcome::kSkipped:
        break;
      case Outcome::kUnreadable:
        ++unreadable;
        [[fallthrough]];
      case Outcome::kSenseless:
        ++bad;
        break;
    }
    buffer->last = record;
  }
  pairs.flush();
  if (decoder.backlog != nullptr) decoder.backlog->count(operations);
  abi::SegmentHeader& header = abi::SegmentView(decoder.segment).header();
  if (bad > 0) {
    header.gpu_records_bad.fetch_add(bad, std::memory_order_relaxed);
    losses->note(bad, lifetime.from, lifetime.to);
    losses->note_unreadable(unreadable);
  }
  if (pairs.lost() > 0) {
    header.gpu_records_lost.fetch_add(pairs.lost(), std::memory_order_relaxed);
    losses->note(pairs.lost(), lifetime.from, lifetime.to);
  }
  return done;
}

}  // namespace lull::cupti
