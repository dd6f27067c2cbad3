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

}  // namespace lull
