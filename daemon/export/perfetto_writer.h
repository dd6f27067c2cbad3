// Perfetto's own format: packets of tracks and what is on them (proto/perfetto.proto).
//
// A process has its threads, each with its steps and regions, and its devices; below a
// device lie idle time by its cause, how much of it syncs waste, streams, and how busy
// it was.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/export/output.h"
#include "daemon/export/slice_lanes.h"
#include "daemon/export/trace_writer.h"
#include "daemon/export/wire_writer.h"
#include "perfetto.pb.h"

namespace lull::exports {

class PerfettoWriter : public TraceWriter {
 public:
  explicit PerfettoWriter(Output& output);
  ~PerfettoWriter() override;

  void Begin(const ExportedJob& job) override;
  void BeginProcess(const ExportedProcess& process) override;
  void Add(uint32_t id, const Label& label, const Slice& slice) override;
  void AddMemory(const TensorMemory& memory) override;
  void AddMeasure(Measure measure, uint32_t device, uint64_t time_ns,
                  double value) override;
  void AddUntraced(uint64_t start_ns, uint64_t end_ns) override;
  void EndProcess() override;
  void End() override {}

 private:
  // A row of a process: which kind, and which thread, or device and stream.
  enum class Kind : uint8_t { kSteps, kThread, kRegions, kIdle, kWasted, kStream };
  struct RowKey {
    Kind kind = Kind::kSteps;
    uint32_t device = 0;
    uint32_t number = 0;
    friend auto operator<=>(const RowKey&, const RowKey&) = default;
  };
  struct RowState;
  // What all slices of a label have in common.
  struct Parts {
    bool made = false;
    bool of_stream = false;
    std::string event;     // fields of TrackEvent
    uint64_t amount = 0;   // iid of the name of its amount, 0: none
    std::string numbered;  // a name that a number follows
  };
  using Strings = absl::flat_hash_map<std::string, uint64_t>;

  uint64_t Intern(int table, const std::string& text);
  uint64_t NewUuid() { return uuid_base_ + ++uuids_; }
  void Describe(const lull::perfetto::TrackDescriptor& track);
  uint64_t DeviceTrack(uint32_t device);
  RowState& Row(const RowKey& key);
  uint64_t TrackOf(RowState& row, size_t lane);
  uint64_t LaneTrack(const RowState& row, size_t lane);
  const Parts& PartsOf(uint32_t id, const Label& label);
  void AddAnnotation(const char* name, int64_t number, std::string* event);
  void AddText(const char* name, const std::string& text, std::string* event);
  void Put(const RowKey& key, const LaneSlice& slice);
  void WriteEvent(uint64_t time_ns);

  Output& output_;
  WireWriter file_{output_.bytes()};
  std::string packet_, event_, annotation_;
  ExportedJob job_;
  ExportedProcess process_;
  uint64_t uuid_base_ = 0, uuids_ = 0, flow_base_ = 0;
  Strings strings_[4];
  uint64_t process_uuid_ = 0;
  std::vector<Parts> parts_;  // by the label's number
  std::map<uint32_t, uint64_t> devices_;
  std::map<std::pair<Measure, uint32_t>, uint64_t> measures_;
  std::map<RowKey, std::unique_ptr<RowState>> rows_;
  uint64_t left_out_ = 0;
};

}  // namespace lull::exports
