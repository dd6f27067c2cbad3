// Which native frames are the user's, and which come from a library's headers or from
// the compiler.
#pragma once

#include <string_view>
#include <vector>

#include "daemon/aggregate/site.h"

namespace lull::aggregate {

// The CUDA runtime and driver, PyTorch, the C and C++ libraries, the loader and
// lull's own shim.
bool IsNativeInfrastructure(std::string_view module);

// Headers of the CUDA toolkit, of the compiler and its standard library, of the system
// and of PyTorch: code of theirs that lives in the user's program, inlined or not.
bool IsLibraryHeader(std::string_view file);

// "void ns::fill" of "void ns::fill<float>(float*, float, int)".
std::string_view QualifiedName(const Frame& frame);

// The innermost frame of a stack that somebody wrote: outside of infrastructure and of
// library headers, and not one of those that nvcc puts between `kernel<<<...>>>()` and
// the runtime:
//
//   __cudaLaunchKernel_helper      crt/device_functions.h:2963   (nvcc 13)
//   __device_stub__Z4axpyfPfS_i    tmpxft_..._train.cudafe1.stub.c:14
//   __wrapper__device_stub_fill    the same file; of templates alone
//   axpy                           train.cu:8: where the kernel is defined
//   step                           train.cu:19: the launch
//
// nullptr if there is none.
const Frame* FirstWritten(const std::vector<const Frame*>& native);

}  // namespace lull::aggregate
