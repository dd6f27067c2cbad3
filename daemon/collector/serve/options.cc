#include "daemon/collector/serve/options.h"

#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>

#include "absl/strings/str_cat.h"
#include "daemon/base/host_name.h"
#include "daemon/base/pem.h"
#include "daemon/base/runtime_directory.h"
#include "daemon/base/status.h"
#include "daemon/base/tcp_address.h"
#include "daemon/base/text.h"
#include "daemon/base/tokens.h"
#include "daemon/collector/serve/metrics_endpoint.h"

namespace lull::collector {
namespace {

constexpr int kUsageError = 2;
constexpr size_t kMinToken = 16;

std::string DefaultDatabase() {
  const char* data = getenv("XDG_DATA_HOME");
  if (data != nullptr && data[0] == '/') return absl::StrCat(data, "/lull/lull.db");
  const char* home = getenv("HOME");
  return absl::StrCat(home != nullptr ? home : "", "/.local/share/lull/lull.db");
}

// The tokens of a port; those of the database's own file where none is given.
absl::StatusOr<Tokens> PortTokens(const Options& options, const std::string& database) {
  if (options.token_file.empty()) {
    return ReadOrMakeTokenFile(TokenFileOf(options, database));
  }
  absl::StatusOr<Tokens> tokens = ReadTokenFile(options.token_file);
  if (absl::IsNotFound(tokens.status())) {
    return absl::NotFoundError(
        absl::StrCat(tokens.status().message(),
                     "; leave --token-file out, and lulld makes tokens of its own"));
  }
  return tokens;
}

absl::Status CheckTokens(const Tokens& tokens) {
  for (Right right : {Right::kWrite, Right::kRead, Right::kControl}) {
    const std::string& token = tokens.For(right);
    if (!token.empty() && token.size() < kMinToken) {
      return absl::FailedPreconditionError(
          absl::StrCat("the ", NameOf(right), " token has fewer than ", kMinToken,
                       " characters and could be guessed; leave --token-file out, and "
                       "lulld makes tokens of its own"));
    }
  }
  auto same = [](const std::string& a, const std::string& b) {
    return !a.empty() && a == b;
  };
  if (same(tokens.write, tokens.read) || same(tokens.write, tokens.control) ||
      same(tokens.read, tokens.control)) {
    return absl::FailedPreconditionError(
        "each right needs a token of its own: lines \"write TOKEN\", \"read TOKEN\" "
        "and \"control TOKEN\" in the token file; leave --token-file out, and lulld "
        "makes them");
  }
  return absl::OkStatus();
}

absl::Status CheckTogether(const Options& options, const ListenAddress& listen) {
  if (options.tls_cert_file.empty() != options.tls_key_file.empty()) {
    return absl::InvalidArgumentError("--tls-cert and --tls-key need each other");
  }
  if (listen.is_unix() && !options.tls_cert_file.empty()) {
    return absl::InvalidArgumentError("TLS is for HOST:PORT, not for a unix socket");
  }
  bool plain = !listen.is_unix() && options.tls_cert_file.empty();
  if (plain && !options.insecure_plain_tcp && !OnThisHost(listen.tcp)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--listen ", listen.text(),
        " can be reached from other hosts, and tokens would cross the network for "
        "everyone to read; give --tls-cert and --tls-key, or, where you trust the "
        "network, --insecure-plain-tcp"));
  }
  return absl::OkStatus();
}

// Prometheus may be answered in plain text alone, so on this host, unless the user says
// that others may read it.
absl::StatusOr<TcpAddress> MetricsAddress(const Options& options) {
  LULL_ASSIGN_OR_RETURN(TcpAddress address, ParseMetricsAddress(options.metrics));
  if (auto here = OnThisHost(address)) return *std::move(here);
  if (options.insecure_plain_tcp) return address;
  return absl::InvalidArgumentError(absl::StrCat(
      "--metrics ", address.text(),
      " can be reached from other hosts, and the read token would cross the network "
      "for "
      "everyone to read; let Prometheus or an agent of its ask on this host, put a "
      "proxy "
      "with TLS in front, or, where you trust the network, give --insecure-plain-tcp"));
}

