// The parts of GPU truth that stand both in an answer of their own and in a report.
#pragma once

#include "cli/render/json.h"
#include "query.pb.h"

namespace lull {

// "windows" counts the spans in which operations were recorded; all times but
// "traced_ms" are null where there is no GPU truth, and "missing" says why.
Json GpuJson(const v1::Gpu& gpu);
Json CausesJson(const v1::Gaps& reply, const v1::Gpu& gpu);
Json GapRowsJson(const v1::Gaps& reply, const v1::Gpu& gpu, const v1::Job& job);
Json KernelRowsJson(const v1::Kernels& reply);
Json CopyRowsJson(const v1::Kernels& reply);
Json StepRowsJson(const v1::Steps& reply);
// Everything else of the answer on steps: source, count, median, shares.
Json StepTotalsJson(const v1::Steps& reply);
Json NonFiniteJson(const v1::ReportReply& reply);
Json DevicesJson(const v1::ReportReply& reply);

// Schemas of what these print.
namespace schema {

Json CauseRows();
Json GapRows();
Json KernelRows();
Json CopyRows();
Json StepRows();
Json StepTotals();  // properties
Json Devices();

}  // namespace schema
}  // namespace lull
