#include "tests/sim/cupti/records.h"

namespace lull::sim::cupti {
namespace {

// API versions: 14 is CUDA 11.1, 15 11.2, 17 11.6, 18 11.8, 19 12.0, 20 12.2, 21 12.3,
// 22 12.4, 26 12.8; from 13.0 on the release itself.
constexpr uint32_t kCuda13 = 130000;

struct Layout {
  uint32_t kind;
  uint32_t since;  // API version
  size_t size;
};

// Of each kind the oldest first.
constexpr Layout kLayouts[] = {
    {kConcurrentKernel, 0, 144},
    {kConcurrentKernel, 13, 160},
    {kConcurrentKernel, 15, 168},
    {kConcurrentKernel, 17, 176},
    {kConcurrentKernel, 18, 200},
    {kConcurrentKernel, 19, 208},
    {kConcurrentKernel, kCuda13, 216},
    {kMemcpy, 0, 64},
    {kMemcpy, 13, 72},
    {kMemcpy, 14, 80},
    {kMemcpy, 17, 88},
    {kMemcpy, 26, 96},
    {kMemcpy2, 0, 72},
    {kMemcpy2, 13, 80},
    {kMemcpy2, 14, 88},
    {kMemcpy2, 17, 96},
    {kMemset, 0, 64},
    {kMemset, 13, 72},
    {kMemset, 14, 80},
    {kMemset, 17, 88},
    {kSynchronization, 0, 40},
    {kSynchronization, 26, 56},
    {kCudaEvent, 0, 24},
    {kCudaEvent, 26, 56},
    {kOverhead, 0, 40},
    {kOverhead, 20, 48},
    {kOverhead, 22, 56},
    {kGraphTrace, 0, 48},
    {kGraphTrace, 21, 56},
    {kContext, 0, 16},
    {kContext, 22, 24},
    {kContext, 26, 32},
    {kDevice, 0, 152},
    {kDevice, 17, 176},
    {kDevice, 23, 184},
    {kRuntime, 0, sizeof(ApiRecord)},
    {kDriver, 0, sizeof(ApiRecord)},
    {kExternalCorrelation, 0, sizeof(ExternalRecord)},
};

}  // namespace

size_t record_size(uint32_t kind, uint32_t version) {
  if (kind == kKernel) kind = kConcurrentKernel;
  size_t size = 0;
  for (const Layout& layout : kLayouts) {
    if (layout.kind == kind && layout.since <= version) size = layout.size;
  }
  return size;
}

}  // namespace lull::sim::cupti
