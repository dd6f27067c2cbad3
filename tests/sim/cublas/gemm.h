// A matrix product: what it costs, and the name of the kernel that does it.
#pragma once

#include <cstdint>

namespace lull::sim {

// cudaDataType_t, those that have kernels of their own.
enum class DataType : int {
  kFloat = 0,
  kDouble = 1,
  kHalf = 2,
  kComplexFloat = 4,
  kComplexDouble = 5,
  kBfloat16 = 14,
};

struct Gemm {
  DataType type = DataType::kFloat;
  bool tf32 = false;
  int transpose_a = 0, transpose_b = 0;  // cublasOperation_t: 0 is "as it is"
  int64_t m = 0, n = 0, k = 0;
  int64_t batch = 1;
};

// Launches it on `stream`; false if the device refuses.
bool launch_gemm(const Gemm& gemm, void* stream);

}  // namespace lull::sim
