#include "daemon/query/kernels.h"

#include <algorithm>
#include <map>
#include <utility>

#include "daemon/aggregate/kernel_names.h"
#include "daemon/aggregate/occupancy.h"
#include "daemon/query/rows.h"

namespace lull::query {
namespace {

constexpr uint32_t kGraph = UINT32_MAX;  // in place of the id of a name

struct LineOfKernel {
  uint64_t ns = 0;
  Series longest;  // the series with most of it
  uint64_t longest_ns = 0;
  uint32_t native_stack = 0;  // of the series with most of it among those that have one
  uint64_t native_ns = 0;
};

struct Kernel {
  Cell sum;
  double blocks = 0;     // times ns
  double filled = 0;     // times ns; at most 1 block per multiprocessor counts
  double occupancy = 0;  // times ns
  uint64_t shaped_ns = 0;
  std::map<uint32_t, LineOfKernel> lines;  // by line site
};

using KernelsById = std::map<uint32_t, Kernel>;  // by id of the name

aggregate::DeviceLimits LimitsOf(const ProcessSums& sums) {
  aggregate::DeviceLimits limits;
  if (sums.devices.empty()) return limits;
  const v1::GpuDeviceDef& device = sums.devices.front().def;
  limits.multiprocessors = device.multiprocessors();
  limits.max_threads = device.max_threads_per_multiprocessor();
  limits.max_blocks = device.max_blocks_per_multiprocessor();
  limits.max_registers = device.max_registers_per_multiprocessor();
  limits.max_shared_bytes = device.max_shared_bytes_per_multiprocessor();
  limits.warp_size = device.warp_size() != 0 ? device.warp_size() : 32;
  limits.compute_capability = device.compute_capability();
  return limits;
}

aggregate::LaunchShape ShapeOf(const storage::KernelRow& row) {
  aggregate::LaunchShape shape;
  shape.blocks = uint64_t{row.grid[0]} * row.grid[1] * row.grid[2];
  shape.threads_per_block = row.block[0] * row.block[1] * row.block[2];
  shape.registers_per_thread = row.registers_per_thread;
  shape.shared_bytes = row.static_shared_bytes + row.dynamic_shared_bytes;
  return shape;
}

void AddOperation(const Series& series, const Cell& cell,
                  const aggregate::DeviceLimits& limits, Names& names,
                  KernelsById& kernels) {
  if (!aggregate::IsTraced(series)) return;
  if (series.type == EventType::kGpuGraph) return kernels[kGraph].sum.Append(cell);
  if (series.type != EventType::kGpuKernel) return;
  const storage::KernelRow& row = names.Kernel(aggregate::KernelOf(series));
  Kernel& kernel = kernels[row.name];
  kernel.sum.Append(cell);
  aggregate::LaunchShape shape = ShapeOf(row);
  if (shape.blocks == 0 || limits.multiprocessors == 0) return;
  auto weight = static_cast<double>(cell.total_ns);
  double blocks = aggregate::BlocksPerMultiprocessor(shape, limits);
  kernel.blocks += weight * blocks;
  kernel.filled += weight * std::min(1.0, blocks);
  kernel.occupancy += weight * aggregate::OccupancyPercent(shape, limits);
  kernel.shaped_ns += cell.total_ns;
}

void AddSubmission(const Series& series, const Cell& cell, KernelsById& kernels) {
  using aggregate::SubmissionKind;
  const SubmissionKind kind = aggregate::SubmissionKindOf(series);
  if (kind != SubmissionKind::kKernel && kind != SubmissionKind::kGraph) return;
  const uint32_t name =
      kind == SubmissionKind::kGraph ? kGraph : aggregate::KernelNameOf(series);
  auto kernel = kernels.find(name);
  if (kernel == kernels.end()) return;  // none of its operations is in the range
  LineOfKernel& line = kernel->second.lines[series.line_site];
  line.ns += cell.total_ns;
  if (cell.total_ns >= line.longest_ns) {
    line.longest_ns = cell.total_ns;
    line.longest = series;
  }
  if (series.native_stack != 0 && cell.total_ns >= line.native_ns) {
    line.native_ns = cell.total_ns;
    line.native_stack = series.native_stack;
  }
}

KernelsById Collect(View& view) {
  KernelsById kernels;
  for (const ProcessSums& sums : view.processes) {
    aggregate::DeviceLimits limits = LimitsOf(sums);
    sums.ForEach([&](const Series& series, const Cell& cell) {
      if (!cell.empty()) AddOperation(series, cell, limits, *view.names, kernels);
    });
  }
  for (const ProcessSums& sums : view.processes) {
    sums.ForEach([&](const Series& series, const Cell& cell) {
      if (series.type == EventType::kSubmission && !cell.empty()) {
        AddSubmission(series, cell, kernels);
      }
    });
  }
  return kernels;
}

// The line of most time; one that is not known only if no other is.
const LineOfKernel* MainLine(const Kernel& kernel) {
  const LineOfKernel* best = nullptr;
  for (const auto& [site, line] : kernel.lines) {
    bool better = best == nullptr || (best->longest.line_site == 0 && site != 0) ||
                  (line.ns > best->ns && site != 0);
    if (better) best = &line;
  }
  return best;
}

void FillRow(uint32_t id, const Kernel& kernel, Names& names, v1::KernelRow* row) {
  row->set_name(id == kGraph ? kGraphName : names.KernelName(id));
  row->set_calls(kernel.sum.count);
  row->set_total_ns(kernel.sum.total_ns);
  row->set_min_ns(kernel.sum.min_ns);
  row->set_max_ns(kernel.sum.max_ns);
  row->set_tensor_core(aggregate::IsTensorCoreKernel(row->name()));
  if (kernel.shaped_ns > 0) {
    auto ns = static_cast<double>(kernel.shaped_ns);
    row->set_blocks_per_sm(kernel.blocks / ns);
    row->set_occupancy_percent(kernel.occupancy / ns);
  }
  const LineOfKernel* line = MainLine(kernel);
  if (line == nullptr) return;
  names.FillSite(line->longest.line_site, row->mutable_site());
  names.FillStack(line->longest.python_stack, row->mutable_stack());
  row->set_operator_name(names.OperatorName(line->native_stack));
}

const char* DirectionName(uint32_t kind) {  // lull.v1.GpuCopyKind
  constexpr const char* kNames[] = {"unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                    "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};
  return kind < std::size(kNames) ? kNames[kind] : kNames[0];
}

const char* MemoryName(uint32_t kind) {
  switch (kind) {
    case v1::GPU_MEMORY_KIND_PAGEABLE:
      return "pageable";
    case v1::GPU_MEMORY_KIND_PINNED:
      return "pinned";
    case v1::GPU_MEMORY_KIND_MANAGED:
    case v1::GPU_MEMORY_KIND_MANAGED_STATIC:
      return "managed";
    default:
      return "";
  }
}

// The memory of the host side: the source of what goes to the device, else the target.
const char* HostMemory(CopyShape copy) {
  switch (copy.kind()) {
    case v1::GPU_COPY_KIND_HOST_TO_DEVICE:
    case v1::GPU_COPY_KIND_HOST_TO_ARRAY:
    case v1::GPU_COPY_KIND_HOST_TO_HOST:
      return MemoryName(copy.source());
    case v1::GPU_COPY_KIND_DEVICE_TO_HOST:
    case v1::GPU_COPY_KIND_ARRAY_TO_HOST:
      return MemoryName(copy.destination());
    default:
      return "";
  }
}

void FillCopies(const std::vector<ProcessSums>& processes, v1::Kernels* reply) {
  std::map<std::pair<std::string, std::string>, Cell> copies;
  for (const ProcessSums& sums : processes) {
    sums.ForEach([&](const Series& series, const Cell& cell) {
      if (!aggregate::IsTraced(series) || cell.empty()) return;
      if (series.type == EventType::kGpuCopy) {
        const CopyShape copy = aggregate::CopyShapeOf(series);
        copies[{DirectionName(copy.kind()), HostMemory(copy)}].Append(cell);
      } else if (series.type == EventType::kGpuMemset) {
        copies[{"memset", ""}].Append(cell);
      }
    });
  }
  for (const auto& [key, cell] : copies) {
    v1::CopyRow* row = reply->add_copies();
    row->set_direction(key.first);
    row->set_memory(key.second);
    row->set_count(cell.count);
    row->set_bytes(cell.amount);
    row->set_total_ns(cell.total_ns);
  }
  SortByTime(reply->mutable_copies());
}

}  // namespace

KernelQuality QualityOf(View& view) {
  double total = 0, shaped = 0, filled = 0, occupancy = 0, tensor_core = 0;
  for (const auto& [id, kernel] : Collect(view)) {
    auto ns = static_cast<double>(kernel.sum.total_ns);
    total += ns;
    shaped += static_cast<double>(kernel.shaped_ns);
    filled += kernel.filled;
    occupancy += kernel.occupancy;
    if (id != kGraph && aggregate::IsTensorCoreKernel(view.names->KernelName(id))) {
      tensor_core += ns;
    }
  }
  KernelQuality quality;
  if (shaped > 0) {
    quality.multiprocessors = 100 * filled / shaped;
    quality.occupancy = occupancy / shaped;
  }
  if (total > 0) quality.tensor_core = 100 * tensor_core / total;
  return quality;
}

absl::Status FillKernels(View& view, v1::ReportReply* reply) {
  v1::Kernels* out = reply->mutable_kernels();
  KernelsById kernels = Collect(view);
  for (const auto& [id, kernel] : kernels) {
    out->set_total_ns(out->total_ns() + kernel.sum.total_ns);
    out->set_total_calls(out->total_calls() + kernel.sum.count);
  }
  auto time = [](const Kernel& kernel) { return kernel.sum.total_ns; };
  for (const auto* kernel : Highest(kernels, view.request.top(), time)) {
    FillRow(kernel->first, kernel->second, *view.names, out->add_kernels());
  }
  FillCopies(view.processes, out);
  return absl::OkStatus();
}

}  // namespace lull::query
