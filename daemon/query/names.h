// Names of APIs, kernels, sites and stacks of one job, looked up when a row needs them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "absl/status/status.h"
#include "daemon/aggregate/operator_pass.h"
#include "daemon/storage/store.h"
#include "query.pb.h"

namespace lull::query {

// Names, innermost first: operators of one name are one row.
struct Operators {
  std::vector<std::string> names;  // empty: not known
  bool has_innermost = false;      // else a node, and not which operator of it
  aggregate::OperatorPass pass = aggregate::OperatorPass::kUnknown;
};

// Keeps what it has looked up. The first error stays; names are empty from then on.
class Names {
 public:
  Names(storage::StoreReader& reader, int64_t job);

  const std::string& Api(uint32_t id);
  // A kernel with its launch shape, and its name; empty for an unknown id.
  const storage::KernelRow& Kernel(uint32_t id);
  const std::string& KernelName(uint32_t name);
  std::string OperatorName(uint32_t native_stack);
  const Operators& OperatorsOf(uint32_t python_stack, uint32_t native_stack);
  // Names of a scope and those around it, the outermost first.
  std::vector<std::string> ScopePath(uint32_t stack);
  void FillSite(uint32_t id, lull::v1::Site* site);
  void FillStack(uint32_t id,
                 google::protobuf::RepeatedPtrField<lull::v1::Frame>* frames);

  const absl::Status& status() const { return status_; }

 private:
  void LoadKernels();
  const std::vector<aggregate::Frame>& Stack(uint32_t id);

  storage::StoreReader& reader_;
  const int64_t job_;
  absl::Status status_;
  absl::flat_hash_map<uint32_t, std::string> apis_;
  bool kernels_loaded_ = false;
  absl::flat_hash_map<uint32_t, storage::KernelRow> kernels_;
  absl::flat_hash_map<uint32_t, std::string> kernel_names_;
  absl::flat_hash_map<uint32_t, storage::SiteRow> sites_;
  absl::flat_hash_map<uint32_t, std::vector<aggregate::Frame>> stacks_;
  absl::node_hash_map<uint64_t, Operators> operators_;  // by both stacks
};

}  // namespace lull::query
