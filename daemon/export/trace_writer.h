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
  kRegion,  // that the program named, of a thread
  kCall,    // calls of CUDA as CUPTI has them, of a thread
  kSteps,   // of a thread
  kStream,  // of a device
  kIdle,    // of a device
};

// The words of all slices of one series.
struct Label {
  Row row = Row::kNone;
  std::string category;
  std::string name;   // as torch.profiler has it
  std::string plain;  // for people, where that is another one
  std::vector<std::pair<const char*, std::string>> texts;
  std::vector<std::pair<const char*, int64_t>> numbers;
  std::vector<std::pair<const char*, std::array<uint32_t, 3>>> shapes;
  uint32_t device = 0;
  uint32_t stream = 0;
  const char* amount = nullptr;  // the name of Slice::amount, where there is one
  bool wasted = false;           // of idle time: it is owed to a sync
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

// What goes up and down.
enum class Measure : uint8_t {
  kBusy,       // of a device, in percent
  kLive,       // bytes of tensors of a device
  kReserved,   // by PyTorch's allocator, bytes of a device
  kHostLive,   // bytes of tensors of the host
  kAllocated,  // bytes of cudaMalloc, of all devices
  kPinned,     // bytes of cudaHostAlloc and the like
};
inline constexpr bool IsOfDevice(Measure measure) {
  return measure <= Measure::kReserved;
}
const char* NameOf(Measure measure);

struct ExportedProcess {
  uint32_t index = 0;  // among those that are exported
  uint32_t pid = 0;
  uint32_t shown_pid = 0;  // another one where two hosts have the same
  int32_t rank = -1;
  std::string command;
  // "rank 3: python train.py".
  std::string title() const;
  std::vector<lull::v1::GpuDeviceDef> devices;
};

struct ExportedJob {
  std::string name;
  uint64_t start_ns = 0;           // CLOCK_MONOTONIC of its first host
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
  // From `time_ns` on it is `value`. Those of one measure and device come in order.
  virtual void AddMeasure(Measure measure, uint32_t device, uint64_t time_ns,
                          double value) = 0;
  // Between `start_ns` and `end_ns` nobody looked at the devices.
  virtual void AddUntraced(uint64_t start_ns, uint64_t end_ns) = 0;
  virtual void EndProcess() = 0;
  virtual void End() = 0;
};

}  // namespace lull::exports
