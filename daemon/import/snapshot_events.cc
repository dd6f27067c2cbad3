#include "daemon/import/snapshot_events.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/event_views.h"
#include "daemon/base/status.h"
#include "daemon/import/event_writer.h"
#include "daemon/import/snapshot_stacks.h"

namespace lull::imports {
namespace {

using abi::EventType;
using Type = Pickle::Type;
using Value = Pickle::Value;

constexpr size_t kMostStacks = 1'500'000;
// Blocks that change between the last entry and the snapshot, while other threads go
// on. More: the history had been stopped.
constexpr size_t kMostRaced = 16;
// Histories last hours. A time that lies further from the first is none.
constexpr uint64_t kLongestUs = uint64_t{366} * 86'400 * 1'000'000;

class Translator {
 public:
  Translator(Snapshot& snapshot, uint64_t key, ApiTable& apis, const BatchSink& sink,
             ImportCounts* counts)
      : snapshot_(snapshot),
        writer_(snapshot.trace, key, apis, sink),
        stacks_(snapshot),
        key_(key),
        counts_(*counts) {}

  absl::Status Run() {
    LULL_RETURN_IF_ERROR(SetTimes());
    LookThrough();
    LULL_RETURN_IF_ERROR(WriteStart());
    for (const SnapshotEntry& entry : snapshot_.entries) {
      now_ns_ = std::max(now_ns_ + 1, entry.time_us * 1000);
      LULL_RETURN_IF_ERROR(Take(entry));
    }
    LULL_RETURN_IF_ERROR(WriteEnd());
    Tell();
    LULL_RETURN_IF_ERROR(writer_.Send(now_ns_));
    lull::v1::ProcessInfo process;
    process.set_key(key_);
    process.set_start_ns(counts_.start_ns);
    process.set_rank(snapshot_.trace.rank);
    process.set_local_rank(-1);
    counts_.end_ns = now_ns_;
    counts_.events = writer_.events();
    return writer_.SendEnd(now_ns_, process);
  }

 private:
  // A device while the history is gone through.
  struct Device {
    int64_t reserved = 0;
    int64_t live = 0;
    bool reserved_known = true;
    uint64_t unknown_bytes = 0;                    // freed, and never seen allocated
    absl::flat_hash_map<uint64_t, uint64_t> open;  // address -> bytes, of the history
    // In use at the snapshot and not allocated in the history: older, or younger.
    std::vector<const SnapshotBlock*> before, after;
    // Of the history, and not in use at the snapshot: address and bytes.
    std::vector<std::pair<uint64_t, uint64_t>> gone;
  };

