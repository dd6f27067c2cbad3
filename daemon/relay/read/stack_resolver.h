// From an interned stack in a segment to a StackDef with names and lines.
#pragma once

#include <optional>

#include "daemon/relay/read/python_codes.h"
#include "daemon/relay/read/segment_reader.h"
#include "daemon/relay/symbols/native_symbolizer.h"
#include "events.pb.h"

namespace lull::relay {

// nullopt: the reference, or a code object that it leads to, is not what the ABI
// says; the segment is corrupt. `symbolizer` may be null: native frames are then
// bare addresses. `codes` are those of the same segment.
std::optional<lull::v1::StackDef> ResolveStack(const SegmentReader& segment,
                                               abi::Ref ref,
                                               NativeSymbolizer* symbolizer,
                                               PythonCodes* codes);

}  // namespace lull::relay
