#include "daemon/import/snapshot_reader.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/status.h"
#include "daemon/base/text.h"

namespace lull::imports {
namespace {

using Type = Pickle::Type;
using Value = Pickle::Value;

// No device has so much. Sums of as many as are read stay far below 64 bits.
constexpr uint64_t kMostBytes = uint64_t{1} << 40;
constexpr uint64_t kLatestUs = (uint64_t{1} << 61) / 1000;
// Numbers of devices are 8 bits in events, and the last one stands for none.
constexpr uint64_t kMostDevices = 255;
// A record of a snapshot has about ten. A look for one goes through all of them.
constexpr size_t kMostFields = 64;

std::optional<SnapshotAction> ActionOf(absl::string_view name) {
  if (name == "alloc") return SnapshotAction::kAlloc;
  if (name == "free_requested" || name == "free") return SnapshotAction::kFree;
  if (name == "segment_alloc" || name == "segment_map") {
    return SnapshotAction::kSegmentAdd;
  }
  if (name == "segment_free" || name == "segment_unmap") {
    return SnapshotAction::kSegmentRemove;
  }
  if (name == "oom") return SnapshotAction::kOutOfMemory;
  if (name == "snapshot") return SnapshotAction::kSnapshot;
  return std::nullopt;
}

absl::Status NoSnapshot(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("no memory snapshot: ", what));
}

class Reader {
 public:
  explicit Reader(const SnapshotLimits& limits) : limits_(limits) {}

  absl::StatusOr<Snapshot> Read(Input& input) {
    Pickle::Limits limits;
    limits.bytes = std::min(limits.bytes, limits_.bytes);
    LULL_ASSIGN_OR_RETURN(snapshot_.pickle,
                          Pickle::Read(input, limits, &snapshot_.trace.strings));
    LULL_RETURN_IF_ERROR(ReadRoot(snapshot_.pickle.root()));
    snapshot_.trace.events = records_;
    snapshot_.trace.resolution_ns = 1000;
    return std::move(snapshot_);
  }

 private:
  absl::Status ReadRoot(Value root) {
    if (root.type() == Type::kList) return ReadSegments(root);  // these alone
    LULL_ASSIGN_OR_RETURN(Fields fields, FieldsOf(root));
    const Value segments = fields.At("segments");
    if (segments.type() != Type::kList) return NoSnapshot("it has no \"segments\"");
    LULL_RETURN_IF_ERROR(ReadSegments(segments));
    const Value traces = fields.At("device_traces");
    return traces.type() == Type::kList ? ReadTraces(traces) : absl::OkStatus();
  }

  // The fields of one dict. The last one of a name counts, as in Python.
  class Fields {
   public:
    Fields(const Snapshot& snapshot, Value dict)
        : texts_(snapshot.trace.strings), items_(snapshot.pickle.items(dict)) {}
    Value At(absl::string_view name) const {
      for (size_t i = items_.size(); i >= 2; i -= 2) {
        const Value key = items_[i - 2];
        if (key.type() == Type::kText && texts_[key.index()] == name) {
          return items_[i - 1];
        }
      }
      return Value();
    }
    // nullopt where there is none, or one that cannot be.
    std::optional<uint64_t> Number(absl::string_view name, uint64_t most) const {
      const Value value = At(name);
      if (value.type() != Type::kNumber || value.payload() < 0) return std::nullopt;
      const auto number = static_cast<uint64_t>(value.payload());
      return number <= most ? std::optional(number) : std::nullopt;
    }
    absl::string_view Text(absl::string_view name) const {
      const Value value = At(name);
      return value.type() == Type::kText ? absl::string_view(texts_[value.index()])
                                         : absl::string_view();
    }
    Value Frames() const {
      const Value frames = At("frames");
      return frames.type() == Type::kList ? frames : Value();
    }

   private:
    const StringTable& texts_;
    const std::vector<Value>& items_;
  };

  absl::StatusOr<Fields> FieldsOf(Value value) const {
    if (value.type() != Type::kDict) return NoSnapshot("a record of it is no dict");
    if (snapshot_.pickle.items(value).size() > 2 * kMostFields) {
      return NoSnapshot("a record of it has more fields than any");
    }
    return Fields(snapshot_, value);
  }

  // One may be named many times by a pickle that is small.
  absl::Status Count() {
    ++records_;
    if (records_ <= limits_.records &&
        (records_ % 1024 != 0 || snapshot_.bytes() <= limits_.bytes)) {
      return absl::OkStatus();
    }
    return absl::ResourceExhaustedError(absl::StrCat(
        "more than an import takes: ", records_, " entries and blocks so far, ",
        limits_.records, " at most; they take ", snapshot_.bytes() >> 20, " MiB, ",
        limits_.bytes >> 20, " at most"));
  }

  void Ignore(absl::string_view why) { ++snapshot_.trace.ignored[std::string(why)]; }

  absl::Status ReadSegments(Value segments) {
    for (const Value segment : snapshot_.pickle.items(segments)) {
      LULL_RETURN_IF_ERROR(ReadSegment(segment));
    }
    return absl::OkStatus();
  }

