#include "daemon/fleet/stored_jobs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/crc32c.h"
#include "daemon/base/status.h"
#include "daemon/base/tcp_address.h"
#include "daemon/query/run_parts.h"

namespace lull::fleet {

EditionOf StoredJob::edition() const {
  EditionOf edition;
  edition.key = {DayOf(job.info.start_realtime_ns()), job.info.id(), 0, 0};
  edition.run = run;
  edition.run_id = job.run;
  edition.parts = parts;
  edition.user = job.info.user();
  edition.collector = collector;
  edition.live = live;
  edition.stored_ns = stored_ns;
  edition.state = state;
  return edition;
}

absl::StatusOr<StoredJobs> JobsOf(storage::Store& store,
                                  const query::HasRelay& has_relay,
                                  const std::string& collector) {
  LULL_ASSIGN_OR_RETURN(auto reader, store.NewReader());
  query::RunParts run_parts(*reader, has_relay);
  std::vector<storage::JobRow> damaged;
  LULL_ASSIGN_OR_RETURN(auto jobs, reader->catalogue().Jobs(0, &damaged));
  StoredJobs found;
  found.damaged = damaged.size();
  // A host whose name changes with each start (a container's) is no reason to tell all
  // again.
  const std::string address =
      ParseTcpAddress(collector) ? absl::StrCat(collector, "\n") : "";
  for (storage::JobRow& job : jobs) {
    if (job.info.has_imported()) continue;
    StoredJob& one = found.jobs.emplace_back();
    one.run = job.info.id();
    one.live = has_relay(job.info.id());
    one.stored_ns = job.touched_ns;
    if (!job.run.empty()) {
      LULL_ASSIGN_OR_RETURN(const auto parts, run_parts.Of(job));
      one.run = parts.front().info.id();
      one.parts = static_cast<uint32_t>(parts.size());
      for (const storage::JobRow& part : parts) {  // each may change who was late
        one.stored_ns = std::max(one.stored_ns, part.touched_ns);
      }
    }
    one.collector = collector;
    one.state = Crc32c(absl::StrCat(one.run, "\n", one.live, job.ended, "\n", address,
                                    absl::StrJoin(job.marks.tags(), "\n")));
    one.job = std::move(job);
  }
  return found;
}

}  // namespace lull::fleet
