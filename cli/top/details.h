// Which details of a report `lull top` asks for, and where they are in the answer.
#pragma once

#include "query.pb.h"

namespace lull {

enum TopDetailIndex { kTopHot, kTopTimeline };
// In the order of TopDetailIndex.
inline constexpr v1::Section kTopDetails[] = {v1::SECTION_HOT, v1::SECTION_TIMELINE};

// An empty one if the collector is too old to have sent it.
inline const v1::ReportReply& TopDetail(const v1::ReportReply& reply,
                                        TopDetailIndex index) {
  return index < reply.details_size() ? reply.details(index)
                                      : v1::ReportReply::default_instance();
}

}  // namespace lull
