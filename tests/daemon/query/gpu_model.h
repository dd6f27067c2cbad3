// What GPU reports must say: the blame engine, given the events of a process all at
// once and in one piece, and sums over its answers made the slow and obvious way.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "query.pb.h"
#include "tests/daemon/query/gpu_job.h"

namespace lull::test {

struct GpuRow {
  uint64_t count = 0, total_ns = 0, min_ns = 0, max_ns = 0, bytes = 0;
  friend bool operator==(const GpuRow&, const GpuRow&) = default;
};
std::ostream& operator<<(std::ostream& out, const GpuRow& row);

struct GpuReport {
  uint64_t traced_ns = 0, idle_ns = 0, explained_ns = 0;
  std::map<std::string, GpuRow> causes;  // min_ns and bytes unused
  std::map<std::string, GpuRow> gaps;    // likewise
  // By gap and line: count of samples; total: millionths of the row's time; bytes: of
  // that with the line anywhere in the stack.
  std::map<std::string, GpuRow> doing;
  std::map<std::string, GpuRow> kernels;  // by name; bytes unused
  std::map<std::string, GpuRow> copies;
  std::map<std::string, GpuRow> syncs;  // judged: count, total; bytes: needed
  uint64_t wasted_ns = 0;
  friend bool operator==(const GpuReport&, const GpuReport&) = default;
};

struct GpuQuery {
  lull::v1::GroupBy by = lull::v1::GROUP_BY_LINE;
  uint64_t process = 0;  // 0 = all
  uint64_t since = 0;    // after the start of the job
  uint64_t until = UINT64_MAX;
};

class GpuModel {
 public:
  explicit GpuModel(const std::vector<GpuEvent>& events);

  GpuReport Report(const GpuQuery& query) const;

 private:
  struct Stretch {
    uint64_t process, start_ns, end_ns;
  };
  struct Idle {
    Stretch at;
    uint32_t cause;
    const TestEvent* culprit;  // null: the code itself
    const TestEvent* before;
    const TestEvent* after;
    uint32_t tid;
  };
  struct Cost {
    uint64_t process;
    TestEvent sync;
    uint64_t needed_ns;
  };
  struct Ran {
    uint64_t process;
    const TestEvent* event;
  };
  class Judge;

  static std::string GapText(const Idle& idle, lull::v1::GroupBy by);
  void FindDone();
  uint64_t ExplainedOf(const GpuQuery& query, uint64_t process) const;
  void AddDoing(const GpuQuery& query, GpuReport& report) const;

  std::vector<GpuEvent> events_;
  std::vector<Stretch> traced_;
  std::vector<Idle> idle_;
  std::vector<Cost> costs_;
  std::vector<Ran> ran_;  // in traced time
  std::vector<std::pair<const Idle*, const TestEvent*>> done_;
};

GpuReport FromReply(const lull::v1::ReportReply& reply, lull::v1::GroupBy by);

}  // namespace lull::test
