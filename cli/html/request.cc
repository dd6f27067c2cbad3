#include "cli/html/request.h"

namespace lull {
namespace {

// A flame graph shows no more.
constexpr uint32_t kMostStacks = 4'000;
// Lines that made up a peak.
constexpr uint32_t kMostPeakSites = 20;

// In the order of PageParts.
enum PartIndex {
  kSteps,
  kMemory,
  kHot,
  kStacks,
  kData,
  kRegions,
  kOperators,
  kTimeline
};

void Ask(v1::Section section, v1::GroupBy group_by, uint32_t top,
         v1::ReportRequest* request) {
  auto* detail = request->add_details();
  detail->set_section(section);
  detail->set_group_by(group_by);
  detail->set_top(top);
}

}  // namespace

void AskForPage(v1::ReportRequest* request) {
  request->set_with_sources(true);
  const v1::GroupBy by = request->group_by();
  const uint32_t top = request->top();
  Ask(v1::SECTION_STEPS, by, top, request);
  Ask(v1::SECTION_MEMORY, by, kMostPeakSites, request);
  Ask(v1::SECTION_HOT, by, top, request);
  Ask(v1::SECTION_HOT, v1::GROUP_BY_STACK, kMostStacks, request);
  Ask(v1::SECTION_DATA, by, top, request);
  Ask(v1::SECTION_REGIONS, by, top, request);
  Ask(v1::SECTION_OPERATORS, by, top, request);
  Ask(v1::SECTION_TIMELINE, by, top, request);
}

PageParts PartsOf(const v1::ReportReply& reply) {
  auto part = [&reply](int index) -> const v1::ReportReply& {
    return index < reply.details_size() ? reply.details(index)
                                        : v1::ReportReply::default_instance();
  };
  return {part(kSteps), part(kMemory),  part(kHot),       part(kStacks),
          part(kData),  part(kRegions), part(kOperators), part(kTimeline)};
}

}  // namespace lull
