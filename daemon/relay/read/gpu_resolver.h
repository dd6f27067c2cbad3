// From interned kernels, streams, devices and names of calls in a segment to what
// the wire says of them.
#pragma once

#include <cstdint>
#include <optional>

#include "daemon/relay/read/segment_reader.h"
#include "events.pb.h"
#include "ingest.pb.h"

namespace lull::relay {

// nullopt: the reference, or one that it leads to, is not what the ABI says; the
// segment is corrupt. A name for which the arena had no room is "".
std::optional<lull::v1::KernelDef> ResolveKernel(const SegmentReader& segment,
                                                 abi::Ref ref);
std::optional<lull::v1::GpuStreamDef> ResolveGpuStream(const SegmentReader& segment,
                                                       abi::Ref ref);
std::optional<lull::v1::GpuDeviceDef> ResolveGpuDevice(const SegmentReader& segment,
                                                       abi::Ref ref);
// `text`: the name of the runtime or driver call that is known as `api`.
std::optional<lull::v1::ApiName> ResolveCall(const SegmentReader& segment,
                                             abi::Ref text, uint32_t api);

}  // namespace lull::relay
