// What a page asks the collector for: the overview, which `lull report --json` prints,
// and details of the same moment.
#pragma once

#include <cstdint>

#include "query.pb.h"

namespace lull {

// Rows of each table, unless the user says otherwise.
inline constexpr uint32_t kPageRows = 100;

// Completes the request of an overview.
void AskForPage(v1::ReportRequest* request);

// Parts of the reply; an empty one where the collector is older and does not tell.
struct PageParts {
  const v1::ReportReply& steps;
  const v1::ReportReply& memory;
  const v1::ReportReply& hot;     // by line
  const v1::ReportReply& stacks;  // of samples, for the flame graph
  const v1::ReportReply& data;
  const v1::ReportReply& regions;
  const v1::ReportReply& operators;
  const v1::ReportReply& timeline;
};
PageParts PartsOf(const v1::ReportReply& reply);

}  // namespace lull
