#include "tests/sim/cudnn/tensor.h"

#include <algorithm>

#include "tests/sim/cudnn/api.h"

using namespace lull::sim;

namespace {

Tensor* as_tensor(void* tensor) { return static_cast<Tensor*>(tensor); }

int create(void** out) {
  if (out == nullptr) return kCudnnBadParam;
  *out = new Tensor;
  return kCudnnSuccess;
}

int destroy(void* tensor) {
  delete as_tensor(tensor);
  return kCudnnSuccess;
}

void copy_out(const std::vector<int>& from, int requested, int* out) {
  auto count = std::min(from.size(), static_cast<size_t>(std::max(requested, 0)));
  if (out != nullptr) std::copy_n(from.begin(), count, out);
}

}  // namespace

namespace lull::sim {

double Tensor::bytes() const {
  double size = type == 1 ? 8 : type == 0 ? 4 : 2;
  for (int extent : extents) size *= extent;
  return size;
}

}  // namespace lull::sim

SIM_EXPORT int cudnnCreateTensorDescriptor(void** out) { return create(out); }
SIM_EXPORT int cudnnDestroyTensorDescriptor(void* tensor) { return destroy(tensor); }
SIM_EXPORT int cudnnCreateFilterDescriptor(void** out) { return create(out); }
SIM_EXPORT int cudnnDestroyFilterDescriptor(void* filter) { return destroy(filter); }

SIM_EXPORT int cudnnSetTensorNdDescriptor(void* tensor, int type, int rank,
                                          const int* extents, const int* strides) {
  if (tensor == nullptr || rank < 0) return kCudnnBadParam;
  *as_tensor(tensor) = {type, 0, {extents, extents + rank}, {strides, strides + rank}};
  return kCudnnSuccess;
}
SIM_EXPORT int cudnnGetTensorNdDescriptor(void* tensor, int requested, int* type,
                                          int* rank, int* extents, int* strides) {
  if (tensor == nullptr) return kCudnnBadParam;
  *type = as_tensor(tensor)->type;
  *rank = static_cast<int>(as_tensor(tensor)->extents.size());
  copy_out(as_tensor(tensor)->extents, requested, extents);
  copy_out(as_tensor(tensor)->strides, requested, strides);
  return kCudnnSuccess;
}
SIM_EXPORT int cudnnSetFilterNdDescriptor(void* filter, int type, int format, int rank,
                                          const int* extents) {
  if (filter == nullptr || rank < 0) return kCudnnBadParam;
  *as_tensor(filter) = {type, format, {extents, extents + rank}, {}};
  return kCudnnSuccess;
}
SIM_EXPORT int cudnnGetFilterNdDescriptor(void* filter, int requested, int* type,
                                          int* format, int* rank, int* extents) {
  if (filter == nullptr) return kCudnnBadParam;
  *type = as_tensor(filter)->type;
  *format = as_tensor(filter)->format;
  *rank = static_cast<int>(as_tensor(filter)->extents.size());
  copy_out(as_tensor(filter)->extents, requested, extents);
  return kCudnnSuccess;
}
