#include "daemon/query/names.h"

#include <algorithm>
#include <utility>

#include "daemon/aggregate/backward_stack.h"
#include "daemon/aggregate/operator_name.h"

namespace lull::query {

Names::Names(storage::StoreReader& reader, int64_t job) : reader_(reader), job_(job) {
  auto apis = reader_.catalogue().All<storage::ApiRow>(job_);
  status_ = apis.status();
  if (!apis.ok()) return;
  for (storage::ApiRow& api : *apis) apis_[api.id] = std::move(api.name);
}

const std::string& Names::Api(uint32_t id) { return apis_[id]; }

void Names::LoadKernels() {
  if (std::exchange(kernels_loaded_, true)) return;
  auto kernels = reader_.catalogue().All<storage::KernelRow>(job_);
  auto names = reader_.catalogue().All<storage::KernelNameRow>(job_);
  status_.Update(kernels.status());
  status_.Update(names.status());
  if (!kernels.ok() || !names.ok()) return;
  for (const storage::KernelRow& row : *kernels) kernels_[row.id] = row;
  for (storage::KernelNameRow& row : *names) {
    kernel_names_[row.id] = std::move(row.name);
  }
}

const storage::KernelRow& Names::Kernel(uint32_t id) {
  LoadKernels();
  return kernels_[id];
}

const std::string& Names::KernelName(uint32_t name) {
  LoadKernels();
  return kernel_names_[name];
}

std::string Names::OperatorName(uint32_t native_stack) {
  if (native_stack == 0) return "";
  std::vector<const aggregate::Frame*> frames;
  for (const aggregate::Frame& frame : Stack(native_stack)) frames.push_back(&frame);
  return aggregate::OperatorName(frames);
}

const Operators& Names::OperatorsOf(uint32_t python_stack, uint32_t native_stack) {
  auto [it, fresh] =
      operators_.try_emplace(uint64_t{python_stack} << 32 | native_stack);
  Operators& operators = it->second;
  if (!fresh) return operators;
  // Both before a pointer into either: a look-up may move the other.
  if (python_stack != 0) Stack(python_stack);
  if (native_stack != 0) Stack(native_stack);
  std::vector<const aggregate::Frame*> python, native;
  if (python_stack != 0) {
    for (const aggregate::Frame& frame : Stack(python_stack)) python.push_back(&frame);
  }
  if (native_stack != 0) {
    for (const aggregate::Frame& frame : Stack(native_stack)) native.push_back(&frame);
  }
  operators.names = aggregate::OperatorsOf(native);
  operators.has_innermost = !operators.names.empty();
  operators.pass = aggregate::PassOf(python, native);
  // Without native frames a node is known by what stands for the Python ones.
  auto backward = aggregate::AsBackward(python, native);
  if (operators.names.empty() && backward && backward->node != kUnknownNode) {
    operators.names.push_back(backward->node);
  }
  return operators;
}

std::vector<std::string> Names::ScopePath(uint32_t stack) {
  std::vector<std::string> path;
  for (const aggregate::Frame& frame : Stack(stack)) path.push_back(frame.function);
  std::reverse(path.begin(), path.end());
  return path;
}

void Names::FillSite(uint32_t id, lull::v1::Site* site) {
  if (id == 0) return;
  auto [it, fresh] = sites_.try_emplace(id);
  if (fresh) {
    auto row = reader_.catalogue().Find<storage::SiteRow>(job_, id);
    if (row.ok()) {
      it->second = *std::move(row);
    } else {
      status_.Update(row.status());
    }
  }
  site->set_file(it->second.file);
  site->set_line(it->second.line);
  site->set_function(it->second.function);
  // Copied: a look-up of another site may move this one. Neither of the two has any.
  const uint32_t backward_of = it->second.backward_of, forward = it->second.forward;
  if (backward_of != 0 && backward_of < id) {
    FillSite(backward_of, site->mutable_backward_of());
  }
  if (forward != 0 && forward < id) FillSite(forward, site->mutable_forward_site());
}

const std::vector<aggregate::Frame>& Names::Stack(uint32_t id) {
  auto [it, fresh] = stacks_.try_emplace(id);
  if (fresh) {
    auto stack = reader_.catalogue().StackFrames(job_, id);
    if (stack.ok()) {
      it->second = *std::move(stack);
    } else {
      status_.Update(stack.status());
    }
  }
  return it->second;
}

void Names::FillStack(uint32_t id,
                      google::protobuf::RepeatedPtrField<lull::v1::Frame>* frames) {
  if (id == 0) return;
  for (const aggregate::Frame& frame : Stack(id)) {
    lull::v1::Frame* out = frames->Add();
    out->set_function(frame.function);
    out->set_file(frame.file);
    out->set_line(frame.line);
    out->set_module(frame.module);
  }
}

}  // namespace lull::query
