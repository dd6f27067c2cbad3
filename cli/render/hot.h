// Stacks as flame graph tools read them: a line each, root first, frames joined by ';',
// then a blank and the weight.
#pragma once

#include <string>

#include "query.pb.h"

namespace lull {

// For a reply that is grouped by stack. Weights are microseconds of threads' time.
std::string FoldedText(const v1::ReportReply& reply);

// For the newest stacks; weights are numbers of threads.
std::string FoldedThreads(const v1::ReportReply& reply);

// "function (file:line)"
std::string FoldedFrame(const v1::Frame& frame);

}  // namespace lull
