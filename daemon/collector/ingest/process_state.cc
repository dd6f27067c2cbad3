#include "daemon/collector/ingest/process_state.h"

#include <algorithm>

#include "daemon/aggregate/accumulate.h"
#include "daemon/aggregate/accumulate_memory.h"
#include "daemon/aggregate/buckets.h"
#include "daemon/aggregate/control_step.h"
#include "daemon/base/status.h"
#include "daemon/storage/block_codec.h"

namespace lull::collector {
namespace {

// 16 TiB: no memory has a block like that. Blocks are summed up, signed, and whoever
// sends more shall not make a sum overflow. A call that failed may have asked for
// anything, and a free releases what was there.
constexpr uint64_t kMostOfABlock = uint64_t{1} << 44;

uint64_t BoundedSize(EventType type, uint32_t flags, uint64_t bytes) {
  constexpr uint32_t kNothing = aggregate::kFlagFree | aggregate::kFlagFailed;
  const bool counts =
      type == EventType::kTorchReserved ||
      (aggregate::IsMemory(type) &&
       ((flags & aggregate::kFlagBefore) != 0 || (flags & kNothing) == 0));
  return counts ? std::min(bytes, kMostOfABlock) : bytes;
}

}  // namespace

ProcessState::ProcessState(storage::ProcessRow row, JobTables& tables,
                           uint64_t job_start_ns, bool blame)
    : row_(std::move(row)),
      series_(tables),
      tables_(tables),
      job_start_ns_(job_start_ns),
      steps_(series_, tables.gpu()) {
  if (blame) StartBlame();
}

void ProcessState::StartBlame() {
  if (blame_ != nullptr || row_.end_ns != 0) return;
  blame_ = std::make_unique<BlameFeed>(series_, tables_.gpu(), job_start_ns_);
  blame_->set_main_thread(ThreadId{row_.info.pid()});
}

absl::Status ProcessState::Load(storage::StoreReader& reader) {
  dirty_ = false;
  cells_.SetStoredBefore();
  LULL_RETURN_IF_ERROR(series_.Load(reader, row_.id));
  LULL_ASSIGN_OR_RETURN(auto rings, reader.catalogue().All<storage::RingRow>(row_.id));
  for (const storage::RingRow& ring : rings) RingOf(ring.ring).row = ring;
  LULL_RETURN_IF_ERROR(landmarks_.Load(reader, row_.id));
  LULL_ASSIGN_OR_RETURN(auto steps,
                        reader.catalogue().Steps(row_.id, 0, aggregate::kForever, 1));
  if (!steps.empty()) steps_.Restore(steps.back());
  LULL_RETURN_IF_ERROR(Replay(reader));
  LULL_RETURN_IF_ERROR(LoadStepMemory(reader));
  LULL_ASSIGN_OR_RETURN(auto blocks,
                        reader.catalogue().All<storage::LiveBlockRow>(row_.id));
  for (const storage::LiveBlockRow& row : blocks) blocks_.Restore(row.key, row.block);
  return absl::OkStatus();
}

absl::Status ProcessState::LoadStepMemory(storage::StoreReader& reader) {
  LULL_RETURN_IF_ERROR(reader.cells().Read(
      row_.id, aggregate::kBucketLevels - 1, 0, aggregate::kForever,
      [this](uint32_t id, const aggregate::Cell& cell) {
        EventType type = series_[id].type;
        if (type == EventType::kTotalGroup || type == EventType::kTorchReserved) {
          step_memory_.RestoreLive(id, cell.live);
        }
      }));
  LULL_ASSIGN_OR_RETURN(auto rows,
                        reader.catalogue().All<storage::StepMemoryRow>(row_.id));
  if (rows.empty()) return absl::OkStatus();
  uint64_t stride = rows.size() > 1 ? rows[1].ordinal - rows[0].ordinal : 1;
  step_memory_.RestoreSamples(rows.size(), stride, rows.back().ordinal);
  stored_stride_ = stride;
  return absl::OkStatus();
}

// Blame was in the middle of its work when the collector ended: it is given again what
// it had not judged, and what may explain that.
absl::Status ProcessState::Replay(storage::StoreReader& reader) {
  if (blame_ == nullptr) return absl::OkStatus();
  const uint64_t from = BlameFeed::ReplayFrom(row_.judged_ns);
  blame_->Restore(row_.judged_ns, landmarks_.TracedAt(from));
  blame_->set_late_before(row_.late_operations);
  LULL_RETURN_IF_ERROR(reader.events().Read(row_.id, from, aggregate::kForever,
                                            [this](const Event& event) {
                                              blame_->Add(event);
                                              steps_.Add(event);
                                            }));
  blame_->Restored();
  return absl::OkStatus();
}

ProcessState::Ring& ProcessState::RingOf(uint32_t ring) {
  std::unique_ptr<Ring>& state = rings_[ring];
  if (state == nullptr) {
    state = std::make_unique<Ring>();
    state->row.ring = ring;
  }
  return *state;
}

void ProcessState::ApplyInfo(const v1::ProcessInfo& info) {
  row_.info = info;
  if (blame_ != nullptr) blame_->set_main_thread(ThreadId{info.pid()});
  dirty_ = true;
}

void ProcessState::ApplyCounters(const v1::ProcessCounters& counters) {
  if (counters.as_of_ns() < row_.counters.as_of_ns()) return;  // a repeated message
  row_.counters = counters;
  row_.counters.clear_rings();  // they have rows of their own
  dirty_ = true;
  for (const v1::RingCounters& totals : counters.rings()) {
    Ring& ring = RingOf(totals.ring());
    ring.row.counters = totals;
    ring.dirty = true;
  }
  step_memory_.Advance(counters.as_of_ns());
  if (blame_ != nullptr) {
    blame_->Advance(counters.as_of_ns());
    TakeDerived();
  }
  steps_.Advance(counters.as_of_ns(), blame_ != nullptr ? blame_->gpu_ns() : 0);
}

void ProcessState::ApplyDevice(const v1::GpuDeviceDef& device) {
  new_devices_.push_back({DeviceId{device.device()}, device});
}

void ProcessState::ApplyJobEnd() {
  step_memory_.Advance(aggregate::kForever);
  if (blame_ != nullptr) {
    blame_->Finish();
    TakeDerived();
  }
  steps_.Advance(aggregate::kForever, aggregate::kForever);
}

// What we conclude goes the way of all events, in a ring of its own.
void ProcessState::StoreDerived(const Event& event) {
  Ring& ring = RingOf(storage::kDerivedRing);
  RunAt(ring, ring.row.end_position).events.push_back(event);
  ++ring.row.end_position;
  ++ring.row.stored;
  ring.dirty = true;
}

void ProcessState::TakeDerived() {
  for (const Event& event : blame_->TakeEvents()) {
    StoreDerived(event);
    aggregate::AddEvent(series_[event.series], event,
                        CellOf(event.start_ns, event.series));
  }
  for (const BlameFeed::Submitted& submitted : blame_->TakeSubmitted()) {
    CellOf(submitted.start_ns, submitted.series).Add(submitted.duration_ns, 0, 0);
  }
  for (const BlameFeed::Summed& summed : blame_->TakeSummed()) {
    CellOf(summed.start_ns, summed.series).Append(summed.sum);
  }
  row_.judged_ns = blame_->judged_ns();
  row_.late_operations = blame_->late_operations();
  dirty_ = true;
}

void ProcessState::ApplyStretch(uint64_t start_ns) {
  steps_.BeginAt(start_ns);
  ForgetBlocks(start_ns, Forgets::kAll);
}

void ProcessState::ForgetBlocks(uint64_t before_ns, Forgets what) {
  auto is_drawn = [&](uint32_t id) { return aggregate::IsDrawn(series_[id]); };
  for (Event& event : blocks_.Forget(before_ns, what, is_drawn)) {
    event.series = series_.Intern({.type = EventType::kForgotten});
    StoreDerived(event);
    AddLive(event);
  }
}

void ProcessState::ApplyEnd(uint64_t end_ns) {
  ApplyJobEnd();
  row_.end_ns = end_ns;
  dirty_ = true;
  // What is live at the end stays in the aggregates; the addresses are history.
  blocks_ = {};
  forget_blocks_ = true;
}

ProcessState::Run& ProcessState::RunAt(Ring& ring, uint64_t position, size_t expected) {
  // A run is as long as a block at most, so that its events are not moved ever again.
  const bool full =
      !ring.runs.empty() && ring.runs.back().events.size() == storage::kMaxBlockEvents;
  const bool continues =
      !ring.runs.empty() && !full &&
      ring.runs.back().first_position + ring.runs.back().events.size() == position;
  if (full) full_runs_.push_back(&ring.runs.back());
  if (!continues) ring.runs.push_back({position, {}, {}});
  std::vector<Event>& events = ring.runs.back().events;
  if (events.size() == events.capacity()) {
    events.reserve(std::min(std::max(events.size() + expected, 2 * events.size()),
                            storage::kMaxBlockEvents));
  }
  return ring.runs.back();
}

void ProcessState::PackFullRuns(storage::BlockEncoder& encoder) {
  for (Run* run : full_runs_) {
    run->packed = storage::PackBlock(run->first_position, run->events, encoder);
    std::vector<Event>().swap(run->events);  // the memory, too
  }
  full_runs_.clear();
}

aggregate::Cell& ProcessState::CellOf(uint64_t time_ns, uint32_t series) {
  return changes_.At(
      aggregate::AfterStart(time_ns, job_start_ns_) / aggregate::kBucketNs, series);
}

void ProcessState::ApplyTracing(uint32_t ring, const v1::EventColumns& in) {
  const uint64_t mark = RingOf(ring).row.end_position;
  uint64_t start = in.base_ns();
  for (int i = 0; i < in.start_delta_ns_size(); ++i) {
    start += static_cast<uint64_t>(in.start_delta_ns(i));
    if (in.type(i) != static_cast<uint32_t>(EventType::kGpuTracing)) continue;
    if (in.first_position() + static_cast<uint64_t>(i) < mark) continue;
    landmarks_.AddTracing({start, static_cast<v1::TracingState>(in.arg0(i)),
                           static_cast<v1::TracingReason>(in.arg1(i))});
  }
}

uint8_t ProcessState::VariantOf(EventType type, const Event& event) const {
  if (type == EventType::kHostSample) {
    return aggregate::SampleVariant(event);
  }
  if (!aggregate::IsOperation(type)) {
    return aggregate::VariantOf(type, event);
  }
  return landmarks_.TracedAt(event.start_ns) ? 0 : aggregate::kVariantUntraced;
}

void ProcessState::ApplyEvents(uint32_t ring_number, const v1::EventColumns& in) {
  Ring& ring = RingOf(ring_number);
  const int count = in.start_delta_ns_size();
  const uint64_t first = in.first_position();
  const uint64_t mark = ring.row.end_position;
  if (first + static_cast<uint64_t>(count) <= mark) return;
  const int skip = mark > first ? static_cast<int>(mark - first) : 0;
  ring.row.skipped += first > mark ? first - mark : 0;

  Event event;
  event.start_ns = in.base_ns();
  for (int i = 0; i < count; ++i) {
    event.start_ns += static_cast<uint64_t>(in.start_delta_ns(i));
    if (i < skip) continue;
    event.duration_ns = in.duration_ns(i);
    event.arg0 = in.arg0(i);
    event.arg2 = in.arg2(i);
    event.flags = in.flags(i);
    event.tid = in.tid(i);
    auto type = static_cast<EventType>(in.type(i));
    event.arg1 = BoundedSize(type, event.flags, in.arg1(i));
    if (type == EventType::kStep) event.arg1 = std::min(event.arg1, event.duration_ns);
    event.series = series_.Find({type, VariantOf(type, event),
                                 (event.flags & aggregate::kFlagFromPython) != 0,
                                 in.api(i), in.python_stack(i), in.native_stack(i),
                                 aggregate::ShapeOf(type, event)});
    aggregate::AddEvent(series_[event.series], event,
                        CellOf(event.start_ns, event.series));
    landmarks_.Add(type, event);
    if (type == EventType::kStep) {
      const StepView step{event};
      if (step.rested_ns() == 0) {
        step_memory_.EndStep(step.number(), step.end_ns());
      } else if ((event.flags & aggregate::kFlagCutOff) == 0) {
        rested_until_ns_.push_back(step.end_ns());
      }
    }
    if (aggregate::IsMemory(type)) AddRetry(event);
    if (blame_ != nullptr) blame_->Add(event);
    steps_.Add(event);
    Run& run =
        RunAt(ring, first + static_cast<uint64_t>(i), static_cast<size_t>(count - i));
    if (aggregate::ChangesLive(type)) {
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
  std::sort(rested_until_ns_.begin(), rested_until_ns_.end());
  auto rest = rested_until_ns_.begin();
  for (const MemoryEvent& at : memory_) {
    auto next = std::upper_bound(rest, rested_until_ns_.end(), at.order_ns);
    if (next != rest) ForgetBlocks(*std::prev(next), Forgets::kTensors);
    rest = next;
    Event& event = at.run->events[at.index];
    blocks_.Apply(series_[event.series], event);
    AddLive(event);
  }
  memory_.clear();
  if (rest != rested_until_ns_.end()) {
    ForgetBlocks(rested_until_ns_.back(), Forgets::kTensors);
  }
  rested_until_ns_.clear();
  // Samples that came later than the gap in which they lie.
  if (blame_ != nullptr) TakeDerived();
}

void ProcessState::AddLive(const Event& event) {
  auto series_of = [&](uint32_t id) -> const Series& { return series_[id]; };
  aggregate::AddMemory(
      event,
      [&](uint32_t id) -> aggregate::Cell& { return CellOf(event.start_ns, id); },
      series_of);
  aggregate::ForEachTotalChange(event, series_of,
                                [&](uint64_t time_ns, uint32_t id, int64_t bytes) {
                                  step_memory_.Change(time_ns, id, bytes);
                                });
}

void ProcessState::AddRetry(const Event& event) {
  auto retry = retries_.Add(series_[event.series], event);
  if (!retry) return;
  Series series = series_[retry->series];
  series.type = EventType::kMallocRetry;
  series.variant = 0;
  CellOf(retry->start_ns, series_.Intern(series))
      .Add(retry->duration_ns, retry->bytes, retry->succeeded ? 1 : 0);
}

absl::Status ProcessState::FlushStepMemory(storage::StoreWriter& writer) {
  if (stored_stride_ != step_memory_.stride()) {
    stored_stride_ = step_memory_.stride();
    LULL_RETURN_IF_ERROR(writer.catalogue().ThinStepMemory(row_.id, stored_stride_));
  }
  for (auto& sample : step_memory_.TakeSamples()) {
    LULL_RETURN_IF_ERROR(writer.catalogue().Put(
        row_.id, storage::StepMemoryRow{sample.ordinal, sample.step, sample.end_ns,
                                        std::move(sample.live)}));
  }
  return absl::OkStatus();
}

absl::Status ProcessState::Flush(storage::StoreWriter& writer, int64_t job) {
  full_runs_.clear();
  storage::Catalogue& catalogue = writer.catalogue();
  row_.job = job;
  if (dirty_ || row_.id == 0) LULL_RETURN_IF_ERROR(catalogue.PutProcess(row_));
  dirty_ = false;
  LULL_RETURN_IF_ERROR(series_.Flush(writer, row_.id));
  LULL_RETURN_IF_ERROR(catalogue.PutAll(row_.id, new_devices_));
  LULL_RETURN_IF_ERROR(landmarks_.Flush(writer, row_.id));
  for (const storage::StepRow& step : steps_.TakeSteps()) {
    LULL_RETURN_IF_ERROR(catalogue.PutStep(row_.id, step));
  }
  LULL_RETURN_IF_ERROR(FlushStepMemory(writer));
  for (auto& [number, ring] : rings_) {
    for (const Run& run : ring->runs) {
      LULL_RETURN_IF_ERROR(
          run.packed.count > 0
              ? writer.events().Append(row_, number, run.packed)
              : writer.events().Append(row_, number, run.first_position, run.events));
    }
    ring->runs.clear();
    if (ring->dirty) LULL_RETURN_IF_ERROR(catalogue.Put(row_.id, ring->row));
    ring->dirty = false;
  }
  LULL_RETURN_IF_ERROR(cells_.Flush(changes_, row_.id, writer));
  if (forget_blocks_) {
    LULL_RETURN_IF_ERROR(catalogue.DeleteAll<storage::LiveBlockRow>(row_.id));
  }
  forget_blocks_ = false;
  for (const auto& change : blocks_.TakeChanges()) {
    LULL_RETURN_IF_ERROR(
        change.live
            ? catalogue.Put(row_.id, storage::LiveBlockRow{change.key, change.block})
            : catalogue.DeleteLiveBlock(row_.id, change.key));
  }
  return absl::OkStatus();
}

}  // namespace lull::collector
