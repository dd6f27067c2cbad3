// The rows of a job, from the answers that the report verbs would give.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/fleet/tables.h"
#include "daemon/query/engine.h"
#include "daemon/query/run_totals.h"
#include "daemon/storage/store.h"
#include "query.pb.h"

namespace lull::fleet {

inline constexpr size_t kMostLines = 1000;  // of a job, in each table of lines
inline constexpr size_t kMostRanks = 16'384;

struct Answers {
  query::RunTotals totals;
  v1::ReportReply lines;           // idle time and syncs by line, all rows
  std::optional<v1::Ranks> ranks;  // absent: nothing is known of late ones
};

// `id`: of a job. What is told by rank may be a little newer than what is told by line,
// of a job that goes on. NOT_FOUND: no such job.
absl::StatusOr<Answers> AskOf(storage::Store& store, const query::HasRelay& has_relay,
                              const std::string& id, bool with_late_ranks);

// What the answers do not say.
struct EditionOf {
  RowKey key;
  std::string run;
  std::string run_id;
  uint32_t parts = 1;
  std::string user;
  std::string collector;
  bool live = false;
  uint64_t stored_ns = 0;
  uint32_t state = 0;
};

// Each key once in each table.
void AddEdition(const EditionOf& edition, const Answers& answers, Editions* out);

}  // namespace lull::fleet
