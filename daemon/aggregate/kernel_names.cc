#include "daemon/aggregate/kernel_names.h"

#include <algorithm>
#include <iterator>

namespace lull::aggregate {
namespace {

constexpr std::string_view kTensorCore[] = {
    // Volta to Ampere: shapes of the mma instructions, as cuBLAS, cuDNN and CUTLASS 2
    // put them into their names, and cuDNN's convolutions.
    "h884", "s884", "h1688", "s1688", "c1688", "hmma", "i8816", "16816", "tensorop",
    "dgrad_1x1_stride_2x2", "first_layer_wgrad_kernel", "conv1x1", "conv2d_c1_k1",
    "direct_group", "xmma_implicit_gemm", "xmma_sparse_conv",
    "xmma_warp_specialized_implicit_gemm", "xmma_gemm", "xmma_sparse_gemm",
    // Hopper: wgmma, cuBLAS's nvjet, CUTLASS 3.
    "wgmma", "nvjet_", "sm90_xmma", "cutlass3x_sm90", "Sm90TmaGmma", "TmaGmma",
    // Blackwell: tcgen05, also called UMMA.
    "tcgen05", "sm100_xmma", "cutlass3x_sm100", "cutlass3x_sm120", "TmaUmma",
    // Attention: FlashAttention 2 and 3, CUTLASS's in half precision.
    "flash_fwd", "flash_bwd", "FlashAttnFwdSm90", "FlashAttnBwdSm90",
    "fmha_cutlassF_f16", "fmha_cutlassF_bf16", "fmha_cutlassB_f16",
    "fmha_cutlassB_bf16"};

// The same families without tensor cores.
constexpr std::string_view kPlain[] = {"ffma", "simt", "flash_fwd_splitkv_combine",
                                       "flash_bwd_dot_do_o", "flash_bwd_convert"};

constexpr std::string_view kCommunication[] = {"ncclKernel", "ncclDevKernel",
                                               "nccl_symmetric", "ncclSymk"};

template <size_t N>
bool ContainsOneOf(std::string_view name, const std::string_view (&parts)[N]) {
  return std::any_of(std::begin(parts), std::end(parts), [&](std::string_view part) {
    return name.find(part) != std::string_view::npos;
  });
}

}  // namespace

bool IsTensorCoreKernel(std::string_view name) {
  return ContainsOneOf(name, kTensorCore) && !ContainsOneOf(name, kPlain);
}

bool IsCommunicationKernel(std::string_view name) {
  return ContainsOneOf(name, kCommunication);
}

}  // namespace lull::aggregate
