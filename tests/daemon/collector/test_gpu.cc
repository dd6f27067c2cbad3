#include "tests/daemon/collector/test_gpu.h"

namespace lull::test {

const char* KernelName(uint32_t ref) {
  constexpr const char* kNames[] = {
      "elementwise",        "ampere_h16816gemm_x", "reduce", "ncclDevKernel_AllReduce",
      "softmax_many_sizes", "softmax_many_sizes"};
  return kNames[ref - 1];
}

void AddGpu(lull::v1::Batch& batch, uint64_t process_key) {
  lull::v1::ApiName* api = batch.add_apis();
  api->set_id(kApiCudaLaunch);
  api->set_name("cudaLaunchKernel_v7000");
  api->set_family("cupti");
  lull::v1::Batch::Gpu* gpu = batch.add_gpus();
  gpu->set_process_key(process_key);
  for (uint32_t ref = 1; ref <= kKernelRefs; ++ref) {
    lull::v1::KernelDef* kernel = gpu->add_kernels();
    kernel->set_ref(ref);
    kernel->set_name(KernelName(ref));
    kernel->set_grid_x(100 * ref);
    kernel->set_grid_y(1);
    kernel->set_grid_z(1);
    kernel->set_block_x(256);
    kernel->set_block_y(1);
    kernel->set_block_z(1);
    kernel->set_registers_per_thread(32);
  }
  for (uint32_t ref = 1; ref <= kStreamRefs; ++ref) {
    lull::v1::GpuStreamDef* stream = gpu->add_streams();
    stream->set_ref(ref);
    stream->set_context(1);
    stream->set_stream(6 + ref);
  }
  lull::v1::GpuDeviceDef* device = gpu->add_devices();
  device->set_ref(1);
  device->set_name("Simulated A100");
  device->set_multiprocessors(108);
  device->set_max_threads_per_multiprocessor(2048);
  device->set_max_blocks_per_multiprocessor(32);
  device->set_max_registers_per_multiprocessor(65536);
  device->set_max_shared_bytes_per_multiprocessor(167936);
  device->set_warp_size(32);
  device->set_compute_capability(80);
}

}  // namespace lull::test
