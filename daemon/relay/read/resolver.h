// From interned stacks, kernels, streams, devices and names of calls in a segment to
// what the wire says of them.
#pragma once

#include <cstdint>
#include <optional>

#include "daemon/relay/read/python_codes.h"
#include "daemon/relay/read/segment_reader.h"
#include "events.pb.h"
#include "ingest.pb.h"

namespace lull::relay {

// Of all of these. nullopt: the reference, or one that it leads to, is not what the ABI
// says; the segment is corrupt.
//
// With names and lines, but of native code the return addresses alone. `codes` are
// those of the same segment.
std::optional<v1::StackDef> ResolveStack(const SegmentReader& segment, abi::Ref ref,
                                         PythonCodes* codes);

// A name for which the arena had no room is "".
std::optional<v1::KernelDef> ResolveKernel(const SegmentReader& segment, abi::Ref ref);
std::optional<v1::GpuStreamDef> ResolveGpuStream(const SegmentReader& segment,
                                                 abi::Ref ref);
std::optional<v1::GpuDeviceDef> ResolveGpuDevice(const SegmentReader& segment,
                                                 abi::Ref ref);
// `text`: the name of the runtime or driver call that is known as `api`.
std::optional<v1::ApiName> ResolveCall(const SegmentReader& segment, abi::Ref text,
                                       uint32_t api);

}  // namespace lull::relay
