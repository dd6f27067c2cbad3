// The screen of `lull top`, as lines. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/top/state.h"
#include "query.pb.h"

namespace lull {

enum class TopStyle { kPlain, kTitle, kHeading, kChosen, kDim, kWarning };

struct TopLine {
  std::string text;  // may be longer than the screen is wide: it is cut there
  TopStyle style = TopStyle::kPlain;
};

// So many lines, the last one with the keys; help may have fewer. Few of them are
// longer than `columns`. `age_ns`: how long ago the answer came.
std::vector<TopLine> TopScreen(const v1::ReportReply& reply, const TopState& state,
                               size_t rows, size_t columns, uint64_t age_ns);

}  // namespace lull
