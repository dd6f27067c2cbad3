#include "cli/render/marks.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/render/json_parts.h"
#include "daemon/compare/run.h"
#include "daemon/words/format.h"

namespace lull {

std::string MarkedText(const v1::MarkReply& reply) {
  std::string text;
  bool pinned = false;
  for (const v1::Job& job : reply.jobs()) {
    pinned |= job.pinned();
    absl::StrAppend(
        &text, compare::NameOf(job), ": ", job.pinned() ? "pinned" : "not pinned", "; ",
        job.tags().empty()
            ? "no tags"
            : absl::StrCat("tags ", Printable(absl::StrJoin(job.tags(), ", "))),
        "\n");
  }
  if (!pinned) return text;
  return absl::StrCat(text, "The database has ",
                      FormatBytes(static_cast<int64_t>(reply.database_bytes())),
                      ", pinned jobs among them; beyond ",
                      FormatBytes(static_cast<int64_t>(reply.max_database_bytes())),
                      " the oldest others are deleted.\n");
}

Json MarkedJson(const v1::MarkReply& reply) {
  Json jobs = Json::array();
  for (const v1::Job& job : reply.jobs()) jobs.push_back(JobJson(job));
  return {{"jobs", std::move(jobs)},
          {"database_bytes", reply.database_bytes()},
          {"max_database_bytes", reply.max_database_bytes()}};
}

}  // namespace lull