std::string FromEnvironment(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

// JobRow.collector of daemon/fleet/job_row.h.
absl::StatusOr<std::string> Advertised(const Options& options,
                                       const ListenAddress& listen) {
  if (!options.advertise.empty()) {
    const auto given = ParseTcpAddress(options.advertise);
    if (given && given->port != "0" && !IsAnyHost(*given) && IsPlainHost(given->host)) {
      return given->text();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("--advertise ", CleanText(options.advertise),
                     " is no address that others could reach; give HOST:PORT"));
  }
  if (listen.is_unix() || listen.tcp.port == "0" || OnThisHost(listen.tcp)) {
    return HostName();
  }
  return IsAnyHost(listen.tcp) ? TcpAddress{HostName(), listen.tcp.port}.text()
                               : listen.tcp.text();
}

// Files, lines and names of users would cross the network for everyone to read, and a
// password.
absl::StatusOr<FleetTarget> Fleet(const Options& options, const ListenAddress& listen) {
  FleetTarget target;
  LULL_ASSIGN_OR_RETURN(target.collector, Advertised(options, listen));
  LULL_ASSIGN_OR_RETURN(
      target.server, fleet::FindClickHouseTarget(*options.clickhouse, FromEnvironment));
  target.every = absl::Seconds(options.clickhouse_every_seconds);
  http::Peer& peer = target.server.peer;
  if (peer.tls || options.insecure_plain_tcp) return target;
  if (auto here = OnThisHost(peer.address)) {
    peer.address = *std::move(here);
    return target;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--clickhouse ", peer.url(),
      " is not on this host, and what is sent to it would cross the network for "
      "everyone to read; give https://, or, where you trust the network, "
      "--insecure-plain-tcp"));
}

absl::Status ConfigureMetrics(const Options& options, CollectorConfig& config) {
  LULL_ASSIGN_OR_RETURN(config.metrics, MetricsAddress(options));
  // A port of loopback is open to every user of the host, so it wants a token as any.
  Tokens tokens = config.tokens;
  if (tokens.empty()) {
    LULL_ASSIGN_OR_RETURN(tokens, PortTokens(options, config.database));
    LULL_RETURN_IF_ERROR(CheckTokens(tokens));
  }
  if (tokens.read.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--metrics wants a line \"read TOKEN\" in ",
                     TokenFileOf(options, config.database)));
  }
  config.metrics_token = tokens.read;
  return absl::OkStatus();
}

}  // namespace

std::string TokenFileOf(const Options& options, const std::string& database) {
  return options.token_file.empty() ? absl::StrCat(database, ".tokens")
                                    : options.token_file;
}

