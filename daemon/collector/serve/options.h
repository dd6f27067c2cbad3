// The command line of lulld.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/collector/serve/collector.h"

namespace lull::collector {

struct Options {
  std::string listen;    // "" = the default socket
  std::string database;  // "" = the default file
  std::string token_file;
  std::string tls_cert_file;
  std::string tls_key_file;
  bool insecure_plain_tcp = false;
  bool serves_metrics = false;
  std::string metrics;  // "" = the default address
  bool pushes_metrics = false;
  std::string otlp;  // "" = that of the environment, or the default endpoint
  std::optional<std::string> clickhouse;  // URL
  int64_t clickhouse_every_seconds = 60;
  std::string advertise;  // "" = by `listen`
  std::string log_level;
  bool exits_when_idle = false;
  int64_t idle_exit_seconds = 60;
  int64_t max_age_seconds = 30 * 24 * 3600;
  uint64_t max_size_bytes = uint64_t{20} << 30;
};

// False: the program is to end with `exit_status`; --help, `version` or what is wrong
// with the command line has been printed.
bool ParseOptions(int argc, char** argv, const std::string& version, Options& options,
                  int& exit_status);

// Where the tokens of a collector with a port are, that of metrics included.
std::string TokenFileOf(const Options& options, const std::string& database);

// Fills in defaults, reads the files that the options name, makes tokens for a port
// that was given none, and checks that all of it goes together. INVALID_ARGUMENT: the
// user made a mistake; any other error comes from the surroundings.
absl::StatusOr<CollectorConfig> Configure(const Options& options);

}  // namespace lull::collector
