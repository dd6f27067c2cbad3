// libcublasLt.so.12: a product described by descriptors. PyTorch uses it for linear
// layers with a bias, XLA for every product.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "tests/sim/cublas/api.h"

using namespace lull::sim;

namespace {

// The bytes of each attribute that was set.
using Attributes = std::unordered_map<int, std::vector<char>>;

// cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t.
struct Operation {
  Attributes attributes;
};
struct Layout {
  Attributes attributes;
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

// Of an operation.
constexpr int kComputeType = 0, kScaleType = 1, kTransposeA = 3, kTransposeB = 4;
// Of a layout.
constexpr int kType = 0, kRows = 2, kColumns = 3, kLeading = 4, kBatchCount = 5;
constexpr int kComputeFloatTf32 = 77;  // CUBLAS_COMPUTE_32F_FAST_TF32

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

template <typename Number>
void put(Attributes* attributes, int attribute, Number value) {
  std::vector<char>& bytes = (*attributes)[attribute];
  bytes.resize(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
}

template <typename Number>
Number number(const Attributes& attributes, int attribute, Number otherwise) {
  auto found = attributes.find(attribute);
  if (found == attributes.end() || found->second.size() < sizeof otherwise) {
    return otherwise;
  }
  std::memcpy(&otherwise, found->second.data(), sizeof otherwise);
  return otherwise;
}

int set(Attributes* attributes, int attribute, const void* buffer, size_t bytes) {
  if (buffer == nullptr) return kCublasInvalidValue;
  const char* from = static_cast<const char*>(buffer);
  (*attributes)[attribute].assign(from, from + bytes);
  return kCublasSuccess;
}

// What was never set is zero, which is the default of nearly all.
int get(const Attributes& attributes, int attribute, void* buffer, size_t bytes,
        size_t* written) {
  auto found = attributes.find(attribute);
  size_t size = found != attributes.end() ? found->second.size() : bytes;
  if (written != nullptr) *written = size;
  if (bytes == 0) return kCublasSuccess;
  if (buffer == nullptr) return kCublasInvalidValue;
  std::memset(buffer, 0, bytes);
  if (found == attributes.end()) return kCublasSuccess;
  std::memcpy(buffer, found->second.data(), std::min(size, bytes));
  return kCublasSuccess;
}

}  // namespace

SIM_EXPORT size_t cublasLtGetVersion() { return 120405; }

SIM_EXPORT int cublasLtCreate(void** handle) { return create(handle, CublasHandle{}); }
SIM_EXPORT int cublasLtDestroy(void* handle) { return destroy<CublasHandle>(handle); }

SIM_EXPORT int cublasLtMatmulDescCreate(void** out, int compute, int scale) {
  Operation operation;
  put(&operation.attributes, kComputeType, compute);
  put(&operation.attributes, kScaleType, scale);
  return create(out, std::move(operation));
}
SIM_EXPORT int cublasLtMatmulDescDestroy(void* operation) {
  return destroy<Operation>(operation);
}
SIM_EXPORT int cublasLtMatmulDescSetAttribute(void* opaque, int attribute,
                                              const void* buffer, size_t bytes) {
  return set(&static_cast<Operation*>(opaque)->attributes, attribute, buffer, bytes);
}
SIM_EXPORT int cublasLtMatmulDescGetAttribute(void* opaque, int attribute, void* buffer,
                                              size_t bytes, size_t* written) {
  return get(static_cast<Operation*>(opaque)->attributes, attribute, buffer, bytes,
             written);
}

SIM_EXPORT int cublasLtMatrixLayoutCreate(void** out, int type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  Layout layout;
  put(&layout.attributes, kType, type);
  put(&layout.attributes, kRows, rows);
  put(&layout.attributes, kColumns, columns);
  put(&layout.attributes, kLeading, leading);
  put(&layout.attributes, kBatchCount, int32_t{1});
  return create(out, std::move(layout));
}
SIM_EXPORT int cublasLtMatrixLayoutDestroy(void* layout) {
  return destroy<Layout>(layout);
}
SIM_EXPORT int cublasLtMatrixLayoutSetAttribute(void* layout, int attribute,
                                                const void* buffer, size_t bytes) {
  return set(&static_cast<Layout*>(layout)->attributes, attribute, buffer, bytes);
}
SIM_EXPORT int cublasLtMatrixLayoutGetAttribute(void* layout, int attribute,
                                                void* buffer, size_t bytes,
                                                size_t* written) {
  return get(static_cast<Layout*>(layout)->attributes, attribute, buffer, bytes,
             written);
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
  gemm.type = static_cast<DataType>(number(a->attributes, kType, 0));
  gemm.tf32 = number(operation->attributes, kComputeType, 0) == kComputeFloatTf32;
  gemm.transpose_a = number(operation->attributes, kTransposeA, 0);
  gemm.transpose_b = number(operation->attributes, kTransposeB, 0);
  gemm.m = number(d->attributes, kRows, int64_t{0});
  gemm.n = number(d->attributes, kColumns, int64_t{0});
  gemm.k = number(a->attributes, gemm.transpose_a != 0 ? kRows : kColumns, int64_t{0});
  gemm.batch = number(d->attributes, kBatchCount, int32_t{1});
  return launch_gemm(gemm, stream) ? kCublasSuccess : kCublasExecutionFailed;
}
