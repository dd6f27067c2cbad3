// The first message of a stream: who the job is, and how the hooks are called.
#pragma once

#include "ingest.pb.h"

namespace lull::relay {

inline constexpr uint32_t kProtocolVersion = 2;

lull::v1::Hello MakeHello(const lull::v1::JobInfo& job);

// Ids of hooks lie below; more than there are, so that none is missed.
inline constexpr uint16_t kHookIds = 1024;

// Whether Hello names the hook `id`.
bool HelloNames(uint16_t id);

}  // namespace lull::relay