bool ParseOptions(int argc, char** argv, const std::string& version, Options& options,
                  int& exit_status) {
  CLI::App app("lulld collects what relays of lull send, and answers queries.",
               "lulld");
  app.set_version_flag("--version", version);
  app.add_option("--listen", options.listen,
                 "unix:PATH or HOST:PORT (default: a socket in the runtime directory)");
  app.add_option("--database", options.database,
                 "file to store in (default: $XDG_DATA_HOME/lull/lull.db)");
  app.add_option("--token-file", options.token_file,
                 "file with mode 0600: lines \"write TOKEN\", \"read TOKEN\" and "
                 "\"control TOKEN\" that peers must present (default for HOST:PORT: "
                 "DATABASE.tokens, made when it is not there)");
  auto* tls_cert = app.add_option("--tls-cert", options.tls_cert_file,
                                  "PEM file: certificate chain");
  app.add_option("--tls-key", options.tls_key_file, "PEM file: private key");
  app.add_flag("--insecure-plain-tcp", options.insecure_plain_tcp,
               "listen beyond this host without TLS: whoever sees the network's "
               "traffic can read events and tokens")
      ->excludes(tls_cert);
  auto* metrics =
      app.add_option("--metrics", options.metrics,
                     absl::StrCat("answer Prometheus at http://ADDR:PORT/metrics, for "
                                  "who has the read token (default: not at all; ADDR ",
                                  kMetricsHost, ", PORT ", kMetricsPort, ")"))
          ->type_name("[ADDR:PORT]")
          ->expected(0, 1);
  auto* otlp =
      app.add_option(
             "--otlp", options.otlp,
             "push the same metrics to a collector of OpenTelemetry at "
             "http://HOST:PORT or https://HOST:PORT, by gRPC (default: not at all; "
             "without a value that of $OTEL_EXPORTER_OTLP_ENDPOINT, or "
             "http://127.0.0.1:4317)")
          ->type_name("[URL]")
          ->expected(0, 1);
  auto* clickhouse =
      app.add_option(
             "--clickhouse", options.clickhouse,
             "keep totals of all jobs in a ClickHouse, 18.16 or newer, at "
             "http://HOST:PORT or https://HOST:PORT, with ?database=NAME where it is "
             "not "
             "the default one; $CLICKHOUSE_USER and $CLICKHOUSE_PASSWORD are obeyed "
             "(docs/fleet.md)")
          ->type_name("URL");
  app.add_option("--clickhouse-every", options.clickhouse_every_seconds,
                 "seconds between two writes of a job that goes on")
      ->needs(clickhouse)
      ->check(CLI::Range(int64_t{1}, int64_t{86'400}))
      ->capture_default_str();
  app.add_option("--advertise", options.advertise,
                 "where `lull` reaches this collector from other hosts, for who asks "
                 "another collector of the fleet about a job that is here (default: "
                 "what --listen says, this host's name for 0.0.0.0 and [::], nothing "
                 "for loopback and a socket)")
      ->type_name("HOST:PORT")
      ->needs(clickhouse);
  auto* is_private =
      app.add_flag("--private", options.exits_when_idle, "exit when idle");
  app.add_option("--idle-exit", options.idle_exit_seconds,
                 "seconds without relay and query after which --private exits")
      ->needs(is_private)
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--max-age", options.max_age_seconds,
                 "delete jobs this long after their end: 36h, 30d (default: 30d)")
      ->transform(CLI::AsNumberWithUnit(std::map<std::string, int64_t>{
          {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}}))
      ->check(CLI::PositiveNumber);
  app.add_option("--max-size", options.max_size_bytes,
                 "delete the oldest jobs beyond this size: 500MB, 20GB (default: 20GB)")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--log-level", options.log_level,
                 "trace, debug, info, warn, err or off")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "err", "off"}));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_status = app.exit(error) == 0 ? 0 : kUsageError;
    return false;
  }
  options.serves_metrics = metrics->count() > 0;
  options.pushes_metrics = otlp->count() > 0;
  return true;
}

absl::StatusOr<CollectorConfig> Configure(const Options& options) {
  CollectorConfig config;
  LULL_ASSIGN_OR_RETURN(
      config.listen, ParseListenAddress(options.listen.empty()
                                            ? absl::StrCat("unix:", RuntimeDirectory(),
                                                           "/collector.sock")
                                            : options.listen));
  LULL_RETURN_IF_ERROR(CheckTogether(options, config.listen));
  config.database = options.database.empty() ? DefaultDatabase() : options.database;
  if (!config.listen.is_unix()) {
    LULL_ASSIGN_OR_RETURN(config.tokens, PortTokens(options, config.database));
  } else if (!options.token_file.empty()) {
    LULL_ASSIGN_OR_RETURN(config.tokens, ReadTokenFile(options.token_file));
  }
  LULL_RETURN_IF_ERROR(CheckTokens(config.tokens));
  if (!options.tls_cert_file.empty()) {
    LULL_ASSIGN_OR_RETURN(config.tls_cert, ReadPem(options.tls_cert_file));
    LULL_ASSIGN_OR_RETURN(config.tls_key, ReadPem(options.tls_key_file));
  }
  if (options.serves_metrics) LULL_RETURN_IF_ERROR(ConfigureMetrics(options, config));
  if (options.pushes_metrics) {
    std::error_code error;  // the name as it is, then
    LULL_ASSIGN_OR_RETURN(
        config.otlp,
        FindOtlpTarget(options.otlp, FromEnvironment,
                       std::filesystem::absolute(config.database, error).string()));
  }
  if (options.clickhouse) {
    LULL_ASSIGN_OR_RETURN(config.fleet, Fleet(options, config.listen));
  }
  config.committer.retention.max_age = absl::Seconds(options.max_age_seconds);
  config.committer.retention.max_bytes = options.max_size_bytes;
  return config;
}

}  // namespace lull::collector
