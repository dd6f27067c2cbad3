// libcublasLt.so.12: a product described by descriptors. PyTorch uses it for linear
// layers with a bias.
#include <cstddef>
#include <cstring>

#include "tests/sim/cublas/api.h"

using namespace lull::sim;

namespace {

// cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t.
struct Operation {
  int compute = 0;
  int transpose_a = 0, transpose_b = 0;
};
struct Layout {
  int type = 0;
  uint64_t rows = 0, columns = 0;
  int32_t batch = 1;
};
struct Preference {};

// cublasLtMatmulHeuristicResult_t.
struct HeuristicResult {
  uint64_t algorithm[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(HeuristicResult) == 96);

constexpr int kTransposeA = 3, kTransposeB = 4;  // of the operation
constexpr int kBatchCount = 5;                   // of a layout
constexpr int kComputeFloatTf32 = 77;            // CUBLAS_COMPUTE_32F_FAST_TF32

// Descriptors are made by Create, which PyTorch calls, into the pointer it gives.
template <typename Descriptor>
int create(void** out, Descriptor value) {
  if (out == nullptr) return kCublasInvalidValue;
  *out = new Descriptor(value);
  return kCublasSuccess;
}

template <typename Descriptor>
int destroy(void* descriptor) {
  delete static_cast<Descriptor*>(descriptor);
  return kCublasSuccess;
}

int read_int32(const void* buffer, size_t bytes, int32_t* out) {
  if (buffer == nullptr || bytes < sizeof *out) return kCublasInvalidValue;
  std::memcpy(out, buffer, sizeof *out);
  return kCublasSuccess;
}

}  // namespace

SIM_EXPORT size_t cublasLtGetVersion() { return 120405; }

SIM_EXPORT int cublasLtCreate(void** handle) { return create(handle, CublasHandle{}); }
SIM_EXPORT int cublasLtDestroy(void* handle) { return destroy<CublasHandle>(handle); }

SIM_EXPORT int cublasLtMatmulDescCreate(void** out, int compute, int) {
  return create(out, Operation{compute});
}
SIM_EXPORT int cublasLtMatmulDescDestroy(void* operation) {
  return destroy<Operation>(operation);
}
SIM_EXPORT int cublasLtMatmulDescSetAttribute(void* opaque, int attribute,
                                              const void* buffer, size_t bytes) {
  auto* operation = static_cast<Operation*>(opaque);
  if (attribute == kTransposeA) {
    return read_int32(buffer, bytes, &operation->transpose_a);
  }
  if (attribute == kTransposeB) {
    return read_int32(buffer, bytes, &operation->transpose_b);
  }
  return kCublasSuccess;
}

SIM_EXPORT int cublasLtMatrixLayoutCreate(void** out, int type, uint64_t rows,
                                          uint64_t columns, int64_t) {
  return create(out, Layout{type, rows, columns});
}
SIM_EXPORT int cublasLtMatrixLayoutDestroy(void* layout) {
  return destroy<Layout>(layout);
}
SIM_EXPORT int cublasLtMatrixLayoutSetAttribute(void* layout, int attribute,
                                                const void* buffer, size_t bytes) {
  if (attribute != kBatchCount) return kCublasSuccess;
  return read_int32(buffer, bytes, &static_cast<Layout*>(layout)->batch);
}

SIM_EXPORT int cublasLtMatmulPreferenceCreate(void** out) {
  return create(out, Preference{});
}
SIM_EXPORT int cublasLtMatmulPreferenceDestroy(void* preference) {
  return destroy<Preference>(preference);
}
SIM_EXPORT int cublasLtMatmulPreferenceSetAttribute(void*, int, const void*, size_t) {
  return kCublasSuccess;
}

SIM_EXPORT int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*,
                                              void*, int requested,
                                              HeuristicResult* results, int* count) {
  if (requested < 1 || results == nullptr || count == nullptr) {
    return kCublasInvalidValue;
  }
  results[0] = {};
  results[0].waves = 1;
  *count = 1;
  return kCublasSuccess;
}

SIM_EXPORT int cublasLtMatmul(void*, void* opaque, const void*, const void*,
                              void* a_layout, const void*, void*, const void*,
                              const void*, void*, void*, void* d_layout, const void*,
                              void*, size_t, void* stream) {
  const auto* operation = static_cast<Operation*>(opaque);
  const auto* a = static_cast<Layout*>(a_layout);
  const auto* d = static_cast<Layout*>(d_layout);
  if (operation == nullptr || a == nullptr || d == nullptr) return kCublasInvalidValue;
  Gemm gemm;
  gemm.type = static_cast<DataType>(a->type);
  gemm.tf32 = operation->compute == kComputeFloatTf32;
  gemm.transpose_a = operation->transpose_a;
  gemm.transpose_b = operation->transpose_b;
  gemm.m = static_cast<int64_t>(d->rows);
  gemm.n = static_cast<int64_t>(d->columns);
  gemm.k = static_cast<int64_t>(operation->transpose_a != 0 ? a->rows : a->columns);
  gemm.batch = d->batch;
  return launch_gemm(gemm, stream) ? kCublasSuccess : kCublasExecutionFailed;
}
