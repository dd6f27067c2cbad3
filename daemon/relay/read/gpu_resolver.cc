#include <algorithm>
#include <string>

#include "daemon/base/text.h"
#include "daemon/relay/read/resolver.h"
#include "daemon/relay/symbols/elf_module.h"

namespace lull::relay {
namespace {

std::optional<std::string> Name(const SegmentReader& segment, abi::Ref ref) {
  return ref == 0 ? std::string() : segment.Text(ref);
}

}  // namespace

std::optional<lull::v1::KernelDef> ResolveKernel(const SegmentReader& segment,
                                                 abi::Ref ref) {
  std::optional<abi::KernelEntry> kernel = segment.Kernel(ref);
  if (!kernel) return std::nullopt;
  std::optional<std::string> name = Name(segment, kernel->name);
  if (!name) return std::nullopt;
  lull::v1::KernelDef definition;
  definition.set_ref(ref);
  definition.set_name(CleanText(Demangle(name->c_str())));
  definition.set_grid_x(kernel->grid[0]);
  definition.set_grid_y(kernel->grid[1]);
  definition.set_grid_z(kernel->grid[2]);
  definition.set_block_x(kernel->block[0]);
  definition.set_block_y(kernel->block[1]);
  definition.set_block_z(kernel->block[2]);
  definition.set_registers_per_thread(kernel->registers_per_thread);
  definition.set_static_shared_bytes(kernel->static_shared_bytes);
  definition.set_dynamic_shared_bytes(kernel->dynamic_shared_bytes);
  return definition;
}

std::optional<lull::v1::GpuStreamDef> ResolveGpuStream(const SegmentReader& segment,
                                                       abi::Ref ref) {
  std::optional<abi::GpuStreamEntry> stream = segment.GpuStream(ref);
  if (!stream || stream->device >= kMaxWireDevices) return std::nullopt;
  lull::v1::GpuStreamDef definition;
  definition.set_ref(ref);
  definition.set_device(stream->device);
  definition.set_context(stream->context);
  definition.set_stream(stream->stream);
  return definition;
}

std::optional<lull::v1::GpuDeviceDef> ResolveGpuDevice(const SegmentReader& segment,
                                                       abi::Ref ref) {
  std::optional<abi::GpuDeviceEntry> device = segment.GpuDevice(ref);
  if (!device || device->device >= kMaxWireDevices) return std::nullopt;
  std::optional<std::string> name = Name(segment, device->name);
  if (!name) return std::nullopt;
  lull::v1::GpuDeviceDef definition;
  definition.set_ref(ref);
  definition.set_device(device->device);
  definition.set_name(CleanText(*name));
  definition.set_multiprocessors(device->multiprocessors);
  definition.set_max_threads_per_multiprocessor(device->max_threads_per_multiprocessor);
  definition.set_max_blocks_per_multiprocessor(device->max_blocks_per_multiprocessor);
  definition.set_max_registers_per_multiprocessor(
      device->max_registers_per_multiprocessor);
  definition.set_max_shared_bytes_per_multiprocessor(
      device->max_shared_bytes_per_multiprocessor);
  definition.set_warp_size(device->warp_size);
  definition.set_compute_capability(device->compute_capability);
  definition.set_total_bytes(std::min(device->total_bytes, kMaxWireTotal));
  return definition;
}

std::optional<lull::v1::ApiName> ResolveCall(const SegmentReader& segment,
                                             abi::Ref text, uint32_t api) {
  std::optional<std::string> name = segment.Text(text);
  if (!name) return std::nullopt;
  lull::v1::ApiName definition;
  definition.set_id(api);
  definition.set_name(CleanText(*name));
  definition.set_family("call");
  return definition;
}

}  // namespace lull::relay
