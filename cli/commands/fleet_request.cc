#include "cli/commands/fleet_request.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/commands/query_options.h"
#include "daemon/base/status.h"
#include "daemon/words/enum_key.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

// In nanoseconds since 1970; `text` is how long ago.
absl::StatusOr<uint64_t> TimeAgo(const std::string& text, uint64_t now_ns) {
  // Seconds are what nobody means here.
  if (!text.empty() && absl::ascii_isdigit(text.back())) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' has no unit; write 90m, 24h or 30d"));
  }
  LULL_ASSIGN_OR_RETURN(const uint64_t ago, ParseTime(text));
  return now_ns > ago ? now_ns - ago : 0;
}

}  // namespace

absl::StatusOr<v1::FleetRequest> FleetRequestOf(const FleetJobs& jobs) {
  v1::FleetRequest request;
  const auto now_ns = static_cast<uint64_t>(absl::GetCurrentTimeNanos());
  absl::StatusOr<uint64_t> since = 0;
  if (jobs.since != "all") since = TimeAgo(jobs.since, now_ns);
  if (!since.ok()) return Annotate(since.status(), "--since (a time, or all)");
  request.set_since_unix_ns(*since);
  if (!jobs.until.empty()) {
    auto until = TimeAgo(jobs.until, now_ns);
    if (!until.ok()) return Annotate(until.status(), "--until");
    if (*until <= *since) {
      return absl::InvalidArgumentError("--until must be less long ago than --since");
    }
    request.set_until_unix_ns(*until);
  }
  request.set_name(jobs.name);
  request.set_user(jobs.user);
  request.set_host(jobs.host);
  for (const std::string& tag : jobs.tags) request.add_tags(tag);
  request.set_limit(jobs.top);
  request.set_group_by(FromKey<v1::FleetGroup>(jobs.by).value_or(v1::FLEET_GROUP_USER));
  return request;
}

absl::Status CheckGroups(const v1::FleetRequest& request, const v1::FleetReply& reply) {
  // All collectors know these; the first of them did not say what they took.
  if (request.group_by() <= v1::FLEET_GROUP_NAME ||
      reply.grouped_by() == request.group_by()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the collector is older than this lull and knows no --by ",
                   KeyOf(request.group_by()), "; use user, host or name"));
}

std::string FleetWords(const FleetJobs& jobs) {
  std::string text;
  const auto add = [&text](const char* word, const std::string& value) {
    if (!value.empty()) absl::StrAppend(&text, word, " ", Shortened(value, 60), ", ");
  };
  add("named", jobs.name);
  add("of user", jobs.user);
  add("on host", jobs.host);
  for (const std::string& tag : jobs.tags) add("tagged", tag);
  const bool all = jobs.since == "all";
  if (jobs.until.empty()) {
    absl::StrAppend(&text, all ? "" : "that ran in the last ", all ? "" : jobs.since);
  } else if (all) {
    absl::StrAppend(&text, "that ended more than ", jobs.until, " ago");
  } else {
    absl::StrAppend(&text, "that ended between ", jobs.since, " and ", jobs.until,
                    " ago");
  }
  if (absl::EndsWith(text, ", ")) text.resize(text.size() - 2);
  if (text.empty()) return "of any time";
  return text;
}

}  // namespace lull
