// Lines about GPU truth that the reports and the summary share: how much of the run it
// covers, how busy the GPU was there, why there is none, when lull stood aside.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "query.pb.h"

namespace lull {

// Busy part of traced time; nothing without GPU truth.
std::optional<double> UtilizationPercent(const v1::Gpu& gpu);

// Windows in which operations were recorded.
uint32_t ActiveWindows(const v1::Gpu& gpu);

// "GPU busy 41.3 % of traced time (5.08 s of 12.3 s; kernels 39.8 %): data-bound"
std::string BusyLine(const v1::Gpu& gpu);

// "GPU truth for 12.3 s of 96.0 s, in 9 windows between 3.10 s and 93.4 s"
std::string CoverageLine(const v1::Job& job, const v1::Gpu& gpu);

// "No GPU truth: CUPTI was not found; `lull doctor` says where it was looked for".
std::string MissingLine(const v1::Gpu& gpu);

// "Stood aside for another profiler for 2.10 s: from 10.2 s to 12.3 s"; "" if never.
std::string StoodAsideLine(const v1::Gpu& gpu);

// What is missing inside of traced time; "" if nothing.
std::string GpuLossesLine(const v1::Gpu& gpu);

// All of the above that apply, a line each: every report on GPU truth begins with them.
std::string GpuHead(const v1::Job& job, const v1::Gpu& gpu);

// "First nan read back at train.py:44 train_step: step 812, 61.2 s after the start"
std::string NonFiniteLine(const v1::NonFinite& first);

}  // namespace lull
