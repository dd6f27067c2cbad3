#include "daemon/collector/serve/control_service.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/base/status.h"
#include "daemon/base/tags.h"
#include "daemon/base/text.h"
#include "daemon/collector/ingest/validate.h"
#include "daemon/collector/serve/grpc_status.h"
#include "daemon/collector/serve/whereabouts.h"
#include "daemon/query/job_lookup.h"
#include "daemon/query/totals.h"

namespace lull::collector {

namespace {

constexpr absl::Duration kStoredAfter = absl::Seconds(1);
constexpr absl::Duration kStoredPoll = absl::Milliseconds(10);
// No relay is answered while jobs are looked up and marked.
constexpr int kMostMarked = 1000;

// What the relay has done reaches the store with its next batch, a moment later. Who
// asks next should see it; one that takes longer is waited for no more. Gives back the
// last reader, each of which sees one commit.
absl::StatusOr<std::unique_ptr<storage::StoreReader>> AwaitStored(
    storage::Store& store, const storage::JobRow& job, bool armed) {
  absl::Time give_up = SteadyNow() + kStoredAfter;
  while (true) {
    LULL_ASSIGN_OR_RETURN(auto reader, store.NewReader());
    LULL_ASSIGN_OR_RETURN(auto stretches,
                          reader->catalogue().All<storage::StretchRow>(job.id));
    bool stored =
        stretches.empty() ? !job.info.dormant() : stretches.back().end_ns == 0;
    if (stored == armed || SteadyNow() > give_up) return reader;
    absl::SleepFor(kStoredPoll);
  }
}

absl::Status CheckMark(const lull::v1::MarkRequest& request) {
  if (request.jobs_size() > kMostMarked) {
    return absl::InvalidArgumentError(absl::StrCat("these are ", request.jobs_size(),
                                                   " jobs; at most ", kMostMarked,
                                                   " are marked at once"));
  }
  if (std::max(request.add_tags_size(), request.remove_tags_size()) > kMostMarked) {
    return absl::InvalidArgumentError(
        absl::StrCat("these are more than ", kMostMarked, " tags"));
  }
  for (const std::string& tag : request.add_tags()) {
    if (!IsTag(tag)) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", CleanText(tag.substr(0, 2 * kMaxTagBytes)),
                       "\" is no tag: ", kTagRule));
    }
  }
  return absl::OkStatus();
}

bool HasTag(const storage::JobRow& job, const std::string& tag) {
  const auto& tags = job.marks.tags();
  return std::find(tags.begin(), tags.end(), tag) != tags.end();
}

// `parts`: of the job that was named, which is `job`.
absl::Status CheckRemoved(const lull::v1::MarkRequest& request,
                          const storage::JobRow& job,
                          const std::vector<storage::JobRow>& parts) {
  for (const std::string& tag : request.remove_tags()) {
    if (std::none_of(parts.begin(), parts.end(),
                     [&tag](const auto& part) { return HasTag(part, tag); })) {
      return absl::NotFoundError(
          absl::StrCat("job ", job.info.id().substr(0, 8), " has no tag \"",
                       CleanText(tag.substr(0, 2 * kMaxTagBytes)), "\""));
    }
  }
  return absl::OkStatus();
}

absl::Status ChangeMarks(const lull::v1::MarkRequest& request, storage::JobRow* job) {
  auto& tags = *job->marks.mutable_tags();
  for (const std::string& tag : request.remove_tags()) {
    tags.erase(std::remove(tags.begin(), tags.end(), tag), tags.end());
  }
  for (const std::string& tag : request.add_tags()) {
    if (!HasTag(*job, tag)) *tags.Add() = tag;
  }
  if (tags.size() > kMaxTags) {
    return absl::InvalidArgumentError(
        absl::StrCat("job ", job->info.id().substr(0, 8), " would have ", tags.size(),
                     " tags; a job has ", kMaxTags, " at most"));
  }
  if (request.has_pinned()) job->marks.set_pinned(request.pinned());
  return absl::OkStatus();
}

}  // namespace

ControlService::ControlService(Gate& gate, Committer& committer, storage::Store& store,
                               ArmDesk& desk, FleetDesk& fleet, std::string database,
                               std::function<void()> request_shutdown)
    : gate_(gate),
      committer_(committer),
      store_(store),
      desk_(desk),
      fleet_(fleet),
      database_(std::move(database)),
      request_shutdown_(std::move(request_shutdown)) {}

grpc::Status ControlService::GetStatus(grpc::ServerContext* context,
                                       const lull::v1::StatusRequest* request,
                                       lull::v1::StatusReply* reply) {
  grpc::Status admitted = request->to_write() ? gate_.Check(*context, Right::kWrite)
                                              : gate_.CheckAny(*context);
  if (!admitted.ok()) return admitted;
  reply->set_version(LULL_VERSION);
  reply->set_protocol_version(kProtocolVersion);
  reply->set_pid(static_cast<uint32_t>(getpid()));
  reply->set_database(database_);
  reply->set_relays(gate_.open_streams());
  reply->set_events_stored(committer_.events_stored());
  return grpc::Status::OK;
}

