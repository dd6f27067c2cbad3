#include "daemon/collector/process_state.h"

#include <algorithm>

#include "daemon/aggregate/accumulate.h"
#include "daemon/aggregate/buckets.h"
#include "daemon/base/status.h"

namespace lull::collector {

using aggregate::Event;
using aggregate::EventType;

absl::Status ProcessState::Load(storage::StoreReader& reader) {
  dirty_ = false;
  LULL_RETURN_IF_ERROR(series_.Load(reader, row_.id));
  LULL_ASSIGN_OR_RETURN(auto rings, reader.Rings(row_.id));
  for (const storage::RingRow& ring : rings) RingOf(ring.ring).row = ring;
  return reader.LiveBlocks(row_.id, [this](const auto& key, const auto& block) {
    blocks_.Restore(key, block);
  });
}

ProcessState::Ring& ProcessState::RingOf(uint32_t ring) {
  std::unique_ptr<Ring>& state = rings_[ring];
  if (state == nullptr) {
    state = std::make_unique<Ring>();
    state->row.ring = ring;
  }
  return *state;
}

void ProcessState::ApplyInfo(const lull::v1::ProcessInfo& info) {
  row_.pid = info.pid();
  row_.parent_pid = info.parent_pid();
  row_.start_ns = info.start_ns();
  row_.command = info.command();
  row_.executable = info.executable();
  row_.python_version = info.python_version();
  row_.rank = info.rank();
  row_.local_rank = info.local_rank();
  dirty_ = true;
}

void ProcessState::ApplyCounters(const lull::v1::ProcessCounters& counters) {
  if (counters.as_of_ns() < row_.as_of_ns) return;  // a repeated message
  row_.as_of_ns = counters.as_of_ns();
  row_.lost_no_ring = counters.lost_no_ring();
  row_.stacks_rejected = counters.stacks_rejected();
  row_.reentered = counters.reentered();
  row_.gpu_calls = counters.gpu_calls();
  row_.torch_allocations = counters.torch_allocations();
  row_.native_stacks = counters.native_stacks();
  row_.gc_hook = counters.gc_hook();
  row_.thinning = counters.thinning();
  row_.corrupt = counters.corrupt();
  dirty_ = true;
  for (const lull::v1::RingCounters& totals : counters.rings()) {
    Ring& ring = RingOf(totals.ring());
    ring.row.committed = totals.committed();
    ring.row.lost_full = totals.lost_full();
    ring.row.lost_relay = totals.lost_relay();
    ring.row.self_ns = totals.self_ns();
    ring.row.short_waits = totals.short_waits();
    ring.row.short_waits_ns = totals.short_waits_ns();
    ring.row.thinned_launches = totals.thinned_launches();
    ring.dirty = true;
  }
}

void ProcessState::ApplyEnd(uint64_t end_ns) {
  row_.end_ns = end_ns;
  dirty_ = true;
  // What is live at the end stays in the aggregates; the addresses are history.
  blocks_ = {};
  forget_blocks_ = true;
}

ProcessState::Run& ProcessState::RunAt(Ring& ring, uint64_t position) {
  bool continues =
      !ring.runs.empty() &&
      ring.runs.back().first_position + ring.runs.back().events.size() == position;
  if (!continues) ring.runs.push_back({position, {}});
  return ring.runs.back();
}

aggregate::Cell& ProcessState::CellOf(const Event& event, uint32_t series) {
  uint64_t bucket =
      aggregate::AfterStart(event.start_ns, job_start_ns_) / aggregate::kBucketNs;
  return changes_.At(bucket, series);
}

void ProcessState::ApplyEvents(uint32_t ring_number, const lull::v1::EventColumns& in) {
  Ring& ring = RingOf(ring_number);
  const int count = in.start_delta_ns_size();
  const uint64_t first = in.first_position();
  const uint64_t mark = ring.row.end_position;
  if (first + static_cast<uint64_t>(count) <= mark) return;
  const int skip = mark > first ? static_cast<int>(mark - first) : 0;
  ring.row.skipped += first > mark ? first - mark : 0;
  Run& run = RunAt(ring, first + static_cast<uint64_t>(skip));
  run.events.reserve(run.events.size() + static_cast<size_t>(count - skip));

  Event event;
  event.start_ns = in.base_ns();
  for (int i = 0; i < count; ++i) {
    event.start_ns += static_cast<uint64_t>(in.start_delta_ns(i));
    if (i < skip) continue;
    event.duration_ns = in.duration_ns(i);
    event.arg0 = in.arg0(i);
    event.arg1 = in.arg1(i);
    event.arg2 = in.arg2(i);
    event.flags = in.flags(i);
    event.tid = in.tid(i);
    auto type = static_cast<EventType>(in.type(i));
    event.series =
        series_.Find({type, aggregate::VariantOf(type, event.flags, event.arg2),
                      (event.flags & aggregate::kFlagFromPython) != 0, in.api(i),
                      in.python_stack(i), in.native_stack(i)});
    aggregate::AddEvent(series_[event.series], event, CellOf(event, event.series));
    if (aggregate::IsMemory(type)) {
      memory_.push_back({aggregate::MemoryOrderNs(event), &run, run.events.size()});
    }
    last_event_ns_ = std::max(last_event_ns_, event.start_ns + event.duration_ns);
    run.events.push_back(event);
  }
  ring.row.end_position = first + static_cast<uint64_t>(count);
  ring.row.stored += static_cast<uint64_t>(count - skip);
  events_stored_ += static_cast<uint64_t>(count - skip);
  ring.dirty = true;
}

void ProcessState::ApplyMemory() {
  std::stable_sort(memory_.begin(), memory_.end(), [](const auto& a, const auto& b) {
    return a.order_ns < b.order_ns;
  });
  for (const MemoryEvent& at : memory_) {
    Event& event = at.run->events[at.index];
    blocks_.Apply(series_[event.series], event);
    aggregate::AddMemory(
        event, [&](uint32_t id) -> aggregate::Cell& { return CellOf(event, id); },
        [&](uint32_t id) -> const aggregate::Series& { return series_[id]; });
  }
  memory_.clear();
}

absl::Status ProcessState::Flush(storage::StoreWriter& writer, int64_t job) {
  row_.job = job;
  if (dirty_ || row_.id == 0) LULL_RETURN_IF_ERROR(writer.PutProcess(row_));
  dirty_ = false;
  LULL_RETURN_IF_ERROR(series_.Flush(writer, row_.id));
  for (auto& [number, ring] : rings_) {
    for (const Run& run : ring->runs) {
      LULL_RETURN_IF_ERROR(
          writer.AppendEvents(row_, number, run.first_position, run.events));
    }
    ring->runs.clear();
    if (ring->dirty) LULL_RETURN_IF_ERROR(writer.PutRing(row_.id, ring->row));
    ring->dirty = false;
  }
  LULL_RETURN_IF_ERROR(cells_.Flush(changes_, row_.id, writer));
  if (forget_blocks_) LULL_RETURN_IF_ERROR(writer.DeleteLiveBlocks(row_.id));
  forget_blocks_ = false;
  for (const auto& change : blocks_.TakeChanges()) {
    LULL_RETURN_IF_ERROR(change.live
                             ? writer.PutLiveBlock(row_.id, change.key, change.block)
                             : writer.DeleteLiveBlock(row_.id, change.key));
  }
  return absl::OkStatus();
}

}  // namespace lull::collector
