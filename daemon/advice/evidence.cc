#include "daemon/advice/evidence.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/words/facts.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

bool Exceeds(uint64_t ns, uint64_t whole_ns, double percent) {
  return whole_ns > 0 && Percent(D(ns), D(whole_ns)) > percent;
}

}  // namespace

Evidence::Evidence(const v1::ReportReply& reply)
    : reply_(reply), shares_(SharesOf(reply)), gpu_truth_(HasGpuTruth(reply.gpu())) {}

bool Evidence::ExceedsTraced(uint64_t ns, double percent) const {
  return gpu_truth_ && Exceeds(ns, reply_.gpu().traced_ns(), percent);
}

bool Evidence::ExceedsWork(uint64_t ns, double percent) const {
  return Exceeds(ns, shares_.working_ns(), percent);
}

std::string Evidence::OfTraced(uint64_t ns) const {
  return absl::StrCat(FormatShare(D(ns), D(reply_.gpu().traced_ns())), " (",
                      FormatDuration(ns), ")");
}

std::string Evidence::OfWork(uint64_t ns) const {
  return FormatShare(D(ns), D(shares_.working_ns()));
}

const v1::CauseRow* Evidence::Cause(v1::GapCause cause) const {
  for (const v1::CauseRow& row : reply_.gaps().causes()) {
    if (row.cause() == cause) return &row;
  }
  return nullptr;
}

uint64_t Evidence::Idle(v1::GapCause cause) const {
  const v1::CauseRow* row = Cause(cause);
  return row != nullptr ? row->total_ns() : 0;
}

uint64_t Evidence::IdleCount(v1::GapCause cause) const {
  const v1::CauseRow* row = Cause(cause);
  return row != nullptr ? row->count() : 0;
}

const v1::GapRow* Evidence::WorstGap(v1::GapCause cause) const {
  for (const v1::GapRow& gap : reply_.gaps().gaps()) {
    if (gap.cause() == cause) return &gap;
  }
  return nullptr;
}

v1::Finding& AddFinding(Findings& found, const char* rule, std::string finding,
                        std::string advice, uint64_t time_ns, bool of_gpu_time) {
  v1::Finding& added = found.emplace_back();
  added.set_rule(rule);
  added.set_finding(std::move(finding));
  added.set_advice(std::move(advice));
  added.set_time_ns(time_ns);
  added.set_of_gpu_time(of_gpu_time);
  added.set_win_ns(time_ns);
  return added;
}

}  // namespace lull
