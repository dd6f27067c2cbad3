// Kernels and GPU streams of one job, each stored once and named by a small integer, as
// JobTables does for stacks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "daemon/storage/store.h"
#include "events.pb.h"

namespace lull::collector {

// Not thread-safe. What is new is held until Flush puts it into the store. Id 0 is
// none.
class GpuTables {
 public:
  absl::Status Load(storage::StoreReader& reader, int64_t job);

  // Beyond kMaxShapes the shape is left out, beyond kMaxNames a kernel gets id 0, and
  // beyond kMaxStreams a stream does: inputs of ever new sizes must not fill the store
  // with series.
  uint32_t InternKernel(const lull::v1::KernelDef& definition);
  uint32_t InternStream(const lull::v1::GpuStreamDef& definition);

  // Id of the name of a kernel; 0 for none.
  uint32_t KernelName(uint32_t kernel) const {
    return kernel == 0 ? 0 : kernel_names_[kernel - 1];
  }
  // Whether its name is that of a communication kernel (NCCL and the like).
  bool IsCommunication(uint32_t kernel) const {
    return communication_.contains(KernelName(kernel));
  }
  // All zero for id 0.
  const storage::GpuStreamRow& Stream(uint32_t id) const { return streams_[id]; }

  absl::Status Flush(storage::StoreWriter& writer, int64_t job);

 private:
  static constexpr size_t kMaxShapes = 16384;
  static constexpr size_t kMaxNames = 8192;
  static constexpr size_t kMaxStreams = 65536;

  uint32_t InternName(const std::string& name);
  void Remember(const storage::KernelNameRow& row);
  void Remember(const storage::KernelRow& row);
  void Remember(const storage::GpuStreamRow& row);

  absl::flat_hash_map<std::string, uint32_t> name_ids_;
  absl::flat_hash_set<uint32_t> communication_;            // ids of names
  absl::flat_hash_map<std::string, uint32_t> kernel_ids_;  // by content
  std::vector<uint32_t> kernel_names_;                     // by kernel id - 1
  absl::flat_hash_map<std::string, uint32_t> stream_ids_;  // by content
  std::vector<storage::GpuStreamRow> streams_ = {{}};      // by id

  std::vector<storage::KernelNameRow> new_names_;
  std::vector<storage::KernelRow> new_kernels_;
  std::vector<storage::GpuStreamRow> new_streams_;
};

}  // namespace lull::collector
