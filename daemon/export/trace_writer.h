// What an export consists of, whatever its format: processes, and what went on in them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "query.pb.h"

namespace lull::exports {

// Which row of a viewer.
enum class Row : uint8_t {
  kNone,    // not exported
  kThread,  // what a thread did, with its line
  kCall,    // calls of CUDA as CUPTI has them, of a thread
  kSteps,   // of a thread
  kStream,  // of a device
  kIdle,    // of a device
};

// The words of all slices of one series.
struct Label {
  Row row = Row::kNone;
  std::string category;
  std::string name;
  std::vector<std::pair<const char*, std::string>> texts;
  std::vector<std::pair<const char*, int64_t>> numbers;
  std::vector<std::pair<const char*, std::array<uint32_t, 3>>> shapes;
  uint32_t device = 0;
  uint32_t stream = 0;
  const char* amount = nullptr;  // the name of Slice::amount, where there is one
};

struct Slice {
  uint64_t start_ns = 0;  // after the start of the job
  uint64_t duration_ns = 0;
  uint32_t tid = 0;
  uint32_t correlation = 0;  // 0: none
  uint64_t amount = 0;
  uint64_t number = 0;  // of a step
};

struct TensorMemory {
  uint64_t time_ns = 0;
  uint32_t tid = 0;
  uint64_t address = 0;
  int64_t bytes = 0;
  uint32_t device_type = 0;
  uint32_t device = 0;
};

struct ExportedProcess {
  uint32_t index = 0;  // among those that are exported
  uint32_t pid = 0;
  int32_t rank = -1;
  std::vector<lull::v1::GpuDeviceDef> devices;
};

struct ExportedJob {
  std::string name;
  uint64_t start_realtime_ns = 0;  // 0: not known
  std::vector<ExportedProcess> processes;
};

// Appends to `out` of its maker.
class TraceWriter {
 public:
  virtual ~TraceWriter() = default;
  virtual void Begin(const ExportedJob& job) = 0;
  // From here on all is of this process. Labels are named by numbers of their own.
  virtual void BeginProcess(const ExportedProcess& process) = 0;
  // `id` stands for the label within the process.
  virtual void Add(uint32_t id, const Label& label, const Slice& slice) = 0;
  virtual void AddMemory(const TensorMemory& memory) = 0;
  // From `time_ns` on a device was busy for so much of the time.
  virtual void AddBusy(uint32_t device, uint64_t time_ns, double percent) = 0;
  virtual void EndProcess() = 0;
  virtual void End() = 0;
};

}  // namespace lull::exports
