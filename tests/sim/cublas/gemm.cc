#include "tests/sim/cublas/gemm.h"

#include <cstdio>

#include "tests/sim/cublas/named_kernel.h"

namespace lull::sim {
namespace {

constexpr int64_t kTile = 128;

struct Kind {
  DataType type;
  const char* kernel;  // in the vendor's style, so that tools know it by its name
  int bytes;
  int flops;  // of one multiply and add
  bool tensor;
};
constexpr Kind kKinds[] = {
    {DataType::kFloat, "ampere_sgemm_128x128", 4, 2, false},
    {DataType::kDouble, "ampere_dgemm_128x128", 8, 4, false},
    {DataType::kHalf, "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5", 2, 2,
     true},
    {DataType::kBfloat16, "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5", 2,
     2, true},
    {DataType::kComplexFloat, "ampere_cgemm_128x128", 8, 8, false},
    {DataType::kComplexDouble, "ampere_zgemm_128x128", 16, 16, false},
};
constexpr Kind kTf32 = {DataType::kFloat, "ampere_sgemm_tf32_s1688gemm_128x128", 4, 2,
                        true};

const Kind& kind_of(const Gemm& gemm) {
  if (gemm.type == DataType::kFloat && gemm.tf32) return kTf32;
  for (const Kind& kind : kKinds) {
    if (kind.type == gemm.type) return kind;
  }
  return kKinds[0];
}

double tiles(int64_t extent) {
  return static_cast<double>((extent + kTile - 1) / kTile);
}

}  // namespace

bool launch_gemm(const Gemm& gemm, void* stream) {
  const Kind& kind = kind_of(gemm);
  auto m = static_cast<double>(gemm.m), n = static_cast<double>(gemm.n);
  auto k = static_cast<double>(gemm.k), batch = static_cast<double>(gemm.batch);
  if (gemm.m == 0 || gemm.n == 0 || gemm.batch == 0) return true;
  char name[128];
  snprintf(name, sizeof name, "%s_%c%c", kind.kernel, gemm.transpose_a != 0 ? 't' : 'n',
           gemm.transpose_b != 0 ? 't' : 'n');
  Work work;
  work.flops = kind.flops * m * n * k * batch;
  work.bytes = kind.bytes * (m * k + k * n + m * n) * batch;
  work.tensor = kind.tensor;
  work.blocks = tiles(gemm.m) * tiles(gemm.n) * batch;
  return launch_named(name, stream, work);
}

}  // namespace lull::sim
