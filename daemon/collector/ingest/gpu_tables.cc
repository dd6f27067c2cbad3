#include "daemon/collector/ingest/gpu_tables.h"

#include "daemon/aggregate/kernel_names.h"
#include "daemon/base/status.h"

namespace lull::collector {
namespace {

template <size_t N>
std::string Bytes(const uint32_t (&parts)[N]) {
  return std::string(reinterpret_cast<const char*>(parts), sizeof(parts));
}

std::string KeyOf(const storage::KernelRow& k) {
  return Bytes({k.name, k.grid[0], k.grid[1], k.grid[2], k.block[0], k.block[1],
                k.block[2], k.registers_per_thread, k.static_shared_bytes,
                k.dynamic_shared_bytes});
}

std::string KeyOf(const storage::GpuStreamRow& s) {
  return Bytes({Number(s.device), Number(s.context), Number(s.stream)});
}

storage::KernelRow RowOf(uint32_t name, const v1::KernelDef& definition) {
  storage::KernelRow row;
  row.name = name;
  row.grid[0] = definition.grid_x();
  row.grid[1] = definition.grid_y();
  row.grid[2] = definition.grid_z();
  row.block[0] = definition.block_x();
  row.block[1] = definition.block_y();
  row.block[2] = definition.block_z();
  row.registers_per_thread = definition.registers_per_thread();
  row.static_shared_bytes = definition.static_shared_bytes();
  row.dynamic_shared_bytes = definition.dynamic_shared_bytes();
  return row;
}

}  // namespace

absl::Status GpuTables::Load(storage::StoreReader& reader, int64_t job) {
  LULL_ASSIGN_OR_RETURN(auto names,
                        reader.catalogue().All<storage::KernelNameRow>(job));
  for (const auto& row : names) Remember(row);
  LULL_ASSIGN_OR_RETURN(auto kernels, reader.catalogue().All<storage::KernelRow>(job));
  for (const auto& row : kernels) Remember(row);
  LULL_ASSIGN_OR_RETURN(auto streams,
                        reader.catalogue().All<storage::GpuStreamRow>(job));
  for (const auto& row : streams) Remember(row);
  return absl::OkStatus();
}

void GpuTables::Remember(const storage::KernelNameRow& row) {
  name_ids_[row.name] = row.id;
  if (aggregate::IsCommunicationKernel(row.name)) communication_.insert(row.id);
}

void GpuTables::Remember(const storage::KernelRow& row) {
  kernel_ids_[KeyOf(row)] = row.id;
  if (kernel_names_.size() < row.id) kernel_names_.resize(row.id);
  kernel_names_[row.id - 1] = row.name;
}

void GpuTables::Remember(const storage::GpuStreamRow& row) {
  stream_ids_[KeyOf(row)] = row.id;
  if (streams_.size() <= row.id) streams_.resize(row.id + 1);
  streams_[row.id] = row;
}

uint32_t GpuTables::InternName(const std::string& name) {
  auto known = name_ids_.find(name);
  if (known != name_ids_.end()) return known->second;
  if (name_ids_.size() >= kMaxNames) return 0;
  auto id = static_cast<uint32_t>(name_ids_.size() + 1);
  new_names_.push_back({id, name});
  Remember(new_names_.back());
  return id;
}

uint32_t GpuTables::InternKernel(const v1::KernelDef& definition) {
  uint32_t name = InternName(definition.name());
  if (name == 0) return 0;
  storage::KernelRow row = RowOf(name, definition);
  auto known = kernel_ids_.find(KeyOf(row));
  if (known != kernel_ids_.end()) return known->second;
  if (kernel_names_.size() >= kMaxShapes) {
    row = RowOf(name, {});
    known = kernel_ids_.find(KeyOf(row));
    if (known != kernel_ids_.end()) return known->second;
  }
  row.id = static_cast<uint32_t>(kernel_names_.size() + 1);
  Remember(row);
  new_kernels_.push_back(row);
  return row.id;
}

uint32_t GpuTables::InternStream(const v1::GpuStreamDef& definition) {
  storage::GpuStreamRow row{0, DeviceId{definition.device()},
                            ContextId{definition.context()},
                            StreamId{definition.stream()}};
  auto known = stream_ids_.find(KeyOf(row));
  if (known != stream_ids_.end()) return known->second;
  if (streams_.size() > kMaxStreams) return 0;
  row.id = static_cast<uint32_t>(streams_.size());
  Remember(row);
  new_streams_.push_back(row);
  return row.id;
}

absl::Status GpuTables::Flush(storage::StoreWriter& writer, int64_t job) {
  LULL_RETURN_IF_ERROR(writer.catalogue().PutAll(job, new_names_));
  LULL_RETURN_IF_ERROR(writer.catalogue().PutAll(job, new_kernels_));
  return writer.catalogue().PutAll(job, new_streams_);
}

}  // namespace lull::collector