  absl::Status ReadSegment(Value segment) {
    LULL_RETURN_IF_ERROR(Count());
    LULL_ASSIGN_OR_RETURN(Fields fields, FieldsOf(segment));
    const auto device = fields.Number("device", kMostDevices - 1);
    const auto address = fields.Number("address", INT64_MAX);
    const Value blocks = fields.At("blocks");
    if (!device || !address || blocks.type() != Type::kList) {
      return NoSnapshot("a segment has no device, address or blocks");
    }
    lull::v1::SegmentUse& use = snapshot_.segments[static_cast<uint8_t>(*device)];
    use.set_device(static_cast<uint32_t>(*device));
    use.set_segments(use.segments() + 1);
    const size_t in_use = snapshot_.blocks.size();
    const uint64_t pending = use.pending();
    uint64_t at = *address, free = 0;
    for (const Value block : snapshot_.pickle.items(blocks)) {
      LULL_RETURN_IF_ERROR(ReadBlock(block, &at, &free, &use));
    }
    const bool used = snapshot_.blocks.size() > in_use || use.pending() > pending;
    if (used) {
      use.set_free_in_used(use.free_in_used() + free);
    } else {
      use.set_free_segments(use.free_segments() + free);
    }
    return absl::OkStatus();
  }

  // Blocks lie one behind the other; older versions do not tell where.
  absl::Status ReadBlock(Value value, uint64_t* at, uint64_t* free,
                         lull::v1::SegmentUse* use) {
    LULL_RETURN_IF_ERROR(Count());
    LULL_ASSIGN_OR_RETURN(Fields fields, FieldsOf(value));
    const auto size = fields.Number("size", kMostBytes);
    const absl::string_view state = fields.Text("state");
    if (!size || state.empty()) return NoSnapshot("a block has no size or state");
    const uint64_t address = fields.Number("address", INT64_MAX).value_or(*at);
    *at = address + *size;
    use->set_reserved(use->reserved() + *size);
    if (state == "inactive") {
      *free += *size;
      use->set_largest_free(std::max(use->largest_free(), *size));
      return absl::OkStatus();
    }
    if (state != "active_allocated") {
      use->set_pending(use->pending() + *size);
      return absl::OkStatus();
    }
    SnapshotBlock block;
    block.address = address;
    block.device = static_cast<uint8_t>(use->device());
    block.frames = fields.Frames();
    std::optional<uint64_t> asked = fields.Number("requested_size", *size);
    LULL_RETURN_IF_ERROR(ReadOldHistory(fields.At("history"), *size, &block, &asked));
    block.bytes = asked.value_or(*size);
    use->set_allocated(use->allocated() + *size);
    use->set_requested(use->requested() + block.bytes);
    snapshot_.blocks.push_back(block);
    return absl::OkStatus();
  }

  // PyTorch 2.0 and before: who had the block, the last one first.
  absl::Status ReadOldHistory(Value history, uint64_t size, SnapshotBlock* block,
                              std::optional<uint64_t>* asked) {
    if (history.type() != Type::kList || snapshot_.pickle.items(history).empty()) {
      return absl::OkStatus();
    }
    LULL_ASSIGN_OR_RETURN(Fields last, FieldsOf(snapshot_.pickle.items(history)[0]));
    if (block->frames.type() != Type::kList) block->frames = last.Frames();
    if (!*asked) *asked = last.Number("real_size", size);
    return absl::OkStatus();
  }

  absl::Status ReadTraces(Value traces) {
    const auto& devices = snapshot_.pickle.items(traces);
    if (devices.size() > kMostDevices) {
      return NoSnapshot("it is of more devices than any machine has");
    }
    for (size_t device = 0; device < devices.size(); ++device) {
      if (devices[device].type() != Type::kList) {
        return NoSnapshot("a history is no list");
      }
      for (const Value entry : snapshot_.pickle.items(devices[device])) {
        LULL_RETURN_IF_ERROR(ReadEntry(entry, static_cast<uint8_t>(device)));
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadEntry(Value value, uint8_t device) {
    LULL_RETURN_IF_ERROR(Count());
    LULL_ASSIGN_OR_RETURN(Fields fields, FieldsOf(value));
    const absl::string_view name = fields.Text("action");
    if (name.empty()) return NoSnapshot("an entry of its history has no action");
    const std::optional<SnapshotAction> action = ActionOf(name);
    // A block that is free at last: nothing of it is in use since it was freed.
    if (name == "free_completed") {
      Ignore("ends of frees (free_completed)");
      return absl::OkStatus();
    }
    if (!action) {
      Ignore(snapshot_.trace.ignored.size() > 100
                 ? "other actions"
                 : absl::StrCat("action ", CleanText(std::string(name), 64)));
      return absl::OkStatus();
    }
    SnapshotEntry entry;
    entry.action = *action;
    entry.device = device;
    entry.frames = fields.Frames();
    entry.time_us = fields.Number("time_us", kLatestUs).value_or(0);
    const bool tells_bytes = *action != SnapshotAction::kSnapshot;
    const auto bytes = fields.Number("size", kMostBytes);
    const auto address = fields.Number("addr", INT64_MAX);
    const bool has_address =
        *action == SnapshotAction::kAlloc || *action == SnapshotAction::kFree;
    if ((tells_bytes && !bytes) || (has_address && (!address || *address == 0))) {
      Ignore("entries without an address or a size that can be");
      return absl::OkStatus();
    }
    entry.bytes = bytes.value_or(0);
    entry.address = address.value_or(0);
    snapshot_.entries.push_back(entry);
    return absl::OkStatus();
  }

  const SnapshotLimits limits_;
  Snapshot snapshot_;
  size_t records_ = 0;
};

}  // namespace

absl::StatusOr<Snapshot> ReadSnapshot(Input& input, const SnapshotLimits& limits) {
  return Reader(limits).Read(input);
}

}  // namespace lull::imports
