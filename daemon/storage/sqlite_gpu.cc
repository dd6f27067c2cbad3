// The tables of GPU truth: kernels, streams, devices, when it was traced.
#include "daemon/storage/collect.h"
#include "daemon/storage/sqlite_reader.h"
#include "daemon/storage/sqlite_writer.h"

namespace lull::storage {
namespace {

KernelRow ReadKernel(const Row& r) {
  KernelRow row;
  row.id = r.Uint32(0);
  row.name = r.Uint32(1);
  for (int i = 0; i < 3; ++i) {
    row.grid[i] = r.Uint32(2 + i);
    row.block[i] = r.Uint32(5 + i);
  }
  row.registers_per_thread = r.Uint32(8);
  row.static_shared_bytes = r.Uint32(9);
  row.dynamic_shared_bytes = r.Uint32(10);
  return row;
}

GpuDeviceRow ReadDevice(const Row& r) {
  GpuDeviceRow row;
  row.device = r.Uint32(0);
  row.name = r.Text(1);
  row.multiprocessors = r.Uint32(2);
  row.max_threads_per_multiprocessor = r.Uint32(3);
  row.max_blocks_per_multiprocessor = r.Uint32(4);
  row.max_registers_per_multiprocessor = r.Uint32(5);
  row.max_shared_bytes_per_multiprocessor = r.Uint32(6);
  row.warp_size = r.Uint32(7);
  row.compute_capability = r.Uint32(8);
  row.total_bytes = r.Uint(9);
  return row;
}

}  // namespace

absl::StatusOr<std::vector<KernelNameRow>> SqliteReader::KernelNames(int64_t job) {
  return Collect<KernelNameRow>(
      db_, "SELECT id, name FROM kernel_names WHERE job=?",
      [](const Row& r) {
        return KernelNameRow{r.Uint32(0), r.Text(1)};
      },
      job);
}

absl::StatusOr<std::vector<KernelRow>> SqliteReader::Kernels(int64_t job) {
  return Collect<KernelRow>(
      db_,
      "SELECT id, name, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers,"
      "static_shared, dynamic_shared FROM kernels WHERE job=?",
      ReadKernel, job);
}

absl::StatusOr<std::vector<GpuStreamRow>> SqliteReader::GpuStreams(int64_t job) {
  return Collect<GpuStreamRow>(
      db_, "SELECT id, device, context, stream FROM gpu_streams WHERE job=?",
      [](const Row& r) {
        return GpuStreamRow{r.Uint32(0), r.Uint32(1), r.Uint32(2), r.Uint32(3)};
      },
      job);
}

absl::StatusOr<std::vector<GpuDeviceRow>> SqliteReader::GpuDevices(int64_t process) {
  return Collect<GpuDeviceRow>(
      db_,
      "SELECT device, name, multiprocessors, max_threads, max_blocks, max_registers,"
      "max_shared, warp_size, compute_capability, total_bytes FROM gpu_devices "
      "WHERE process=?",
      ReadDevice, process);
}

absl::StatusOr<std::vector<TracingRow>> SqliteReader::Tracing(int64_t process) {
  return Collect<TracingRow>(
      db_,
      "SELECT start_ns, state, reason FROM tracing WHERE process=? ORDER BY start_ns",
      [](const Row& r) {
        return TracingRow{r.Uint(0), r.Enum<lull::v1::TracingState>(1),
                          r.Enum<lull::v1::TracingReason>(2)};
      },
      process);
}

absl::StatusOr<std::vector<NonFiniteRow>> SqliteReader::NonFinite(int64_t process) {
  return Collect<NonFiniteRow>(
      db_,
      "SELECT time_ns, value, series, step_known, step FROM non_finite WHERE process=?",
      [](const Row& r) {
        return NonFiniteRow{r.Uint(0), r.Uint(1), r.Uint32(2), r.Int(3) != 0,
                            r.Uint(4)};
      },
      process);
}

absl::Status SqliteWriter::PutKernelName(int64_t job, const KernelNameRow& row) {
  return db_->Execute("REPLACE INTO kernel_names VALUES(?,?,?)", job, row.id, row.name);
}

absl::Status SqliteWriter::PutKernel(int64_t job, const KernelRow& row) {
  return db_->Execute(
      "REPLACE INTO kernels VALUES(?,?,?,?,?,?,?,?,?,?,?,?)", job, row.id, row.name,
      row.grid[0], row.grid[1], row.grid[2], row.block[0], row.block[1], row.block[2],
      row.registers_per_thread, row.static_shared_bytes, row.dynamic_shared_bytes);
}

absl::Status SqliteWriter::PutGpuStream(int64_t job, const GpuStreamRow& row) {
  return db_->Execute("REPLACE INTO gpu_streams VALUES(?,?,?,?,?)", job, row.id,
                      row.device, row.context, row.stream);
}

absl::Status SqliteWriter::PutGpuDevice(int64_t process, const GpuDeviceRow& row) {
  return db_->Execute(
      "REPLACE INTO gpu_devices VALUES(?,?,?,?,?,?,?,?,?,?,?)", process, row.device,
      row.name, row.multiprocessors, row.max_threads_per_multiprocessor,
      row.max_blocks_per_multiprocessor, row.max_registers_per_multiprocessor,
      row.max_shared_bytes_per_multiprocessor, row.warp_size, row.compute_capability,
      row.total_bytes);
}

absl::Status SqliteWriter::PutTracing(int64_t process, const TracingRow& row) {
  return db_->Execute("REPLACE INTO tracing VALUES(?,?,?,?)", process, row.start_ns,
                      row.state, row.reason);
}

absl::Status SqliteWriter::PutNonFinite(int64_t process, const NonFiniteRow& row) {
  return db_->Execute("REPLACE INTO non_finite VALUES(?,?,?,?,?,?)", process,
                      row.time_ns, row.value, row.series, row.step_known, row.step);
}

}  // namespace lull::storage
