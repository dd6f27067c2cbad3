// Batch normalisation: bound by memory, one kernel a call.
#include "tests/sim/cublas/named_kernel.h"
#include "tests/sim/cudnn/api.h"
#include "tests/sim/cudnn/tensor.h"

using namespace lull::sim;

namespace {

// `passes`: how often the tensor is read or written.
int launch(void* handle, const char* name, const void* tensor, int passes) {
  if (handle == nullptr || tensor == nullptr) return kCudnnBadParam;
  Work work;
  work.bytes = passes * static_cast<const Tensor*>(tensor)->bytes();
  bool ok = launch_named(name, static_cast<CudnnHandle*>(handle)->stream, work);
  return ok ? kCudnnSuccess : kCudnnExecutionFailed;
}

int no_bytes(size_t* bytes) {
  if (bytes == nullptr) return kCudnnBadParam;
  *bytes = 0;
  return kCudnnSuccess;
}

}  // namespace

SIM_EXPORT int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    void*, int, int, void*, void*, void*, void*, void*, size_t* bytes) {
  return no_bytes(bytes);
}
SIM_EXPORT int cudnnGetBatchNormalizationBackwardExWorkspaceSize(void*, int, int, void*,
                                                                 void*, void*, void*,
                                                                 void*, void*, void*,
                                                                 size_t* bytes) {
  return no_bytes(bytes);
}
SIM_EXPORT int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(void*, int, int,
                                                                    void*, void*,
                                                                    size_t* bytes) {
  return no_bytes(bytes);
}

SIM_EXPORT int cudnnBatchNormalizationForwardTrainingEx(
    void* handle, int, int, const void*, const void*, void* x, const void*, void*,
    const void*, void*, void*, void*, const void*, const void*, double, void*, void*,
    double, void*, void*, void*, void*, size_t, void*, size_t) {
  return launch(handle, "bn_fw_tr_1C11_kernel_NCHW", x, 3);
}
SIM_EXPORT int cudnnBatchNormalizationForwardInference(
    void* handle, int, const void*, const void*, void* x, const void*, void*, void*,
    void*, const void*, const void*, const void*, const void*, double) {
  return launch(handle, "bn_fw_inf_1C11_kernel_NCHW", x, 2);
}
SIM_EXPORT int cudnnBatchNormalizationBackwardEx(
    void* handle, int, int, const void*, const void*, const void*, const void*, void* x,
    const void*, void*, const void*, void*, const void*, void*, void*, void*, void*,
    void*, const void*, const void*, void*, void*, double, const void*, const void*,
    void*, void*, size_t, void*, size_t) {
  return launch(handle, "bn_bw_1C11_kernel_new", x, 5);
}
