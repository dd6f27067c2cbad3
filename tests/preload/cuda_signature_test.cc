// The hook list against the vendor's headers: every signature, and the layout of
// every struct that a wrapper looks into. All of it happens at compile time.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

#include "preload/abi/hook_list.h"
#include "preload/hooks/cuda_types.h"

// The list also has what the vendor advises against.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

extern "C" cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t,
                                          cudaStream_t);
// In CUDA 11 and 12 alone.
extern "C" cudaError_t cudaThreadSynchronize();
#undef cuGetProcAddress
extern "C" CUresult cuGetProcAddress(const char*, void**, int, cuuint64_t);
extern "C" CUresult cuGetProcAddress_v2(const char*, void**, int, cuuint64_t,
                                        CUdriverProcAddressQueryResult*);

namespace {

using namespace lull;  // NOLINT: the rows are written inside lull

// Two types travel alike: pointers and handles as pointers, enums as int, the
// same structs by value.
template <typename Ours, typename Theirs>
constexpr bool same_abi() {
  if constexpr (std::is_same_v<Theirs, dim3>) {
    return std::is_same_v<Ours, Dim3>;
  } else if constexpr (std::is_pointer_v<Ours> || std::is_pointer_v<Theirs>) {
    return std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>;
  } else {
    return sizeof(Ours) == sizeof(Theirs) &&
           (std::is_integral_v<Theirs> ||
            std::is_enum_v<Theirs>)&&std::is_integral_v<Ours>;
  }
}

template <typename Ours, typename Theirs>
struct Same : std::false_type {};
template <typename... Ours, typename Result, typename... Theirs>
requires(sizeof...(Ours) ==
         sizeof...(Theirs)) struct Same<int(Ours...), Result(Theirs...)>
    : std::bool_constant<(same_abi<Ours, Theirs>() && ...) && sizeof(Result) == 4> {
};

// The base row of a twin stands for both: the headers declare the per-thread
// variant only in place of it.
#undef LULL_TWIN
#define LULL_TWIN(X, id, family, need, suffix, name, parameters, arguments, event) \
  X(id, family, need, int, name, parameters, arguments, event)
#define LULL_ROW(id, family, need, result, name, parameters, arguments, event) \
  static_assert(Same<int parameters, decltype(::name)>::value, #name);
LULL_RUNTIME_HOOKS(LULL_ROW)
LULL_DRIVER_HOOKS(LULL_ROW)

static_assert(sizeof(Dim3) == sizeof(dim3));
static_assert(offsetof(LaunchConfig, stream) == offsetof(cudaLaunchConfig_t, stream));
static_assert(offsetof(DriverLaunchConfig, stream) ==
              offsetof(CUlaunchConfig, hStream));
static_assert(sizeof(ChannelFormat) == sizeof(cudaChannelFormatDesc));
static_assert(sizeof(Memcpy3DParms) == sizeof(cudaMemcpy3DParms));
static_assert(offsetof(Memcpy3DParms, src) == offsetof(cudaMemcpy3DParms, srcPtr));
static_assert(offsetof(Memcpy3DParms, dst) == offsetof(cudaMemcpy3DParms, dstPtr));
static_assert(offsetof(Memcpy3DParms, dst_array) ==
              offsetof(cudaMemcpy3DParms, dstArray));
static_assert(offsetof(Memcpy3DParms, extent) == offsetof(cudaMemcpy3DParms, extent));
static_assert(offsetof(Memcpy3DParms, kind) == offsetof(cudaMemcpy3DParms, kind));
static_assert(sizeof(DriverMemcpy2D) == sizeof(CUDA_MEMCPY2D));
static_assert(offsetof(DriverMemcpy2D, src_host) == offsetof(CUDA_MEMCPY2D, srcHost));
static_assert(offsetof(DriverMemcpy2D, dst_type) ==
              offsetof(CUDA_MEMCPY2D, dstMemoryType));
static_assert(offsetof(DriverMemcpy2D, dst_device) ==
              offsetof(CUDA_MEMCPY2D, dstDevice));
static_assert(offsetof(DriverMemcpy2D, width) == offsetof(CUDA_MEMCPY2D, WidthInBytes));
static_assert(sizeof(DriverMemcpy3D) == sizeof(CUDA_MEMCPY3D));
static_assert(offsetof(DriverMemcpy3D, src_type) ==
              offsetof(CUDA_MEMCPY3D, srcMemoryType));
static_assert(offsetof(DriverMemcpy3D, dst_type) ==
              offsetof(CUDA_MEMCPY3D, dstMemoryType));
static_assert(offsetof(DriverMemcpy3D, dst_device) ==
              offsetof(CUDA_MEMCPY3D, dstDevice));
static_assert(offsetof(DriverMemcpy3D, width) == offsetof(CUDA_MEMCPY3D, WidthInBytes));
static_assert(kCopyHostToHost == int{cudaMemcpyHostToHost} &&
              kCopyDeviceToHost == int{cudaMemcpyDeviceToHost} &&
              kCopyDefault == int{cudaMemcpyDefault});
static_assert(kDriverMemoryHost == int{CU_MEMORYTYPE_HOST} &&
              kDriverMemoryUnified == int{CU_MEMORYTYPE_UNIFIED});
static_assert(kRuntimeNotSupported == int{cudaErrorNotSupported} &&
              kDriverNotFound == int{CUDA_ERROR_NOT_FOUND});
static_assert(sizeof(cudaPointerAttributes) <= 256 &&
              CU_POINTER_ATTRIBUTE_MEMORY_TYPE == 2);

TEST(CudaSignatures, AgreeWithTheVendorsHeaders) {
  SUCCEED() << "checked by the compiler";
}

}  // namespace
