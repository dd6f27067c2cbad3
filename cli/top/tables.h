// The tables of `lull top`, narrow enough for 80 columns. Each is lines of text, the
// title first. They tell what the collector's answers say, and have no numbers of their
// own.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/top/state.h"
#include "query.pb.h"

namespace lull {

// What `lull top` asks for, all of one moment: the overview, and as its details host
// samples by line and the timeline.
v1::ReportRequest TopRequest(const std::string& job);

// A row for each process that works for the GPU, or of all, if none does: rank, time of
// a step, how busy its GPU was, what the host waited for, memory, and how busy the GPU
// was over time. Without the peak of memory, or both its numbers, where a
// line would have more than `columns`: half a number reads as another one.
std::vector<std::string> RanksTable(const v1::ReportReply& reply, TopOrder order,
                                    size_t columns = std::string::npos);

// The one that is chosen, most time first.
std::vector<std::string> RowsTable(const v1::ReportReply& reply, TopTable table);

}  // namespace lull