grpc::Status ControlService::Shutdown(grpc::ServerContext* context,
                                      const lull::v1::ShutdownRequest*,
                                      lull::v1::ShutdownReply*) {
  grpc::Status admitted = gate_.CheckShutdown(*context);
  if (admitted.ok()) request_shutdown_();
  return admitted;
}

grpc::Status ControlService::Arm(grpc::ServerContext* context,
                                 const lull::v1::ArmRequest* request,
                                 lull::v1::ArmReply* reply) {
  grpc::Status admitted = gate_.Check(*context, Right::kControl);
  if (!admitted.ok()) return admitted;
  auto arm = [&]() -> absl::Status {
    LULL_ASSIGN_OR_RETURN(auto reader, store_.NewReader());
    LULL_ASSIGN_OR_RETURN(storage::JobRow job, query::FindJob(*reader, request->job()));
    if (job.ended) {
      return absl::FailedPreconditionError(
          absl::StrCat("job ", job.info.id().substr(0, 8), " has ended"));
    }
    lull::v1::ArmCommand command;
    command.set_armed(request->armed());
    command.set_for_ns(request->for_ns());
    if (request->has_gpu()) *command.mutable_gpu() = request->gpu();
    LULL_ASSIGN_OR_RETURN(lull::v1::ArmState state,
                          desk_.Order(job.info.id(), std::move(command)));
    reply->set_armed(state.armed());
    reply->set_processes(state.processes());
    reply->set_for_ns(request->for_ns());
    LULL_ASSIGN_OR_RETURN(reader, AwaitStored(store_, job, state.armed()));
    query::RunParts run_parts(*reader, [&](const std::string& id) {
      return id == job.info.id() || desk_.HasRelay(id);
    });
    LULL_RETURN_IF_ERROR(query::FillJob(run_parts, job, reply->mutable_job()));
    reply->mutable_job()->set_asleep(!state.armed());
    return absl::OkStatus();
  };
  return WithWhereabouts(arm(), request->job(), store_, fleet_, context);
}

grpc::Status ControlService::Mark(grpc::ServerContext* context,
                                  const lull::v1::MarkRequest* request,
                                  lull::v1::MarkReply* reply) {
  grpc::Status admitted = gate_.Check(*context, Right::kControl);
  if (!admitted.ok()) return admitted;
  const query::HasRelay has_relay = [this](const std::string& id) {
    return desk_.HasRelay(id);
  };
  std::vector<storage::JobRow> jobs;
  std::string missing;  // if any is
  // All parts of a job on several hosts are marked: it would be no use to keep one.
  auto write = [&](storage::StoreWriter& writer) -> absl::Status {
    query::RunParts run_parts(writer, has_relay);
    absl::flat_hash_set<int64_t> marked;
    for (const std::string& text : request->jobs()) {
      missing = text;
      LULL_ASSIGN_OR_RETURN(storage::JobRow job, query::FindJobToMark(writer, text));
      if (marked.contains(job.id)) continue;  // said twice, or another part
      LULL_ASSIGN_OR_RETURN(auto parts, run_parts.Of(job));
      LULL_RETURN_IF_ERROR(CheckRemoved(*request, job, parts));
      for (storage::JobRow& part : parts) {
        marked.insert(part.id);
        LULL_RETURN_IF_ERROR(ChangeMarks(*request, &part));
        LULL_RETURN_IF_ERROR(writer.catalogue().PutMarks(part.id, part.marks));
        if (part.id == job.id) jobs.push_back(std::move(part));
      }
    }
    LULL_ASSIGN_OR_RETURN(uint64_t bytes, writer.UsedBytes());
    reply->set_database_bytes(bytes);
    return absl::OkStatus();
  };
  auto mark = [&]() -> absl::Status {
    LULL_RETURN_IF_ERROR(CheckMark(*request));
    LULL_RETURN_IF_ERROR(committer_.Write(write));
    reply->set_max_database_bytes(committer_.limits().max_bytes);
    LULL_ASSIGN_OR_RETURN(auto reader, store_.NewReader());
    query::RunParts run_parts(*reader, has_relay);
    for (const storage::JobRow& job : jobs) {
      LULL_RETURN_IF_ERROR(query::FillJob(run_parts, job, reply->add_jobs()));
    }
    return absl::OkStatus();
  };
  const absl::Status status = mark();
  return WithWhereabouts(status, missing, store_, fleet_, context);
}

}  // namespace lull::collector
