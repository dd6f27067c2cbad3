#include "daemon/import/chrome_rows.h"

#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/gpu_event_views.h"
#include "daemon/base/text.h"
#include "daemon/import/python_names.h"
#include "preload/abi/event.h"

namespace lull::imports {
namespace {

constexpr uint64_t kLatestNs = uint64_t{1} << 61;

// Names of categories until April 2022 stand beside those of today.
std::optional<Kind> KindOf(const ChromeEvent& event) {
  const std::string& category = event.category;
  if (category == "kernel" || category == "Kernel") return Kind::kKernel;
  if (category == "gpu_memcpy" || category == "Memcpy") return Kind::kCopy;
  if (category == "gpu_memset" || category == "Memset") return Kind::kMemset;
  if (category == "cuda_runtime" || category == "Runtime" ||
      category == "cuda_driver") {
    return Kind::kCall;
  }
  if (category == "python_function") {
    return event.name == "Python GC" ? Kind::kGc : Kind::kPython;
  }
  if (category == "user_annotation") return Kind::kAnnotation;
  if (category == "cpu_op" || category == "Operator") {
    for (absl::string_view prefix : {"ProfilerStep#", "enumerate(DataLoader)#",
                                     "enumerate(DataPipe)#", "Optimizer."}) {
      if (absl::StartsWith(event.name, prefix)) return Kind::kAnnotation;
    }
    return Kind::kOperator;
  }
  return std::nullopt;
}

// What a ROCm driver does as a kernel or copy of its own.
Kind KindOfRocm(Kind kind, const std::string& name) {
  if (kind != Kind::kKernel) return kind;
  if (absl::StartsWith(name, "__amd_rocclr_fillBuffer")) return Kind::kMemset;
  if (absl::StartsWith(name, "__amd_rocclr_copyBuffer")) return Kind::kCopy;
  return kind;
}

// From the words of CUDA's and ROCm's tracers, whose numbers differ.
CopyShape ShapeOf(const std::string& name) {
  using abi::GpuCopyKind;
  using abi::GpuMemoryKind;
  GpuCopyKind kind = GpuCopyKind::kUnknown;
  for (const auto& [text, named] :
       {std::pair<absl::string_view, GpuCopyKind>{"HtoD", GpuCopyKind::kHostToDevice},
        {"DtoH", GpuCopyKind::kDeviceToHost},
        {"HOST_TO_DEVICE", GpuCopyKind::kHostToDevice},
        {"DEVICE_TO_HOST", GpuCopyKind::kDeviceToHost},
        {"HostToDevice", GpuCopyKind::kHostToDevice},
        {"DeviceToHost", GpuCopyKind::kDeviceToHost},
        {"DtoD", GpuCopyKind::kDeviceToDevice},
        {"DeviceToDevice", GpuCopyKind::kDeviceToDevice},
        {"HtoH", GpuCopyKind::kHostToHost},
        {"PtoP", GpuCopyKind::kPeerToPeer}}) {
    if (absl::StrContains(name, text)) {
      kind = named;
      break;
    }
  }
  auto memory = [](absl::string_view text) {
    if (absl::StartsWith(text, "Pageable")) return GpuMemoryKind::kPageable;
    if (absl::StartsWith(text, "Pinned")) return GpuMemoryKind::kPinned;
    if (absl::StartsWith(text, "Device")) return GpuMemoryKind::kDevice;
    if (absl::StartsWith(text, "Array")) return GpuMemoryKind::kArray;
    if (absl::StartsWith(text, "Managed")) return GpuMemoryKind::kManaged;
    return GpuMemoryKind::kUnknown;
  };
  const size_t open = name.find('(');
  const size_t arrow = name.find(" -> ");
  if (open == std::string::npos || arrow == std::string::npos || arrow < open) {
    return CopyShape::Of(kind, GpuMemoryKind::kUnknown, GpuMemoryKind::kUnknown);
  }
  return CopyShape::Of(kind, memory(absl::string_view(name).substr(open + 1)),
                       memory(absl::string_view(name).substr(arrow + 4)));
}

uint32_t Small(const std::optional<int64_t>& value) {
  return value && *value > 0
             ? static_cast<uint32_t>(std::min<int64_t>(*value, UINT32_MAX))
             : 0;
}

uint32_t CorrelationOf(const ChromeEvent& event) {
  const int64_t id = event.correlation.value_or(0);
  return id > 0 && id < UINT32_MAX ? static_cast<uint32_t>(id) : 0;
}

}  // namespace

void ChromeRows::Add(const ChromeEvent& event) {
  ++trace_.events;
  if (event.phase == "X") return AddStretch(event);
  if ((event.phase == "i" || event.phase == "I") && event.name == "[memory]") {
    return AddMemory(event);
  }
  if (event.phase == "M") return Ignore("names of rows");
  if (event.phase == "s" || event.phase == "f" || event.phase == "t") {
    return Ignore("flow arrows");
  }
  if (trace_.ignored.size() > 100) return Ignore("other phases");
  Ignore(absl::StrCat("phase ", CleanText(event.phase, 16)));
}

void ChromeRows::AddStretch(const ChromeEvent& event) {
  const std::optional<Kind> kind = KindOf(event);
  if (!kind) {
    if (trace_.ignored.size() > 100) return Ignore("other categories");
    return Ignore(event.category.empty()
                      ? "no category"
                      : absl::StrCat("category ", CleanText(event.category, 64)));
  }
  const auto start = NsOfMicroseconds(event.timestamp);
  const auto duration =
      event.duration.empty() ? std::nullopt : NsOfMicroseconds(event.duration);
  if (!start || !duration || *start > kLatestNs || *duration > kLatestNs) {
    return Ignore("without a time that can be");
  }
  Resolution(event);
  Record record;
  record.kind = *kind;
  record.start_ns = *start;
  record.end_ns = *start + *duration;
  record.correlation = CorrelationOf(event);
  if (IsOfDevice(*kind)) return AddOfDevice(event, record);
  AddOfHost(event, record);
}

void ChromeRows::Resolution(const ChromeEvent& event) {
  if (trace_.resolution_ns == 1) return;
  const size_t point = event.timestamp.find('.');
  if (point != std::string::npos) trace_.resolution_ns = 1;
}

void ChromeRows::AddOfHost(const ChromeEvent& event, Record record) {
  const int64_t pid = event.pid.value_or(0);
  // The frames of a thread that had no id yet.
  if (record.kind == Kind::kPython && pid == 0) {
    return Ignore("Python frames of no thread");
  }
  ++pids_[pid];
  record.tid = ThreadOf(event.tid.value_or(0));
  switch (record.kind) {
    case Kind::kPython: {
      const PythonName place = ParsePythonName(event.name);
      record.name = trace_.strings.Intern(place.function);
      record.text = trace_.strings.Intern(place.file);
      record.line = place.line;
      record.extra = trace_.strings.Intern(event.call_stack);
      break;
    }
    case Kind::kOperator:
      record.name = trace_.strings.Intern(CleanText(event.name));
      record.text = trace_.strings.Intern(event.call_stack);
      if (event.sequence && *event.sequence >= 0) {
        record.bytes = static_cast<uint64_t>(*event.sequence) + 1;
        record.extra = Small(event.forward_thread);
      }
      break;
    case Kind::kCall:
      record.name = trace_.strings.Intern(CleanText(event.name));
      if (record.correlation != 0) trace_.called.insert(record.correlation);
      break;
    default:
      record.name = trace_.strings.Intern(CleanText(event.name));
      record.text = trace_.strings.Intern(event.call_stack);
  }
  trace_.records.push_back(record);
}

void ChromeRows::AddOfDevice(const ChromeEvent& event, Record record) {
  record.kind = KindOfRocm(record.kind, event.name);
  const int64_t device = (event.device ? event.device : event.pid).value_or(0);
  if (device < 0 || device >= kMaxWireDevices) {
    return Ignore("of a device with an absurd number");
  }
  record.stream = StreamOf(event, static_cast<uint32_t>(device));
  record.bytes = static_cast<uint64_t>(std::max<int64_t>(0, event.bytes.value_or(0)));
  if (record.kind == Kind::kKernel) record.extra = KernelOf(event);
  if (record.kind == Kind::kCopy) record.extra = ShapeOf(event.name).packed;
  if (record.correlation != 0) {
    trace_.ran.try_emplace(record.correlation,
                           record.kind == Kind::kKernel ? record.extra + 1 : 0);
    if (record.kind != Kind::kKernel) AddCopied(record, &trace_);
  }
  trace_.records.push_back(record);
}

void ChromeRows::AddMemory(const ChromeEvent& event) {
  const auto time = NsOfMicroseconds(event.timestamp);
  if (!time || *time > kLatestNs || !event.bytes || *event.bytes == 0) {
    return Ignore("memory events without bytes");
  }
  // Older profilers name no address: which block is freed cannot be told.
  if (!event.address) return Ignore("memory events without an address");
  // The CPU is -1.
  const int64_t type = event.device_type.value_or(0);
  const int64_t device = event.device_id.value_or(0);
  if (type < 0 || type > 0xff || device < (type == 0 ? -1 : 0) || device > 0xff) {
    return Ignore("of a device with an absurd number");
  }
  Record record;
  record.kind = Kind::kMemory;
  record.start_ns = record.end_ns = *time;
  record.tid = ThreadOf(event.tid.value_or(0));
  record.bytes = static_cast<uint64_t>(*event.bytes);
  record.address = static_cast<uint64_t>(*event.address);
  // PyTorch for ROCm calls its devices CUDA's, as it does everywhere else.
  const uint32_t ours = type == 6 ? 1 : static_cast<uint32_t>(type);
  MemoryTotals totals;
  totals.device = ours << 8 | Small(event.device_id);
  totals.known = ours == 1 && event.allocated && event.reserved &&
                 *event.allocated >= 0 && *event.reserved >= 0;
  if (totals.known) {
    totals.allocated = static_cast<uint64_t>(*event.allocated);
    totals.reserved = static_cast<uint64_t>(*event.reserved);
  }
  record.extra = static_cast<uint32_t>(trace_.memory_totals.size());
  trace_.memory_totals.push_back(totals);
  trace_.records.push_back(record);
}

// Ids of threads are the kernel's, or (until 2021, and of threads that the profiler did
// not know) some 64 bits that stand for one.
uint32_t ChromeRows::ThreadOf(int64_t tid) {
  if (tid >= 0 && tid < 0x7fffffff) return static_cast<uint32_t>(tid);
  auto [it, fresh] = threads_.try_emplace(tid);
  if (fresh) it->second = 0x80000000u + static_cast<uint32_t>(threads_.size());
  return it->second;
}

uint32_t ChromeRows::KernelOf(const ChromeEvent& event) {
  lull::v1::KernelDef kernel;
  kernel.set_name(CleanText(event.name));
  kernel.set_grid_x(event.grid[0]);
  kernel.set_grid_y(event.grid[1]);
  kernel.set_grid_z(event.grid[2]);
  kernel.set_block_x(event.block[0]);
  kernel.set_block_y(event.block[1]);
  kernel.set_block_z(event.block[2]);
  kernel.set_registers_per_thread(Small(event.registers));
  kernel.set_dynamic_shared_bytes(Small(event.shared));  // of both kinds together
  auto [it, fresh] = kernels_.try_emplace(kernel.SerializeAsString());
  if (fresh) {
    it->second = static_cast<uint32_t>(trace_.kernels.size());
    trace_.kernel_bytes += BytesOfKernel(kernel.name().size());
    trace_.kernels.push_back(std::move(kernel));
  }
  return it->second;
}

uint32_t ChromeRows::StreamOf(const ChromeEvent& event, uint32_t device) {
  Stream stream;
  stream.device = device;
  stream.context = Small(event.context);
  stream.stream =
      static_cast<uint64_t>(event.stream ? *event.stream : event.tid.value_or(0));
  auto [it, fresh] = streams_.try_emplace(stream);
  if (fresh) {
    it->second = static_cast<uint32_t>(trace_.streams.size());
    trace_.streams.push_back(stream);
  }
  return it->second;
}

absl::Status ChromeRows::Finish() {
  if (trace_.records.empty()) {
    return absl::InvalidArgumentError(
        "no trace of torch.profiler: none of its events is of a category that it "
        "writes");
  }
  uint64_t most = 0;
  for (const auto& [pid, count] : pids_) {
    if (count < most || (count == most && pid >= trace_.pid)) continue;
    most = count;
    trace_.pid = Small(pid);
  }
  return absl::OkStatus();
}

}  // namespace lull::imports
