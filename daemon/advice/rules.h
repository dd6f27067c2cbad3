// The rules, one function each. Rules about the host apply where there is no GPU truth,
// rules about the GPU where there is.
#pragma once

#include "daemon/advice/evidence.h"

namespace lull {

// host_rules.cc: from blocked and waited time alone.
void HostDataWaits(const Evidence& evidence, Findings& found);
void HostOldCollections(const Evidence& evidence, Findings& found);
void HostDeviceMemory(const Evidence& evidence, Findings& found);
void HostSyncs(const Evidence& evidence, Findings& found);
// rank_rules.cc: whom other ranks wait for.
void LateRanks(const Evidence& evidence, Findings& found);

// idle_rules.cc: causes of idle time.
void IdleForData(const Evidence& evidence, Findings& found);
void IdleForGc(const Evidence& evidence, Findings& found);
void IdleForAllocator(const Evidence& evidence, Findings& found);
void IdleForLaunchCall(const Evidence& evidence, Findings& found);
void IdleForProcessor(const Evidence& evidence, Findings& found);
void IdleForGil(const Evidence& evidence, Findings& found);
void IdleForHostWait(const Evidence& evidence, Findings& found);
void IdleForHostCode(const Evidence& evidence, Findings& found);

// device_rules.cc: how work gets to the device, and what it does there.
void LaunchBound(const Evidence& evidence, Findings& found);
void LaunchLatency(const Evidence& evidence, Findings& found);
void Dependencies(const Evidence& evidence, Findings& found);
void TensorCoresUnused(const Evidence& evidence, Findings& found);
void GradientsFilledWithZero(const Evidence& evidence, Findings& found);
void CommunicationNotHidden(const Evidence& evidence, Findings& found);

// memory_rules.cc: with GPU truth and without.
void FragmentedCache(const Evidence& evidence, Findings& found);
void GrowingMemory(const Evidence& evidence, Findings& found);

// sync_rules.cc: idle time that sync points caused.
void WastefulSyncs(const Evidence& evidence, Findings& found);

}  // namespace lull
