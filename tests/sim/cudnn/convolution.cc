#include "tests/sim/cudnn/convolution.h"

#include <cstdio>

#include "tests/sim/cublas/named_kernel.h"

namespace lull::sim {
namespace {

// Which attributes of an operation hold the filter, and the tensor on either side.
struct Convolution {
  const char* name;
  int filter, input, output;
};
constexpr Convolution kConvolutions[] = {
    {"fprop", kForwardW, kForwardX, kForwardY},
    {"dgrad", kDataW, kDataDx, kDataDy},
    {"wgrad", kFilterDw, kFilterX, kFilterDy},
};

// cudnnDataType_t.
struct Type {
  int type;
  const char* name;  // as the vendor's kernels spell inputs and sums
  int bytes;
  bool tensor;
};
constexpr Type kTypes[] = {
    {0, "tf32f32_tf32f32_f32", 4, true},
    {1, "f64f64_f64f64_f64", 8, false},
    {2, "f16f16_f16f32_f32", 2, true},
    {9, "bf16bf16_bf16f32_f32", 2, true},
};

const Type& type_of(const Bag& tensor) {
  int wanted = tensor.number(kTensorType, 0);
  for (const Type& type : kTypes) {
    if (type.type == wanted) return type;
  }
  return kTypes[0];
}

double volume(const Bag& tensor) {
  double product = 1;
  for (int64_t extent : tensor.integers(kTensorDimensions)) {
    product *= static_cast<double>(extent);
  }
  return product;
}

// Each element of the output is a sum over one filter.
double flops(const Bag& filter, const Bag& output) {
  auto extents = filter.integers(kTensorDimensions);
  double filters = extents.empty() ? 1 : static_cast<double>(extents[0]);
  return filters == 0 ? 0 : 2 * volume(output) * volume(filter) / filters;
}

bool launch_convolution(const Convolution& convolution, const Bag& operation,
                        void* stream) {
  const Bag* filter = operation.child(convolution.filter);
  const Bag* input = operation.child(convolution.input);
  const Bag* output = operation.child(convolution.output);
  if (filter == nullptr || input == nullptr || output == nullptr) return false;
  const Type& type = type_of(*input);
  char name[160];
  snprintf(name, sizeof name,
           "sm80_xmma_%s_implicit_gemm_%s_nchwkcrs_nchw_tilesize128x128x16_stage4_"
           "warpsize2x2x1_g1_tensor16x8x8_execute_kernel_cudnn",
           convolution.name, type.name);
  Work work;
  work.flops = flops(*filter, *output);
  work.bytes = type.bytes * (volume(*filter) + volume(*input) + volume(*output));
  work.tensor = type.tensor;
  work.blocks = volume(*output) / (128 * 128);
  return launch_named(name, stream, work);
}

}  // namespace

bool launch_operation(const Bag& operation, void* stream) {
  for (const Convolution& convolution : kConvolutions) {
    if (operation.child(convolution.filter) != nullptr) {
      return launch_convolution(convolution, operation, stream);
    }
  }
  return launch_named("cudnn_generic_engine_kernel", stream, Work{});
}

}  // namespace lull::sim
