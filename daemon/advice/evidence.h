// What the rules look at: a report, and the shares of its times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/advice/advice.h"
#include "query.pb.h"

namespace lull {

class Evidence {
 public:
  explicit Evidence(const v1::ReportReply& reply);

  const v1::ReportReply& reply() const { return reply_; }
  const v1::Shares& shares() const { return shares_; }
  bool gpu_truth() const { return gpu_truth_; }

  // Whether `ns` is more than this part of the GPU's traced time, or of the time that
  // processes worked.
  bool ExceedsTraced(uint64_t ns, double percent) const;
  bool ExceedsWork(uint64_t ns, double percent) const;
  std::string OfTraced(uint64_t ns) const;  // "12.3 % (1.51 s)"
  std::string OfWork(uint64_t ns) const;    // "12.3 %"

  uint64_t Idle(v1::GapCause cause) const;
  uint64_t IdleCount(v1::GapCause cause) const;
  // The costliest row of this cause, nullptr if none is listed.
  const v1::GapRow* WorstGap(v1::GapCause cause) const;

 private:
  const v1::CauseRow* Cause(v1::GapCause cause) const;

  const v1::ReportReply& reply_;
  v1::Shares shares_;
  bool gpu_truth_;
};

using Findings = std::vector<v1::Finding>;

// A rule adds what it finds, and nothing without evidence.
using Rule = void (*)(const Evidence&, Findings&);

// Adds a finding whose change can win all of the time that it concerns.
v1::Finding& AddFinding(Findings& found, const char* rule, std::string finding,
                        std::string advice, uint64_t time_ns, bool of_gpu_time);

}  // namespace lull
