// lulld: wires options, signals and the collector together.
#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "daemon/base/logging.h"
#include "daemon/base/own_libc.h"
#include "daemon/base/thread.h"
#include "daemon/base/version.h"
#include "daemon/collector/serve/collector.h"
#include "daemon/collector/serve/options.h"

namespace {

constexpr int kEnvironmentError = 1;
constexpr int kUsageError = 2;

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "lulld: %s\n", std::string(status.message()).c_str());
  return absl::IsInvalidArgument(status) ? kUsageError : kEnvironmentError;
}

// What gRPC has to say about its own doings is for its developers, and a hostile peer
// must not be able to fill the log.
void SilenceLibraries() {
  gpr_set_log_function(
      [](gpr_log_func_args* entry) { lull::LogDebug(entry->message); });
  google::protobuf::SetLogHandler(nullptr);
}

// A private collector has no port, and nobody who reads this.
void TellOfPort(const lull::collector::Options& options,
                const lull::collector::CollectorConfig& config,
                const std::string& address) {
  const std::string tokens = lull::collector::TokenFileOf(options, config.database);
  std::fprintf(stderr,
               "lulld: listening on %s; peers need a token of %s (lull: --token-file, "
               "or $LULL_TOKEN_FILE)\n",
               address.c_str(), tokens.c_str());
}

void TellOfMetrics(const lull::collector::Options& options,
                   const lull::collector::CollectorConfig& config,
                   const std::string& address) {
  std::fprintf(
      stderr,
      "lulld: metrics at http://%s/metrics; Prometheus needs the read token of "
      "%s\n",
      address.c_str(), lull::collector::TokenFileOf(options, config.database).c_str());
}

void TellOfPush(const lull::collector::OtlpTarget& target) {
  std::fprintf(stderr, "lulld: pushes metrics to %s every %s\n", target.url().c_str(),
               absl::FormatDuration(target.interval).c_str());
}

void TellOfFleet(const lull::collector::FleetTarget& target) {
  std::fprintf(stderr, "lulld: keeps totals of jobs at %s, database %s, every %s\n",
               target.server.peer.url().c_str(), target.server.database.c_str(),
               absl::FormatDuration(target.every).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  lull::KeepToOwnLibc();
  lull::collector::Options options;
  int exit_status = 0;
  if (!lull::collector::ParseOptions(argc, argv, lull::VersionText("lulld"), options,
                                     exit_status))
    return exit_status;
  if (!options.log_level.empty()) setenv("LULL_LOG", options.log_level.c_str(), 1);
  lull::InitLogging("lulld");
  lull::WaitForTurns();  // jobs run on this machine, as a rule
  SilenceLibraries();

  // What gRPC's threads allocate the committer frees: with arenas of their own for all
  // of them 1,024 ranks took 954 MiB, with two 772, at the same processor time and lag
  // (tests/bench/fleet.py, 100 events/s each, 30 s).
  mallopt(M_ARENA_MAX, 2);

  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // before the first thread
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error like a full disk

  auto config = lull::collector::Configure(options);
  if (!config.ok()) return Fail(config.status());
  auto collector = lull::collector::Collector::Start(*config);
  if (!collector.ok()) return Fail(collector.status());
  lull::LogInfo(absl::StrCat("listening on ", (*collector)->address()));
  if (!config->listen.is_unix()) TellOfPort(options, *config, (*collector)->address());
  if (config->metrics) {
    TellOfMetrics(options, *config, (*collector)->metrics_address());
  }
  if (config->otlp) TellOfPush(*config->otlp);
  if (config->fleet) TellOfFleet(*config->fleet);
  const bool has_port = !config->listen.is_unix() || config->metrics ||
                        (config->fleet && !config->fleet->server.peer.tls);
  if (has_port && options.insecure_plain_tcp) {
    std::fprintf(stderr,
                 "lulld: --insecure-plain-tcp: events and tokens can be read by "
                 "whoever sees the network's traffic\n");
  }

  const absl::Duration idle_exit = absl::Seconds(options.idle_exit_seconds);
  const timespec tick = {0, 100'000'000};
  while (sigtimedwait(&signals, nullptr, &tick) < 0) {
    if ((*collector)->shutdown_requested()) break;
    if (options.exits_when_idle && (*collector)->IdleTime() > idle_exit) break;
  }
  (*collector)->Stop();
  return 0;
}
