// Facts about a report as a whole.
#pragma once

#include <cstdint>

#include "query.pb.h"

namespace lull {

// Is there anything to say about the GPU at all?
bool HasGpuTruth(const v1::Gpu& gpu);

// The time of a job, or process, that the other times are a part of.
uint64_t RecordedNs(const v1::Job& job);
uint64_t RecordedNs(const v1::ProcessRow& process);
// And the steps in which hooks rested.
uint64_t WatchedNs(const v1::ProcessRow& process);

// Whether only some steps are recorded. A collector that is older says it of those
// alone that were to be.
bool AreStepsSampled(const v1::Job& job);

}  // namespace lull
