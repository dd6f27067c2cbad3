// The JSON of torch.profiler (Kineto), as its readers want it: chrome://tracing,
// Perfetto, HTA, TraceLens and `lull import`.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "daemon/export/output.h"
#include "daemon/export/trace_writer.h"

namespace lull::exports {

class ChromeWriter : public TraceWriter {
 public:
  explicit ChromeWriter(Output& output) : output_(output), out_(output.bytes()) {}

  void Begin(const ExportedJob& job) override;
  void BeginProcess(const ExportedProcess& process) override;
  void Add(uint32_t id, const Label& label, const Slice& slice) override;
  void AddMemory(const TensorMemory& memory) override;
  void AddMeasure(Measure measure, uint32_t device, uint64_t time_ns,
                  double value) override;
  void AddUntraced(uint64_t start_ns, uint64_t end_ns) override;
  void EndProcess() override;
  void End() override;

 private:
  // What all slices of a label have in common: the text before the times and behind.
  struct Parts {
    std::string head, tail;
    bool has_arguments = false;
  };

  const Parts& PartsOf(uint32_t id, const Label& label);
  void AddFlow(const char* phase, const Label& label, const Slice& slice);
  void AddName(const char* what, int64_t pid, int64_t tid, const std::string& name);
  int64_t DevicePid(uint32_t device) const;
  void Separate();

  Output& output_;
  std::string& out_;  // its bytes
  ExportedJob job_;
  ExportedProcess process_;
  std::vector<Parts> parts_;  // by the label's number
  std::set<uint32_t> tids_;
  std::map<uint32_t, std::set<int64_t>> rows_;  // of devices
  bool first_ = true;
  bool own_devices_ = true;  // of one process at most
};

// `text` as it stands between the quotes of a JSON string.
void AppendEscaped(std::string_view text, std::string* out);

}  // namespace lull::exports
