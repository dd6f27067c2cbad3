#include "cli/job/session.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/base/output.h"
#include "cli/base/terminal.h"
#include "cli/client/collector_client.h"
#include "cli/client/places.h"
#include "cli/client/private_collector.h"
#include "cli/job/job_info.h"
#include "cli/render/summary.h"
#include "daemon/base/clock.h"
#include "daemon/base/status.h"
#include "daemon/procfs/procfs.h"
#include "daemon/procfs/run_id.h"

namespace lull {
namespace {

constexpr absl::Duration kReachable = absl::Seconds(5);
constexpr absl::Duration kDelivery = absl::Seconds(30);
// A job that is over should not seem to go on because of lull.
constexpr absl::Duration kPatience = absl::Milliseconds(1250);
constexpr absl::Duration kLeastPatience = absl::Milliseconds(500);
// Rows of each kind: as many as the advice may need as its evidence.
constexpr uint32_t kSummaryRows = 100;
constexpr size_t kMaxEnvironment = 1u << 20;

std::string OwnRunId() {
  return ReadRunId(Procfs().Read(getpid(), "environ", kMaxEnvironment).text);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Plan(const char* verb,
                                                       const SessionOptions& options,
                                                       const std::string& command) {
  std::unique_ptr<Session> session(new Session);
  session->verb_ = verb;
  session->quiet_ = options.quiet;
  LULL_ASSIGN_OR_RETURN(session->runtime_, PrepareRuntimeDirectory());
  LULL_ASSIGN_OR_RETURN(session->collector_,
                        ResolveCollector(options.collector, session->runtime_));
  const ChosenCollector& collector = session->collector_;
  relay::RelayOptions& relay = session->relay_;
  relay.job = MakeJobInfo(options.name, command, options.settings);
  relay.job.mutable_tags()->Add(options.tags.begin(), options.tags.end());
  relay.job.set_run_id(options.run_id.empty() ? OwnRunId()
                                              : GivenRunId(options.run_id));
  relay.socket_path = RelaySocketPath(session->runtime_, relay.job.id());
  relay.spool_directory =
      SpoolDirectory(session->runtime_, collector.is_private, relay.job.id());
  LULL_ASSIGN_OR_RETURN(relay.collector, ForWriting(collector));
  relay.gpu = options.gpu;
  return session;
}

absl::Status Session::ReachCollector() {
  uint64_t start = MonotonicNs();
  absl::Status reached = TryCollector();
  if (!reached.ok()) delayed_ = absl::Nanoseconds(MonotonicNs() - start);
  return reached;
}

absl::Status Session::TryCollector() {
  if (collector_.is_private) return EnsurePrivateCollector(runtime_, kReachable);
  LULL_ASSIGN_OR_RETURN(auto client, CollectorClient::Create(collector_, kReachable));
  return client->GetStatus().status();
}

absl::Status Session::StartRelay(UniqueFd listener) {
  LULL_ASSIGN_OR_RETURN(keeper_, relay::Keeper::Start(relay_, std::move(listener)));
  return absl::OkStatus();
}

void Session::Finish(int exit_status) {
  keeper_->JobEnded(exit_status);
  // What the collector has cost at the start is not asked for again.
  absl::Duration patience = std::max(kPatience - delayed_, kLeastPatience);
  // It may have been killed, or the job was quiet for longer than it stays idle. What
  // it takes to start another one is not waited for again.
  if (collector_.is_private) {
    const uint64_t begin_ns = MonotonicNs();
    absl::Status there = EnsurePrivateCollector(runtime_, kPatience);
    patience = std::max(patience - absl::Nanoseconds(MonotonicNs() - begin_ns),
                        kLeastPatience);
    if (!there.ok()) {
      PrintError(verb_, there.message());
      patience = absl::ZeroDuration();
    }
  }
  absl::Status delivered = keeper_->WaitUntilDelivered(kDelivery, patience);
  if (!delivered.ok()) {
    keeper_->Leave();
    PrintError(verb_, absl::StrCat(delivered.message(), "\nlull ", verb_, ": ",
                                   HowToDeliver()));
    return;
  }
  if (!quiet_) Summarize();
}

std::string Session::HowToDeliver() const {
  if (collector_.is_private) {
    return "the relay goes on trying for a minute, then the next `lull report` does";
  }
  return absl::StrCat(
      "the relay goes on trying for a minute; after that deliver it "
      "with: lull relay --deliver ",
      relay_.spool_directory, " --collector ", collector_.target,
      collector_.token_file.empty()
          ? ""
          : absl::StrCat(" --token-file ", collector_.token_file));
}

void Session::Summarize() {
  v1::ReportRequest request;
  request.set_job(relay_.job.id());
  request.set_top(kSummaryRows);
  auto client = CollectorClient::Create(collector_);
  auto reply = client.ok() ? (*client)->GetReport(request)
                           : absl::StatusOr<v1::ReportReply>(client.status());
  if (!reply.ok()) {
    PrintError(verb_, absl::StrCat("no summary: ", reply.status().message()));
    return;
  }
  std::string text = SummaryText(*reply, UseColour(STDERR_FILENO));
  fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace lull
