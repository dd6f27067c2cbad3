// Finds the job that a user means.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "daemon/storage/store.h"

namespace lull::query {

// "" is the newest job (for an imported one, when it was imported counts). A whole id
// is that job, or none, whatever others are called. Else a name means the newest job of that
// name; otherwise `text` is the beginning of an id, of four digits or more.
// INVALID_ARGUMENT for what may be two jobs, with the candidates; NOT_FOUND with the
// newest jobs that there are; DATA_LOSS when the row of the job is damaged. Damaged
// rows of other jobs do no harm.
absl::StatusOr<storage::JobRow> FindJob(storage::StoreReader& reader,
                                        const std::string& text);

// The same for who changes no more than marks: a damaged row is found, too, by the
// beginning of its id, and what is left of it is given back.
absl::StatusOr<storage::JobRow> FindJobToMark(storage::StoreReader& reader,
                                              const std::string& text);

}  // namespace lull::query
