// The tables of GPU truth that are both an answer of their own and a part of a report.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "query.pb.h"

namespace lull {

// Where idle time comes from: one row per cause, most first.
std::string CausesTable(const v1::Gaps& reply, const v1::Gpu& gpu);

// For how much of the idle time a line is named that did the work; "" without idle
// time.
std::string ExplainedLine(const v1::Gpu& gpu);

// Between which lines: "train.py:41 → train.py:44", and under it what was to blame.
std::string GapsTable(const v1::Gaps& reply, const v1::Gpu& gpu, v1::GroupBy group_by);

// Whether something else is to blame than the code before what ended the gap.
bool HasCulprit(const v1::GapRow& gap);

// "cudaStreamSynchronize at train.py:42 step"; where nothing is to blame but the code
// itself, its lines.
std::string BlameOf(const v1::GapRow& gap, v1::GroupBy group_by);

// What tells kernels apart, in at most `width` bytes: "elementwise_kernel<4, Fill...".
std::string ShortKernel(absl::string_view name, size_t width);

std::string KernelsTable(const v1::Kernels& reply, v1::GroupBy group_by);
std::string CopiesTable(const v1::Kernels& reply);

// How many steps, and how they were found; the median step by parts; shares of the
// device.
std::string StepsHead(const v1::Steps& reply);
// What set-up consisted of, and what else was not a step; "" where that is not known.
std::string PhasePartsText(const v1::Steps& reply);
std::string StepsTable(const v1::Steps& reply);

}  // namespace lull
