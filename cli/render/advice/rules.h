// The rules, one function each. Those of the host speak where there is no GPU truth,
// those of the GPU where there is.
#pragma once

#include <vector>

#include "cli/render/advice/evidence.h"

namespace lull {

// host_rules.cc: from blocked and waited time alone.
void HostDataWaits(const Evidence& evidence, std::vector<Advice>& found);
void HostOldCollections(const Evidence& evidence, std::vector<Advice>& found);
void HostDeviceMemory(const Evidence& evidence, std::vector<Advice>& found);
void HostSyncs(const Evidence& evidence, std::vector<Advice>& found);

// idle_rules.cc: causes of idle time.
void IdleForData(const Evidence& evidence, std::vector<Advice>& found);
void IdleForGc(const Evidence& evidence, std::vector<Advice>& found);
void IdleForAllocator(const Evidence& evidence, std::vector<Advice>& found);
void IdleForProcessor(const Evidence& evidence, std::vector<Advice>& found);
void IdleForGil(const Evidence& evidence, std::vector<Advice>& found);
void IdleForHostWait(const Evidence& evidence, std::vector<Advice>& found);
void IdleForHostCode(const Evidence& evidence, std::vector<Advice>& found);

// device_rules.cc: how work gets to the device, and what it does there.
void LaunchBound(const Evidence& evidence, std::vector<Advice>& found);
void LaunchLatency(const Evidence& evidence, std::vector<Advice>& found);
void Dependencies(const Evidence& evidence, std::vector<Advice>& found);
void TensorCoresUnused(const Evidence& evidence, std::vector<Advice>& found);
void GradientsFilledWithZero(const Evidence& evidence, std::vector<Advice>& found);
void CommunicationNotHidden(const Evidence& evidence, std::vector<Advice>& found);

// memory_rules.cc: with GPU truth and without.
void FragmentedCache(const Evidence& evidence, std::vector<Advice>& found);
void GrowingMemory(const Evidence& evidence, std::vector<Advice>& found);

// sync_rules.cc: idle time that sync points caused.
void WastefulSyncs(const Evidence& evidence, std::vector<Advice>& found);

}  // namespace lull
