#include "daemon/export/perfetto_writer.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"

namespace lull::exports {
namespace {

namespace pb = lull::perfetto;

constexpr uint32_t kSequence = 1;
enum PacketFlags : uint32_t { kCleared = 1, kNeeds = 2 };
enum PacketEvent : uint32_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };
constexpr uint32_t kExplicitOrder = 3;
constexpr uint32_t kBytes = 3;
constexpr uint32_t kRealtime = 1, kTraceClock = 6;

// Tables of interned text.
enum TextTable : int { kCategory, kName, kAnnotation, kValue };

// Below a device.
enum Rank : int32_t { kIdleRank = 0, kWastedRank = 1, kStreamRank = 2 };
constexpr int32_t kMeasureRank = 1 << 30;

// Labels that the writer makes itself.
constexpr uint32_t kUntracedLabel = UINT32_MAX;

uint64_t HashOf(const std::string& text) {  // FNV-1a: the same in every run
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

// Its lanes, and the tracks that they are.
struct PerfettoWriter::RowState : LaneSink {
  RowState(PerfettoWriter& of, const RowKey& its_key)
      : writer(of),
        key(its_key),
        lanes(key.kind == Kind::kThread || key.kind == Kind::kRegions) {}

  void Begin(size_t lane, const LaneSlice& slice) override;
  void End(size_t lane, uint64_t time_ns) override {
    WireWriter event(writer.event_);
    writer.event_.clear();
    event.Number(pb::TrackEvent::kTypeFieldNumber, kEnd);
    event.Number(pb::TrackEvent::kTrackUuidFieldNumber, writer.TrackOf(*this, lane));
    writer.WriteEvent(time_ns);
  }
  void LeftOut() override { ++writer.left_out_; }

  PerfettoWriter& writer;
  const RowKey key;
  SliceLanes lanes;
  std::vector<uint64_t> tracks;
};

void PerfettoWriter::RowState::Begin(size_t lane, const LaneSlice& slice) {
  const uint64_t track = writer.TrackOf(*this, lane);
  std::string& bytes = writer.event_;
  WireWriter event(bytes);
  if (slice.label == kUntracedLabel) {
    const uint64_t name = writer.Intern(kName, "not traced");
    bytes.clear();
    event.Number(pb::TrackEvent::kNameIidFieldNumber, name);
  } else {
    const Parts& parts = writer.parts_[slice.label];
    bytes = parts.event;
    if (!parts.numbered.empty()) {
      event.Bytes(pb::TrackEvent::kNameFieldNumber,
                  absl::StrCat(parts.numbered, slice.value));
    }
    if (parts.amount != 0) {
      WireWriter annotation(writer.annotation_);
      writer.annotation_.clear();
      annotation.Number(pb::DebugAnnotation::kNameIidFieldNumber, parts.amount);
      annotation.Number(pb::DebugAnnotation::kUintValueFieldNumber, slice.value);
      event.Bytes(pb::TrackEvent::kDebugAnnotationsFieldNumber, writer.annotation_);
    }
    if (slice.correlation != 0) {
      event.Fixed64(parts.of_stream ? pb::TrackEvent::kTerminatingFlowIdsFieldNumber
                                    : pb::TrackEvent::kFlowIdsFieldNumber,
                    writer.flow_base_ | slice.correlation);
    }
  }
  event.Number(pb::TrackEvent::kTypeFieldNumber, kBegin);
  event.Number(pb::TrackEvent::kTrackUuidFieldNumber, track);
  writer.WriteEvent(slice.start_ns);
}

PerfettoWriter::PerfettoWriter(Output& output) : output_(output) {}
PerfettoWriter::~PerfettoWriter() = default;

// That in event_.
void PerfettoWriter::WriteEvent(uint64_t time_ns) {
  packet_.clear();
  WireWriter packet(packet_);
  packet.Number(pb::TracePacket::kTimestampFieldNumber, job_.start_ns + time_ns);
  packet.Number(pb::TracePacket::kTrustedPacketSequenceIdFieldNumber, kSequence);
  packet.Number(pb::TracePacket::kSequenceFlagsFieldNumber, kNeeds);
  packet.Bytes(pb::TracePacket::kTrackEventFieldNumber, event_);
  file_.Bytes(pb::Trace::kPacketFieldNumber, packet_);
  output_.Checkpoint();
}

void PerfettoWriter::Begin(const ExportedJob& job) {
  job_ = job;
  pb::TracePacket packet;
  packet.set_timestamp(job.start_ns);
  packet.set_trusted_packet_sequence_id(kSequence);
  packet.set_sequence_flags(kCleared);
  if (job.start_realtime_ns != 0) {
    for (auto [id, time] : {std::pair{kTraceClock, job.start_ns},
                            std::pair{kRealtime, job.start_realtime_ns}}) {
      auto* clock = packet.mutable_clock_snapshot()->add_clocks();
      clock->set_clock_id(id);
      clock->set_timestamp(time);
    }
  }
  file_.Bytes(pb::Trace::kPacketFieldNumber, packet.SerializeAsString());
}

void PerfettoWriter::BeginProcess(const ExportedProcess& process) {
  process_ = process;
  parts_.clear();
  devices_.clear();
  measures_.clear();
  rows_.clear();
  left_out_ = 0;
  // No other process has it, also if files of several ranks are put together.
  const uint64_t hash = HashOf(
      absl::StrCat(job_.name, "/", job_.start_ns, "/", process.pid, "/", process.rank));
  uuid_base_ = hash << 24;
  flow_base_ = hash << 32;
  uuids_ = 0;
  process_uuid_ = NewUuid();
  pb::TrackDescriptor track;
  track.set_uuid(process_uuid_);
  track.mutable_process()->set_pid(static_cast<int32_t>(process.shown_pid));
  track.mutable_process()->set_process_name(process.title());
  Describe(track);
}

void PerfettoWriter::Describe(const pb::TrackDescriptor& track) {
  pb::TracePacket packet;
  packet.set_trusted_packet_sequence_id(kSequence);
  *packet.mutable_track_descriptor() = track;
  file_.Bytes(pb::Trace::kPacketFieldNumber, packet.SerializeAsString());
}

uint64_t PerfettoWriter::Intern(int table, const std::string& text) {
  auto [it, fresh] = strings_[table].try_emplace(text, strings_[table].size() + 1);
  if (!fresh) return it->second;
  pb::TracePacket packet;
  packet.set_trusted_packet_sequence_id(kSequence);
  packet.set_sequence_flags(kNeeds);
  pb::InternedData& data = *packet.mutable_interned_data();
  if (table == kValue) {
    auto* value = data.add_debug_annotation_string_values();
    value->set_iid(it->second);
    value->set_str(text);
  } else {
    auto* string = table == kCategory ? data.add_event_categories()
                   : table == kName   ? data.add_event_names()
                                      : data.add_debug_annotation_names();
    string->set_iid(it->second);
    string->set_name(text);
  }
  file_.Bytes(pb::Trace::kPacketFieldNumber, packet.SerializeAsString());
  return it->second;
}

uint64_t PerfettoWriter::DeviceTrack(uint32_t device) {
  auto [it, fresh] = devices_.try_emplace(device);
  if (!fresh) return it->second;
  it->second = NewUuid();
  pb::TrackDescriptor track;
  track.set_uuid(it->second);
  track.set_parent_uuid(process_uuid_);
  std::string name = absl::StrCat("GPU ", device);
  for (const auto& def : process_.devices) {
    if (def.device() == device && !def.name().empty()) {
      absl::StrAppend(&name, " ", def.name());
    }
  }
  track.set_name(name);
  track.set_child_ordering(kExplicitOrder);
  track.set_sibling_order_rank(static_cast<int32_t>(device));
  Describe(track);
  return it->second;
}

PerfettoWriter::RowState& PerfettoWriter::Row(const RowKey& key) {
  std::unique_ptr<RowState>& row = rows_[key];
  if (row == nullptr) row = std::make_unique<RowState>(*this, key);
  return *row;
}

uint64_t PerfettoWriter::TrackOf(RowState& row, size_t lane) {
  while (row.tracks.size() <= lane) row.tracks.push_back(0);
  if (row.tracks[lane] == 0) row.tracks[lane] = LaneTrack(row, lane);
  return row.tracks[lane];
}

// Those of one row have one name and parent: viewers show them as one.
uint64_t PerfettoWriter::LaneTrack(const RowState& row, size_t lane) {
  const RowKey& key = row.key;
  pb::TrackDescriptor track;
  track.set_uuid(NewUuid());
  switch (key.kind) {
    case Kind::kSteps:
      // Viewers show what lies below a thread above its own slices.
      track.set_parent_uuid(TrackOf(Row({Kind::kThread, 0, key.number}), 0));
      track.set_name("steps");
      break;
    case Kind::kThread: {
      if (lane > 0) {  // what is on the first one comes in the way
        track.set_parent_uuid(TrackOf(Row(key), 0));
        track.set_name("at the same time");
        break;
      }
      track.mutable_thread()->set_pid(static_cast<int32_t>(process_.shown_pid));
      track.mutable_thread()->set_tid(static_cast<int32_t>(key.number));
      track.mutable_thread()->set_thread_name(key.number == process_.pid ? "main thread"
                                                                         : "thread");
      break;
    }
    case Kind::kRegions:
      track.set_parent_uuid(TrackOf(Row({Kind::kThread, 0, key.number}), 0));
      track.set_name("regions");
      break;
    case Kind::kIdle:
      track.set_parent_uuid(DeviceTrack(key.device));
      track.set_name("idle, by cause");
      track.set_sibling_order_rank(kIdleRank);
      break;
    case Kind::kWasted:
      track.set_parent_uuid(DeviceTrack(key.device));
      track.set_name("wasted by syncs");
      track.set_sibling_order_rank(kWastedRank);
      break;
    case Kind::kStream:
      track.set_parent_uuid(DeviceTrack(key.device));
      track.set_name(absl::StrCat("stream ", key.number));
      track.set_sibling_order_rank(static_cast<int32_t>(
          std::min<uint64_t>(uint64_t{kStreamRank} + key.number, kMeasureRank - 1)));
      break;
  }
  Describe(track);
  return track.uuid();
}

void PerfettoWriter::AddAnnotation(const char* name, int64_t number,
                                   std::string* event) {
  std::string bytes;
  WireWriter annotation(bytes);
  annotation.Number(pb::DebugAnnotation::kNameIidFieldNumber,
                    Intern(kAnnotation, name));
  annotation.Number(pb::DebugAnnotation::kIntValueFieldNumber,
                    static_cast<uint64_t>(number));
  WireWriter(*event).Bytes(pb::TrackEvent::kDebugAnnotationsFieldNumber, bytes);
}

void PerfettoWriter::AddText(const char* name, const std::string& text,
                             std::string* event) {
  std::string bytes;
  WireWriter annotation(bytes);
  annotation.Number(pb::DebugAnnotation::kNameIidFieldNumber,
                    Intern(kAnnotation, name));
  annotation.Number(pb::DebugAnnotation::kStringValueIidFieldNumber,
                    Intern(kValue, text));
  WireWriter(*event).Bytes(pb::TrackEvent::kDebugAnnotationsFieldNumber, bytes);
}

const PerfettoWriter::Parts& PerfettoWriter::PartsOf(uint32_t id, const Label& label) {
  if (parts_.size() <= id) parts_.resize(std::max<size_t>(id + 1, 2 * parts_.size()));
  Parts& parts = parts_[id];
  if (parts.made) return parts;
  parts.made = true;
  parts.of_stream = label.row == Row::kStream;
  WireWriter event(parts.event);
  event.Number(pb::TrackEvent::kCategoryIidsFieldNumber,
               Intern(kCategory, label.category));
  if (label.row == Row::kSteps) {
    parts.numbered = "step ";
  } else {
    event.Number(pb::TrackEvent::kNameIidFieldNumber,
                 Intern(kName, label.plain.empty() ? label.name : label.plain));
  }
  for (const auto& [key, text] : label.texts) AddText(key, text, &parts.event);
  for (const auto& [key, number] : label.numbers) {
    AddAnnotation(key, number, &parts.event);
  }
  for (const auto& [key, shape] : label.shapes) {
    AddText(key, absl::StrCat(shape[0], " x ", shape[1], " x ", shape[2]),
            &parts.event);
  }
  if (label.amount != nullptr) parts.amount = Intern(kAnnotation, label.amount);
  return parts;
}

void PerfettoWriter::Put(const RowKey& key, const LaneSlice& slice) {
  RowState& row = Row(key);
  row.lanes.Add(slice, row);
}

void PerfettoWriter::Add(uint32_t id, const Label& label, const Slice& slice) {
  PartsOf(id, label);
  LaneSlice put;
  put.start_ns = slice.start_ns;
  put.end_ns = slice.start_ns + slice.duration_ns;
  put.value = label.row == Row::kSteps ? slice.number : slice.amount;
  put.label = id;
  put.correlation = slice.correlation;
  put.inner = label.row == Row::kCall;
  switch (label.row) {
    case Row::kNone:
      return;
    case Row::kSteps:
      return Put({Kind::kSteps, 0, slice.tid}, put);
    case Row::kThread:
    case Row::kCall:
      return Put({Kind::kThread, 0, slice.tid}, put);
    case Row::kRegion:
      return Put({Kind::kRegions, 0, slice.tid}, put);
    case Row::kStream:
      return Put({Kind::kStream, label.device, label.stream}, put);
    case Row::kIdle:
      Put({Kind::kIdle, label.device, 0}, put);
      if (label.wasted) Put({Kind::kWasted, label.device, 0}, put);
      return;
  }
}

// Tensors one by one would be a row of ticks; how much they are is a counter.
void PerfettoWriter::AddMemory(const TensorMemory& /*memory*/) {}

void PerfettoWriter::AddMeasure(Measure measure, uint32_t device, uint64_t time_ns,
                                double value) {
  uint64_t& uuid = measures_[{measure, device}];
  if (uuid == 0) {
    uuid = NewUuid();
    pb::TrackDescriptor track;
    track.set_uuid(uuid);
    track.set_parent_uuid(IsOfDevice(measure) ? DeviceTrack(device) : process_uuid_);
    track.set_name(NameOf(measure));
    track.set_sibling_order_rank(kMeasureRank + static_cast<int32_t>(measure));
    if (measure == Measure::kBusy) {
      track.mutable_counter()->set_unit_name("%");
    } else {
      track.mutable_counter()->set_unit(kBytes);
    }
    Describe(track);
  }
  event_.clear();
  WireWriter event(event_);
  event.Number(pb::TrackEvent::kTypeFieldNumber, kCounter);
  event.Number(pb::TrackEvent::kTrackUuidFieldNumber, uuid);
  if (measure == Measure::kBusy) {
    event.Double(pb::TrackEvent::kDoubleCounterValueFieldNumber, value);
  } else {
    event.Number(pb::TrackEvent::kCounterValueFieldNumber,
                 static_cast<uint64_t>(static_cast<int64_t>(value)));
  }
  WriteEvent(time_ns);
}

void PerfettoWriter::AddUntraced(uint64_t start_ns, uint64_t end_ns) {
  for (const auto& device : process_.devices) {
    LaneSlice slice;
    slice.start_ns = start_ns;
    slice.end_ns = end_ns;
    slice.label = kUntracedLabel;
    Put({Kind::kIdle, device.device(), 0}, slice);
  }
}

void PerfettoWriter::EndProcess() {
  // Rows are made as others finish: a region's thread has none of its own.
  std::vector<RowKey> keys;
  for (const auto& [key, row] : rows_) keys.push_back(key);
  for (const RowKey& key : keys) {
    RowState& row = Row(key);
    row.lanes.Finish(row);
  }
  rows_.clear();
  if (left_out_ == 0) return;
  event_.clear();
  WireWriter event(event_);
  event.Number(pb::TrackEvent::kTypeFieldNumber, kInstant);
  event.Number(pb::TrackEvent::kTrackUuidFieldNumber, process_uuid_);
  event.Bytes(pb::TrackEvent::kNameFieldNumber,
              absl::StrCat("left out: ", left_out_, " slices that overlap more than ",
                           SliceLanes::kMostLanes, " others"));
  WriteEvent(0);
}

}  // namespace lull::exports
