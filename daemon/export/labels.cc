#include "daemon/export/labels.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/aggregate/control_step.h"
#include "daemon/aggregate/wait_kind.h"
#include "daemon/base/backward_frames.h"
#include "daemon/words/cause_words.h"

namespace lull::exports {
namespace {

using aggregate::EventType;
using aggregate::Series;
using aggregate::WaitKind;

const char* CopyName(uint32_t kind) {
  switch (kind) {
    case lull::v1::GPU_COPY_KIND_HOST_TO_DEVICE:
      return "Memcpy HtoD";
    case lull::v1::GPU_COPY_KIND_DEVICE_TO_HOST:
      return "Memcpy DtoH";
    case 8:
      return "Memcpy DtoD";
    case 9:
      return "Memcpy HtoH";
    case 10:
      return "Memcpy PtoP";
    default:
      return "Memcpy";
  }
}

const char* MemoryName(uint32_t kind) {
  constexpr const char* kNames[] = {"Unknown", "Pageable", "Pinned",
                                    "Device",  "Array",    "Managed"};
  return kind < std::size(kNames) ? kNames[kind] : kNames[0];
}

// As torch.profiler would have it: a frame of a built-in function.
const char* WaitName(WaitKind kind) {
  switch (kind) {
    case WaitKind::kLock:
      return "<built-in method acquire of _thread.lock object at 0x0>";
    case WaitKind::kIo:
      return "<built-in method poll of select.poll object at 0x0>";
    case WaitKind::kSleep:
      return "<built-in function sleep>";
    default:
      return nullptr;
  }
}

bool IsOfDriver(absl::string_view name) {
  return absl::StartsWith(name, "cu") && name.size() > 2 && name[2] >= 'A' &&
         name[2] <= 'Z';
}

}  // namespace

Labels::Labels(query::Names& names, const std::vector<Series>& series,
               const std::vector<storage::GpuStreamRow>& streams)
    : names_(names), series_(series), labels_(series.size()), made_(series.size()) {
  for (const storage::GpuStreamRow& row : streams) {
    if (streams_.size() <= row.id) streams_.resize(row.id + 1);
    streams_[row.id] = row;
  }
}

const Label& Labels::Of(uint32_t id) {
  if (!made_[id]) {
    labels_[id] = Make(series_[id]);
    made_[id] = true;
  }
  return labels_[id];
}

Label Labels::Make(const Series& series) {
  Label label;
  switch (series.type) {
    case EventType::kLaunch:
    case EventType::kSync:
    case EventType::kCopyAsync:
    case EventType::kDeviceMemory:
      AddHooked(series, &label);
      break;
    case EventType::kApiCall:
      AddCall(series.api, &label);
      break;
    case EventType::kGpuKernel:
    case EventType::kGpuGraph:
    case EventType::kGpuCopy:
    case EventType::kGpuMemset:
      if (aggregate::IsTraced(series)) AddOperation(series, &label);
      break;
    case EventType::kHostWait:
      AddWait(series, &label);
      break;
    case EventType::kGcPause:
      label.row = Row::kThread;
      label.category = "python_function";
      label.name = "Python GC";
      label.numbers.emplace_back("generation", aggregate::GenerationOf(series));
      break;
    case EventType::kStep:
      if (aggregate::IsRestAlone(series)) break;
      label.row = Row::kSteps;
      label.category = "user_annotation";
      label.name = "ProfilerStep#";
      break;
    case EventType::kScope: {
      label.row = Row::kRegion;
      label.category = "user_annotation";
      const auto path = names_.ScopePath(series.native_stack);
      label.name = path.empty() ? "?" : path.back();
      AddStack(series, &label);
      break;
    }
    case EventType::kIdle:
      AddIdle(series, &label);
      break;
    default:
      break;
  }
  return label;
}

void Labels::AddCall(uint32_t api, Label* label) {
  label->row = Row::kCall;
  label->name = names_.Api(api);
  label->category = IsOfDriver(label->name) ? "cuda_driver" : "cuda_runtime";
}

const Label& Labels::CallLabel(uint32_t id) {
  auto [it, fresh] = calls_.try_emplace(series_[id].api);
  if (fresh) AddCall(series_[id].api, &it->second);
  return it->second;
}

// Around the call as CUPTI has it: an operator with a stack, which is where readers
// look for the line.
void Labels::AddHooked(const Series& series, Label* label) {
  label->row = Row::kThread;
  label->category = "cpu_op";
  label->name = names_.OperatorName(series.native_stack);
  const std::string& api = names_.Api(series.api);
  if (label->name.empty()) label->name = absl::StrCat("lull::", api);
  label->texts.emplace_back("call", api);
  AddStack(series, label);
}

void Labels::AddStack(const Series& series, Label* label) {
  std::string text = StackText(series.python_stack);
  // That of a scope holds names.
  if (text.empty() && series.type != EventType::kScope) {
    text = StackText(series.native_stack);
  }
  if (!text.empty()) label->texts.emplace_back("Call stack", std::move(text));
}

std::string Labels::StackText(uint32_t stack) {
  google::protobuf::RepeatedPtrField<lull::v1::Frame> frames;
  names_.FillStack(stack, &frames);
  std::string text;
  for (const lull::v1::Frame& frame : frames) {
    // What comes behind is the line that made the node, not its caller.
    if (frame.module() == kForwardModule) break;
    if (frame.file().empty() || frame.line() <= 0) continue;
    absl::StrAppend(&text, text.empty() ? "" : ";", frame.file(), "(", frame.line(),
                    "): ", frame.function());
  }
  return text;
}

void Labels::AddOperation(const Series& series, Label* label) {
  label->row = Row::kStream;
  storage::GpuStreamRow stream;
  if (series.gpu_stream < streams_.size()) stream = streams_[series.gpu_stream];
  label->device = Number(stream.device);
  label->stream = Number(stream.stream);
  label->numbers.emplace_back("device", label->device);
  label->numbers.emplace_back("context", Number(stream.context));
  label->numbers.emplace_back("stream", label->stream);
  if (series.type == EventType::kGpuKernel) return AddKernel(series, label);
  if (series.type == EventType::kGpuGraph) {
    label->category = "kernel";
    label->name = "CUDA graph";
    return;
  }
  label->amount = "bytes";
  if (series.type == EventType::kGpuMemset) {
    label->category = "gpu_memset";
    label->name = "Memset (Device)";
    return;
  }
  const CopyShape shape{series.shape};
  label->category = "gpu_memcpy";
  label->name = absl::StrCat(CopyName(shape.kind()), " (", MemoryName(shape.source()),
                             " -> ", MemoryName(shape.destination()), ")");
}

void Labels::AddKernel(const Series& series, Label* label) {
  const storage::KernelRow& kernel = names_.Kernel(aggregate::KernelOf(series));
  label->category = "kernel";
  label->name = names_.KernelName(kernel.name);
  auto shape = [](const uint32_t(&extent)[3]) {
    return std::array<uint32_t, 3>{extent[0], extent[1], extent[2]};
  };
  if (kernel.grid[0] == 0) return;
  label->shapes.emplace_back("grid", shape(kernel.grid));
  label->shapes.emplace_back("block", shape(kernel.block));
  label->numbers.emplace_back("registers per thread", kernel.registers_per_thread);
  label->numbers.emplace_back("shared memory", int64_t{kernel.static_shared_bytes} +
                                                   kernel.dynamic_shared_bytes);
}

std::string Labels::PlaceOf(uint32_t id) {
  lull::v1::Site site;
  if (id != 0) names_.FillSite(id, &site);
  if (site.file().empty()) return site.function();
  return absl::StrCat(site.file(), ":", site.line(), " ", site.function());
}

void Labels::AddIdle(const Series& series, Label* label) {
  label->row = Row::kIdle;
  label->category = "lull_idle";
  label->name = CauseKey(static_cast<lull::v1::GapCause>(aggregate::CauseOf(series)));
  label->device = Number(aggregate::DeviceOf(series));
  label->wasted = aggregate::CauseOf(series) == lull::v1::GAP_CAUSE_SYNC;
  for (const auto& [key, text] :
       {std::pair<const char*, std::string>{"culprit", PlaceOf(series.line_site)},
        {"before", PlaceOf(series.before_line)},
        {"after", PlaceOf(series.after_line)},
        {"api", series.api != 0 ? names_.Api(series.api) : ""}}) {
    if (!text.empty()) label->texts.emplace_back(key, text);
  }
}

void Labels::AddWait(const Series& series, Label* label) {
  const auto kind = static_cast<WaitKind>(series.variant);
  label->row = Row::kThread;
  AddStack(series, label);
  if (kind == WaitKind::kData) {
    label->category = "user_annotation";
    label->name = "enumerate(DataLoader)#lull.__next__";
    label->plain = "wait for data";
    return;
  }
  const char* name = WaitName(kind);
  label->category = name != nullptr ? "python_function" : "cpu_op";
  label->plain = absl::StrCat("wait: ", names_.Api(series.api));
  label->name = name != nullptr ? name : label->plain;
  label->texts.emplace_back("call", names_.Api(series.api));
}

}  // namespace lull::exports
