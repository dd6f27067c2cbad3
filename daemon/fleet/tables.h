// What ClickHouse gets to know of a job (docs/fleet.md): totals, never single events.
//
// Each table NAME is a view of NAME_data. A job is written whole, again and again while
// it goes on: an edition. Its rows go where those of the edition before the last one
// were: into one of two slots, in turn. Once they are there its row of lull_jobs_data
// says so: the views show the rows of (job, slot, version) that it names. So a job is
// there once and whole, or as it was before, whatever is killed and whatever is sent
// twice. What got no answer may still arrive, so then, and in each lulld, the two slots
// are others, drawn at random.
//
// Times are in nanoseconds, over all of a job's time with its set-up, and added up over
// ranks, as `lull ... --phase all` tells them.
#pragma once

#include <cstddef>
#include <vector>

#include "daemon/fleet/job_row.h"
#include "daemon/fleet/line_rows.h"
#include "daemon/fleet/rank_rows.h"

namespace lull::fleet {

// Rows of some jobs, as one insert for each table.
struct Editions {
  std::vector<JobRow> jobs;
  std::vector<RankRow> ranks;
  std::vector<CauseRow> causes;
  std::vector<RankCauseRow> rank_causes;
  std::vector<LineRow> lines;
  std::vector<SyncRow> syncs;
  std::vector<LateRow> late;

  // Calls visit(rows) for each table; jobs are the last.
  template <typename Visitor>
  void ForEachTable(Visitor&& visit) const {
    visit(ranks);
    visit(causes);
    visit(rank_causes);
    visit(lines);
    visit(syncs);
    visit(late);
    visit(jobs);
  }
  size_t size() const {
    size_t rows = 0;
    ForEachTable([&rows](const auto& table) { rows += table.size(); });
    return rows;
  }
};

}  // namespace lull::fleet
