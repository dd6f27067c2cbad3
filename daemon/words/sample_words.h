// What samples say, in words that answers and the advice share.
#pragma once

#include <string>

#include "query.pb.h"

namespace lull {

// "loader", "data_set"; "other" for one that is not known.
std::string RoleKey(v1::HostSampleRole role);
std::string LoaderPartKey(v1::LoaderPart part);

const char* LoaderPartWords(v1::LoaderPart part);  // "data set and transforms"
// Batches of the loaders to which the line belongs.
uint64_t BatchesOf(const v1::LoaderLine& line, const v1::DataLoading& data);

std::string PhasePartWords(v1::PhasePartKind kind);  // "model to a device"

// "62 % ± 4": the share and half of its 95 % interval, in percent.
std::string FormatSampled(const v1::SampledShare& share);

// "62 % ± 4 in dataset.py:44 __getitem__ → PIL/Image.py:2365 resize"; where there are
// too few samples for shares "12 samples in dataset.py:44 __getitem__".
std::string DoingWords(const v1::DoingLine& line);

// Whether a line is worth a word beside the first one of its row.
bool Matters(const v1::DoingLine& line);

}  // namespace lull
