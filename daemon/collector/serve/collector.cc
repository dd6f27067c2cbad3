#include "daemon/collector/serve/collector.h"

#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/runtime_directory.h"
#include "daemon/base/status.h"
#include "daemon/collector/ingest/validate.h"
#include "daemon/collector/serve/arm_desk.h"
#include "daemon/collector/serve/control_service.h"
#include "daemon/collector/serve/gate.h"
#include "daemon/collector/serve/ingest_service.h"
#include "daemon/collector/serve/metrics_endpoint.h"
#include "daemon/collector/serve/metrics_source.h"
#include "daemon/collector/serve/otlp_push.h"
#include "daemon/collector/serve/query_service.h"
#include "daemon/collector/serve/unix_listener.h"
#include "daemon/collector/serve/unknown_calls.h"
#include "daemon/storage/store.h"

namespace lull::collector {
namespace {

// Hostile peers get no more memory and threads than this.
constexpr size_t kMaxMemory = 256 << 20;
constexpr int kMaxThreads = 64;

std::shared_ptr<grpc::ServerCredentials> Credentials(const CollectorConfig& config) {
  if (config.tls_cert.empty()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options;
  options.pem_key_cert_pairs.push_back({config.tls_key, config.tls_cert});
  return grpc::SslServerCredentials(options);
}

absl::Status MakeParent(const std::string& file) {
  std::filesystem::path parent = std::filesystem::path(file).parent_path();
  std::error_code error;
  if (parent.empty() || std::filesystem::exists(parent, error)) return absl::OkStatus();
  return MakePrivateDirectory(parent.string());
}

}  // namespace

struct Collector::Parts {
  Parts(CollectorConfig config, std::unique_ptr<storage::Store> opened,
        std::function<void()> request_shutdown)
      : store(std::move(opened)),
        gate(config.tokens, !config.listen.is_unix()),
        committer(*store, WithDesk(config.committer)),
        ingest(gate, committer, desk),
        fleet_desk(config.fleet, *store, HasRelay()),
        control(gate, committer, *store, desk, fleet_desk, config.database,
                std::move(request_shutdown)),
        query(gate, *store, HasRelay(), fleet_desk, config.export_patience),
        totals(*store, HasRelay()) {}

  query::HasRelay HasRelay() {
    return [this](const std::string& job) { return desk.HasRelay(job); };
  }

  CommitterOptions WithDesk(CommitterOptions options) {
    options.has_relay = HasRelay();
    return options;
  }

  std::unique_ptr<storage::Store> store;
  Gate gate;
  ArmDesk desk;
  Committer committer;
  IngestService ingest;
  FleetDesk fleet_desk;
  ControlService control;
  QueryService query;
  UnknownCalls unknown;
  std::unique_ptr<UnixListener> listener;
  std::unique_ptr<grpc::Server> server;
  MetricsSource totals;
  std::unique_ptr<MetricsEndpoint> metrics;
  std::unique_ptr<OtlpPush> otlp;
  std::unique_ptr<FleetPush> fleet;
};

absl::StatusOr<std::unique_ptr<Collector>> Collector::Start(CollectorConfig config) {
  // The address first: two collectors that are started at once meet at its lock.
  std::unique_ptr<UnixListener> listener;
  if (config.listen.is_unix()) {
    LULL_ASSIGN_OR_RETURN(listener, UnixListener::Create(config.listen.unix_path));
  } else {
    if (config.tokens.empty()) {
      return absl::InvalidArgumentError("a collector with a port needs tokens");
    }
    LULL_RETURN_IF_ERROR(ProbeTcp(config.listen.tcp));
  }
  LULL_RETURN_IF_ERROR(MakeParent(config.database));
  LULL_ASSIGN_OR_RETURN(auto store, storage::Store::Open(config.database));

  std::unique_ptr<Collector> collector(new Collector);
  collector->parts_ = std::make_unique<Parts>(
      config, std::move(store),
      [raw = collector.get()] { raw->shutdown_requested_ = true; });
  Parts& parts = *collector->parts_;
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Relays ask for a sign of life this often, see connection/collector_channel.cc.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.SetResourceQuota(
      grpc::ResourceQuota("lulld").Resize(kMaxMemory).SetMaxThreads(kMaxThreads));
  builder.RegisterService(&parts.ingest);
  builder.RegisterService(&parts.control);
  builder.RegisterService(&parts.query);
  builder.RegisterCallbackGenericService(&parts.unknown);
  int port = 0;
  if (listener == nullptr) {
    builder.AddListeningPort(config.listen.tcp.text(), Credentials(config), &port);
  }
  parts.server = builder.BuildAndStart();
  if (parts.server == nullptr || (listener == nullptr && port == 0)) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", config.listen.text(),
        config.tls_cert.empty() ? ": is the port in use?"
                                : ": check the port, --tls-cert and --tls-key"));
  }
  collector->address_ = config.listen.text();
  if (listener != nullptr) {
    parts.listener = std::move(listener);
    LULL_RETURN_IF_ERROR(parts.listener->Start(parts.server.get()));
  } else {
    config.listen.tcp.port = absl::StrCat(port);
    collector->address_ = config.listen.tcp.text();
  }
  if (config.metrics) {
    LULL_ASSIGN_OR_RETURN(
        parts.metrics,
        MetricsEndpoint::Start(*config.metrics, config.metrics_token, parts.totals));
  }
  if (config.otlp) {
    parts.otlp = std::make_unique<OtlpPush>(*std::move(config.otlp), parts.totals);
  }
  if (config.fleet) {
    LULL_ASSIGN_OR_RETURN(
        parts.fleet, FleetPush::Start(*config.fleet, *parts.store, parts.HasRelay()));
  }
  return collector;
}

Collector::~Collector() { Stop(); }

bool Collector::shutdown_requested() const {
  return shutdown_requested_.load() ||
         (parts_->listener != nullptr && parts_->listener->superseded());
}

std::string Collector::metrics_address() const {
  return parts_->metrics == nullptr ? "" : parts_->metrics->address();
}

absl::Duration Collector::IdleTime() const { return parts_->gate.IdleTime(); }

void Collector::Stop() {
  if (parts_ == nullptr || parts_->server == nullptr) return;
  parts_->metrics.reset();
  if (parts_->listener != nullptr) parts_->listener->Stop();
  parts_->desk.Stop();
  parts_->server->Shutdown(std::chrono::system_clock::now() +
                           std::chrono::milliseconds(200));
  parts_->server->Wait();
  parts_->committer.Stop();
  parts_->otlp.reset();  // the last push has all of it
  parts_->fleet.reset();
  parts_->server.reset();
}

}  // namespace lull::collector