  // Entries of all devices in one order. PyTorch before 2.2 tells no times: there the
  // order is all that is known.
  absl::Status SetTimes() {
    auto& entries = snapshot_.entries;
    timed_ = !entries.empty() && std::all_of(entries.begin(), entries.end(),
                                             [](const auto& e) { return e.time_us; });
    uint64_t last_us = 0;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i == 0 || entries[i].device != entries[i - 1].device) last_us = 0;
      entries[i].time_us = timed_ ? std::max(last_us, entries[i].time_us) : last_us + 1;
      last_us = entries[i].time_us;
    }
    std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
      return a.time_us < b.time_us;
    });
    if (!entries.empty() &&
        entries.back().time_us - entries.front().time_us > kLongestUs) {
      return absl::DataLossError("its history lasts for more than a year");
    }
    counts_.start_ns = entries.empty() ? 1000 : entries.front().time_us * 1000;
    now_ns_ = counts_.start_ns;
    return absl::OkStatus();
  }

  // What was there before the history, and what came after it.
  void LookThrough() {
    for (const auto& [device, use] : snapshot_.segments) {
      devices_[device].reserved = static_cast<int64_t>(use.reserved());
    }
    absl::flat_hash_set<std::pair<uint8_t, uint64_t>> known;  // addresses
    for (const SnapshotEntry& entry : snapshot_.entries) {
      Device& device = devices_[entry.device];
      const auto bytes = static_cast<int64_t>(entry.bytes);
      switch (entry.action) {
        case SnapshotAction::kAlloc:
          device.open[entry.address] = entry.bytes;
          known.insert({entry.device, entry.address});
          break;
        case SnapshotAction::kFree:
          known.insert({entry.device, entry.address});
          if (device.open.erase(entry.address) > 0) break;
          device.unknown_bytes += entry.bytes;
          ++unknown_blocks_;
          break;
        case SnapshotAction::kSegmentAdd:
          device.reserved -= bytes;
          break;
        case SnapshotAction::kSegmentRemove:
          device.reserved += bytes;
          break;
        default:
          break;
      }
    }
    for (const SnapshotBlock& block : snapshot_.blocks) {
      Device& device = devices_[block.device];
      if (device.open.erase(block.address) > 0) continue;
      const bool younger = known.contains({block.device, block.address});
      (younger ? device.after : device.before).push_back(&block);
    }
    size_t changed = 0;
    for (auto& [number, device] : devices_) {
      device.gone.assign(device.open.begin(), device.open.end());
      std::sort(device.gone.begin(), device.gone.end());
      device.open.clear();
      changed += device.gone.size() + device.after.size();
      if (device.reserved < 0) reserved_told_ = false;
    }
    if (changed <= kMostRaced) return;
    stopped_ = true;
    reserved_told_ = false;
    // Nobody knows whether they are older. If they are not, they were no part of a
    // peak.
    for (auto& [number, device] : devices_) {
      device.after.insert(device.after.end(), device.before.begin(),
                          device.before.end());
      device.before.clear();
    }
  }

  absl::Status WriteStart() {
    for (auto& [number, device] : devices_) {
      if (device.unknown_bytes > 0) {
        abi::Event event = EventOf(EventType::kTorchMemory);
        event.flags = abi::kFlagBefore;
        MemoryView{event}.set_bytes(device.unknown_bytes).set_device(TorchCuda(number));
        writer_.Write(event, 0);
        device.live += static_cast<int64_t>(device.unknown_bytes);
      }
      LULL_RETURN_IF_ERROR(WriteInUse(number, device, device.before));
      if (!device.before.empty()) {
        counts_.found["blocks from before the history"] += device.before.size();
      }
      if (reserved_told_) WriteReserved(number, device);
    }
    return absl::OkStatus();
  }

  absl::Status WriteInUse(uint8_t number, Device& device,
                          const std::vector<const SnapshotBlock*>& blocks) {
    for (const SnapshotBlock* block : blocks) {
      WriteMemory(number, block->address, block->bytes, /*frees=*/false, block->frames);
      device.live += static_cast<int64_t>(block->bytes);
      LULL_RETURN_IF_ERROR(Part());
    }
    return absl::OkStatus();
  }

  absl::Status Take(const SnapshotEntry& entry) {
    Device& device = devices_[entry.device];
    const auto bytes = static_cast<int64_t>(entry.bytes);
    switch (entry.action) {
      case SnapshotAction::kAlloc: {
        auto [it, fresh] = device.open.try_emplace(entry.address, entry.bytes);
        if (!fresh) device.live -= static_cast<int64_t>(it->second);
        it->second = entry.bytes;
        device.live += bytes;
        WriteMemory(entry.device, entry.address, entry.bytes, false, entry.frames);
        ++counts_.found["allocations"];
        break;
      }
      case SnapshotAction::kFree: {
        auto it = device.open.find(entry.address);
        device.live -=
            it == device.open.end() ? bytes : static_cast<int64_t>(it->second);
        if (it != device.open.end()) device.open.erase(it);
        WriteMemory(entry.device, entry.address, entry.bytes, true, entry.frames);
        ++counts_.found["frees"];
        break;
      }
      case SnapshotAction::kSegmentAdd:
      case SnapshotAction::kSegmentRemove: {
        const bool more = entry.action == SnapshotAction::kSegmentAdd;
        device.reserved += more ? bytes : -bytes;
        if (reserved_told_) WriteReserved(entry.device, device);
        ++counts_.found[more ? "segments taken from the driver"
                             : "segments given back to it"];
        break;
      }
      case SnapshotAction::kOutOfMemory:
        WriteOutOfMemory(entry);
        break;
      case SnapshotAction::kSnapshot:
        break;
    }
    return Part();
  }

  // What is different at the snapshot.
  absl::Status WriteEnd() {
    ++now_ns_;
    for (auto& [number, device] : devices_) {
      for (const auto& [address, bytes] : device.gone) {
        WriteMemory(number, address, bytes, /*frees=*/true, {});
        device.live -= static_cast<int64_t>(bytes);
        LULL_RETURN_IF_ERROR(Part());
      }
      LULL_RETURN_IF_ERROR(WriteInUse(number, device, device.after));
      if (reserved_told_) continue;
      auto use = snapshot_.segments.find(number);
      device.reserved = use == snapshot_.segments.end()
                            ? 0
                            : static_cast<int64_t>(use->second.reserved());
      WriteReserved(number, device);
    }
    return absl::OkStatus();
  }

  abi::Event EventOf(EventType type) const {
    abi::Event event = {};
    event.type = type;
    event.start_ns = now_ns_;
    return event;
  }

  void WriteMemory(uint8_t device, uint64_t address, uint64_t bytes, bool frees,
                   Value frames) {
    abi::Event event = EventOf(EventType::kTorchMemory);
    event.flags = frees ? abi::kFlagFree : 0;
    MemoryView{event}.set_address(address).set_bytes(bytes).set_device(
        TorchCuda(device));
    SetStacks(frames, &event);
    writer_.Write(event, 0);
  }

  // Without a stack, as in live jobs: it is a level, and nobody's.
  void WriteReserved(uint8_t number, const Device& device) {
    abi::Event event = EventOf(EventType::kTorchReserved);
    ReservedView{event}
        .set_allocated(static_cast<uint64_t>(std::max<int64_t>(0, device.live)))
        .set_bytes(static_cast<uint64_t>(std::max<int64_t>(0, device.reserved)))
        .set_device(TorchCuda(number));
    writer_.Write(event, 0);
  }

  void WriteOutOfMemory(const SnapshotEntry& entry) {
    abi::Event event = EventOf(EventType::kDeviceMemory);
    event.flags = abi::kFlagFailed;
    event.api =
        writer_.Api(snapshot_.trace.strings.Intern("cudaMalloc"), CallKind::kAllocate);
    MemoryView{event}.set_bytes(entry.bytes);
    SetStacks(entry.frames, &event);
    writer_.Write(event, 0);
    ++counts_.found["allocations that found no memory"];
  }

  void SetStacks(Value frames, abi::Event* event) {
    if (frames.type() != Type::kList) return;
    const SnapshotStacks::Pair stacks = stacks_.Of(frames, writer_);
    event->py_stack = writer_.PythonRef(stacks.python);
    event->native_stack = writer_.NativeRef(stacks.native);
  }

  absl::Status Part() {
    if (writer_.stacks() > kMostStacks) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "more than ", kMostStacks, " different stacks, which no real snapshot has"));
    }
    return writer_.full() ? writer_.SendPart() : absl::OkStatus();
  }

  void Tell() {
    if (unknown_blocks_ > 0) {
      counts_.found["blocks from before the history that nobody knows who allocated"] =
          unknown_blocks_;
    }
    for (auto& [number, use] : snapshot_.segments) {
      use.set_rank(snapshot_.trace.rank);
      counts_.segments.push_back(use);
    }
    auto cannot = [this](const char* rule) { counts_.not_applied.emplace_back(rule); };
    cannot("what a GPU did, and what threads did: a memory snapshot has neither");
    if (snapshot_.entries.empty()) {
      cannot(
          "what was in use before the snapshot: it has no history "
          "(torch.cuda.memory._record_memory_history)");
    } else if (!timed_) {
      cannot(
          "when it was: the version of PyTorch tells the order alone, and points in "
          "time count entries");
    }
    if (stopped_) {
      cannot(
          "what happened between the end of the history and the snapshot: recording "
          "had been stopped before, and what was in use all along counts from the "
          "snapshot on");
    }
  }

  Snapshot& snapshot_;
  EventWriter writer_;
  SnapshotStacks stacks_;
  const uint64_t key_;
  ImportCounts& counts_;
  std::map<uint8_t, Device> devices_;
  uint64_t now_ns_ = 0;
  uint64_t unknown_blocks_ = 0;
  bool timed_ = false;
  bool reserved_told_ = true;
  bool stopped_ = false;  // the history ends before the snapshot
};

}  // namespace

absl::Status TranslateSnapshot(Snapshot& snapshot, uint64_t key, ApiTable& apis,
                               const BatchSink& sink, ImportCounts* counts) {
  return Translator(snapshot, key, apis, sink, counts).Run();
}

}  // namespace lull::imports
