// Products of matrices and vectors, in the forms that PyTorch calls. A handle's
// math mode 3 lets float products round to TF32.
#include "tests/sim/cublas/api.h"
#include "tests/sim/cublas/named_kernel.h"

using namespace lull::sim;

namespace {

constexpr int kTf32Math = 3;           // CUBLAS_TF32_TENSOR_OP_MATH
constexpr int kComputeFloatTf32 = 77;  // CUBLAS_COMPUTE_32F_FAST_TF32

int run(void* opaque, Gemm gemm, bool tf32 = false) {
  if (opaque == nullptr) return kCublasNotInitialized;
  auto* handle = static_cast<CublasHandle*>(opaque);
  if (gemm.m < 0 || gemm.n < 0 || gemm.k < 0 || gemm.batch < 0) {
    return kCublasInvalidValue;
  }
  gemm.tf32 = tf32 || handle->math_mode == kTf32Math;
  return launch_gemm(gemm, handle->stream) ? kCublasSuccess : kCublasExecutionFailed;
}

int dot(void* opaque, int64_t n) {
  if (opaque == nullptr) return kCublasNotInitialized;
  Work work;
  work.flops = 2.0 * static_cast<double>(n);
  work.bytes = 8.0 * static_cast<double>(n);
  bool ok =
      launch_named("dot_kernel", static_cast<CublasHandle*>(opaque)->stream, work);
  return ok ? kCublasSuccess : kCublasExecutionFailed;
}

}  // namespace

#define SIM_PRODUCTS(letter, kind)                                                     \
  SIM_EXPORT int cublas##letter##gemm_v2(void* handle, int ta, int tb, int m, int n,   \
                                         int k, const void*, const void*, int,         \
                                         const void*, int, const void*, void*, int) {  \
    return run(handle, {DataType::kind, false, ta, tb, m, n, k, 1});                   \
  }                                                                                    \
  SIM_EXPORT int cublas##letter##gemmStridedBatched(                                   \
      void* handle, int ta, int tb, int m, int n, int k, const void*, const void*,     \
      int, long long, const void*, int, long long, const void*, void*, int, long long, \
      int batch) {                                                                     \
    return run(handle, {DataType::kind, false, ta, tb, m, n, k, batch});               \
  }                                                                                    \
  SIM_EXPORT int cublas##letter##gemmBatched(                                          \
      void* handle, int ta, int tb, int m, int n, int k, const void*, const void*,     \
      int, const void*, int, const void*, void*, int, int batch) {                     \
    return run(handle, {DataType::kind, false, ta, tb, m, n, k, batch});               \
  }                                                                                    \
  SIM_EXPORT int cublas##letter##gemv_v2(void* handle, int trans, int m, int n,        \
                                         const void*, const void*, int, const void*,   \
                                         int, const void*, void*, int) {               \
    return run(handle, {DataType::kind, false, trans, 0, trans != 0 ? n : m, 1,        \
                        trans != 0 ? m : n, 1});                                       \
  }
SIM_PRODUCTS(S, kFloat)
SIM_PRODUCTS(D, kDouble)
SIM_PRODUCTS(C, kComplexFloat)
SIM_PRODUCTS(Z, kComplexDouble)
#undef SIM_PRODUCTS

SIM_EXPORT int cublasSgemmEx(void* handle, int ta, int tb, int m, int n, int k,
                             const void*, const void*, int type, int, const void*, int,
                             int, const void*, void*, int, int) {
  return run(handle, {static_cast<DataType>(type), false, ta, tb, m, n, k, 1});
}
SIM_EXPORT int cublasGemmEx(void* handle, int ta, int tb, int m, int n, int k,
                            const void*, const void*, int type, int, const void*, int,
                            int, const void*, void*, int, int, int compute, int) {
  return run(handle, {static_cast<DataType>(type), false, ta, tb, m, n, k, 1},
             compute == kComputeFloatTf32);
}
SIM_EXPORT int cublasGemmStridedBatchedEx(void* handle, int ta, int tb, int m, int n,
                                          int k, const void*, const void*, int type,
                                          int, long long, const void*, int, int,
                                          long long, const void*, void*, int, int,
                                          long long, int batch, int compute, int) {
  return run(handle, {static_cast<DataType>(type), false, ta, tb, m, n, k, batch},
             compute == kComputeFloatTf32);
}

SIM_EXPORT int cublasSdot_v2(void* handle, int n, const void*, int, const void*, int,
                             void*) {
  return dot(handle, n);
}
SIM_EXPORT int cublasDdot_v2(void* handle, int n, const void*, int, const void*, int,
                             void*) {
  return dot(handle, n);
}
SIM_EXPORT int cublasDotEx(void* handle, int n, const void*, int, int, const void*, int,
                           int, void*, int, int) {
  return dot(handle, n);
}
