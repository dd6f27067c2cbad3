// Replies of the collector as text for people. Pure: no terminal, no colour, no
// clock, so that the same reply always gives the same text.
#pragma once

#include <string>

#include "query.pb.h"

namespace lull {

std::string JobsText(const v1::ListJobsReply& reply);
std::string SyncsText(const v1::ReportReply& reply, v1::GroupBy group_by);
std::string AllocationsText(const v1::ReportReply& reply, v1::GroupBy group_by);
std::string GcText(const v1::ReportReply& reply, v1::GroupBy group_by);
std::string WaitsText(const v1::ReportReply& reply, v1::GroupBy group_by);
std::string GapsText(const v1::ReportReply& reply, v1::GroupBy group_by);
std::string KernelsText(const v1::ReportReply& reply, v1::GroupBy group_by);
std::string OperatorsText(const v1::ReportReply& reply, v1::GroupBy group_by);
std::string StepsText(const v1::ReportReply& reply, v1::GroupBy group_by);
std::string HotText(const v1::ReportReply& reply, v1::GroupBy group_by);
std::string MemoryText(const v1::ReportReply& reply, v1::GroupBy group_by);
std::string DataText(const v1::ReportReply& reply, v1::GroupBy group_by);
std::string RanksText(const v1::ReportReply& reply, v1::GroupBy group_by);
std::string StacksText(const v1::ReportReply& reply, v1::GroupBy group_by);
std::string RegionsText(const v1::ReportReply& reply, v1::GroupBy group_by);
std::string ReportText(const v1::ReportReply& reply, v1::GroupBy group_by);

}  // namespace lull
