// What CUPTI calls back: it wants a buffer, it has filled one.
#include "preload/cupti/gpu.h"
#include "preload/cupti/tracer.h"
#include "preload/hooks/guard.h"
#include "preload/support/clock.h"

namespace lull::cupti {
namespace {

// Before the first record of it is: what has ended since it was returned is not in it.
void note_passed_on(const Buffer& buffer, std::atomic<uint64_t>* until_ns) {
  uint64_t known = until_ns->load(std::memory_order_relaxed);
  while (buffer.returned_ns > known &&
         !until_ns->compare_exchange_weak(known, buffer.returned_ns,
                                          std::memory_order_relaxed)) {
  }
}

}  // namespace

// Under a mark of their own: what they call is not recorded, on CUPTI's threads
// either.
void on_buffer_requested(uint8_t** buffer, size_t* size, size_t* max_records) {
  OwnCall own(__builtin_frame_address(0));
  g_tracer->requested(buffer, size, max_records);
}

// The program's threads are those that launch, or that were watched for waits; and
// those that are inside of one of our hooks.
void on_buffer_completed(void* context, uint32_t stream, uint8_t* data, size_t size,
                         size_t valid) {
  OwnCall own(__builtin_frame_address(0));
  bool own_thread =
      !own.nested() && t_thread.watched == 0 && t_thread.last_launch_ns == 0;
  g_tracer->completed(context, stream, data, size, valid, own_thread);
}

void Tracer::requested(uint8_t** buffer, size_t* size, size_t* max_records) {
  if (BufferRequested other = forwarding_.requested()) {
    return other(buffer, size, max_records);
  }
  *max_records = 0;
  *buffer = pool_.lend(monotonic_ns(), size);
}

void Tracer::completed(void* context, uint32_t stream, uint8_t* data, size_t size,
                       size_t valid, bool own_thread) {
  if (!pool_.is_ours(data)) {
    if (BufferCompleted other = forwarding_.completed()) {
      other(context, stream, data, size, valid);
    }
    return;
  }
  if (!is_ours()) {  // of an earlier recording, or in a fork child of the parent's
    if (Buffer* buffer = pool_.take_back(data, valid, 0)) pool_.release(buffer);
    return;
  }
  SelfTime self(segment_);
  uint64_t now = monotonic_ns();
  clock_.take(api_, false);
  if (pool_.is_scratch(data)) return lose_scratch(data, valid, now);
  Buffer* buffer = pool_.take_back(data, valid, now);
  if (buffer == nullptr) return;
  ClockView view;
  clock_.copy(&view);
  Patience patience = exiting_.load(std::memory_order_relaxed) ? Patience::kAtExit
                      : own_thread                             ? Patience::kBrief
                                                               : Patience::kNone;
  note_passed_on(*buffer, &passed_on_ns_);
  if (deliver_buffer(decoder(), view, buffer, data, patience, &endurance_, &losses_)) {
    pool_.release(buffer);
  } else {
    pool_.keep_waiting(buffer);
    g_gpu_deadline.store(0, std::memory_order_relaxed);
  }
  losses_.tell(segment_);
}

void Tracer::deliver_waiting(Patience patience) {
  if (pool_.all_decoded()) return;
  ClockView view;
  clock_.copy(&view);
  while (Buffer* buffer = pool_.take_waiting()) {
    note_passed_on(*buffer, &passed_on_ns_);
    bool done = deliver_buffer(decoder(), view, buffer, pool_.data_of(buffer), patience,
                               &endurance_, &losses_);
    if (!done) return pool_.keep_waiting(buffer);
    pool_.release(buffer);
  }
}

// At the end of the program, what no ring has taken.
void Tracer::lose_waiting() {
  while (Buffer* buffer = pool_.take_waiting()) {
    uint64_t records = 0;
    Activity* record = buffer->last;
    Activity* last = record;
    while (api_.get_next_record(pool_.data_of(buffer), buffer->valid, &record) ==
               kSuccess &&
           record > last) {
      last = record;
      ++records;
    }
    header().gpu_records_lost.fetch_add(records, std::memory_order_relaxed);
    losses_.note(records, buffer->lent_ns.load(std::memory_order_relaxed),
                 buffer->returned_ns);
    pool_.release(buffer);
  }
}

// Several threads may have filled it at once; whatever can be told apart is counted.
void Tracer::lose_scratch(uint8_t* data, size_t valid, uint64_t now) {
  uint64_t records = 0;
  Activity* record = nullptr;
  Activity* last = nullptr;
  while (api_.get_next_record(data, valid, &record) == kSuccess && record > last) {
    last = record;
    ++records;
  }
  header().gpu_records_lost.fetch_add(records, std::memory_order_relaxed);
  losses_.note(records, pool_.take_back_scratch(), now);
}

}  // namespace lull::cupti
