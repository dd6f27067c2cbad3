// Answers of a collector about one made-up job, for the golden files and for the
// fake collector: a two-rank training that waits for data, copies from pageable
// memory and collects garbage.
#pragma once

#include <string>

#include "query.pb.h"

namespace lull::testing {

inline constexpr char kJobId[] = "3f9a1c20d4e84b7aa1b2c3d4e5f60718";
inline constexpr char kJobName[] = "resnet";

v1::Job FixedJob();
v1::ListJobsReply FixedJobs();
v1::ReportReply FixedSyncs();
v1::ReportReply FixedAllocations();
v1::ReportReply FixedGc();
v1::ReportReply FixedWaits();
v1::ReportReply FixedMemory();
v1::ReportReply FixedHot();
v1::ReportReply FixedData();
v1::ReportReply FixedOperators();
v1::ReportReply FixedRanks();
v1::ReportReply FixedStacks();
v1::ReportReply FixedReport();

// The same job as seen by a run that traced the GPU: nine windows of each rank.
v1::Gpu FixedGpu();
v1::ReportReply FixedGaps();
v1::ReportReply FixedKernels();
v1::ReportReply FixedSteps();
v1::ReportReply FixedGpuSyncs();
v1::ReportReply FixedGpuReport();
// All sections, whatever was asked for.
v1::ReportReply FixedAnswer();

void SetSite(v1::Site* site, const std::string& file, int line,
             const std::string& function);
// What samples say of a row of idle time.
void AddDoing(v1::GapRow* gap);

// What a collector concludes from the sections: shares and advice. After a change of
// them.
void Conclude(v1::ReportReply* reply);

// Why a job has no GPU truth, as a collector says it.
inline constexpr char kMissing[] = "no CUPTI library was found";

}  // namespace lull::testing
