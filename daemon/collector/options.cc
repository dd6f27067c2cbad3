#include "daemon/collector/options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <map>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/runtime_directory.h"
#include "daemon/base/status.h"
#include "daemon/base/unique_fd.h"

namespace lull::collector {
namespace {

constexpr int kUsageError = 2;
constexpr size_t kMaxToken = 4096;

std::string DefaultDatabase() {
  const char* data = getenv("XDG_DATA_HOME");
  if (data != nullptr && data[0] == '/') return absl::StrCat(data, "/lull/lull.db");
  const char* home = getenv("HOME");
  return absl::StrCat(home != nullptr ? home : "", "/.local/share/lull/lull.db");
}

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info;
  if (!fd || fstat(fd.get(), &info) != 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot read the token file ", path));
  }
  if (!S_ISREG(info.st_mode) || (info.st_mode & 0177) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat("the token file ", path,
                     " must be a file with mode 0600, so that only its owner "
                     "can read it; run: chmod 600 ",
                     path));
  }
  std::string text(kMaxToken + 1, '\0');
  ssize_t size = pread(fd.get(), text.data(), text.size(), 0);
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  std::string token(absl::StripAsciiWhitespace(text));
  if (token.empty() || text.size() > kMaxToken) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the token file ", path, " must hold one line of 1 to ", kMaxToken, " bytes"));
  }
  return token;
}

absl::StatusOr<std::string> ReadPem(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || text.str().find("-----BEGIN") == std::string::npos) {
    return absl::NotFoundError(absl::StrCat(path, " cannot be read or is no PEM file"));
  }
  return text.str();
}

absl::Status CheckTogether(const Options& options, const ListenAddress& listen) {
  if (!listen.is_loopback() && options.token_file.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--listen ", listen.text(),
                     " can be reached from other hosts and needs "
                     "--token-file"));
  }
  if (options.tls_cert_file.empty() != options.tls_key_file.empty()) {
    return absl::InvalidArgumentError("--tls-cert and --tls-key need each other");
  }
  if (listen.is_unix() && !options.tls_cert_file.empty()) {
    return absl::InvalidArgumentError("TLS is for HOST:PORT, not for a unix socket");
  }
  return absl::OkStatus();
}

}  // namespace

bool ParseOptions(int argc, char** argv, Options& options, int& exit_status) {
  CLI::App app("lulld collects what relays of lull send, and answers queries.",
               "lulld");
  app.set_version_flag("--version", std::string("lulld ") + LULL_VERSION);
  app.add_option("--listen", options.listen,
                 "unix:PATH or HOST:PORT (default: a socket in the runtime directory)");
  app.add_option("--database", options.database,
                 "file to store in (default: $XDG_DATA_HOME/lull/lull.db)");
  app.add_option("--token-file", options.token_file,
                 "file with mode 0600 whose line every peer must present");
  app.add_option("--tls-cert", options.tls_cert_file, "PEM file: certificate chain");
  app.add_option("--tls-key", options.tls_key_file, "PEM file: private key");
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
  if (!options.token_file.empty()) {
    LULL_ASSIGN_OR_RETURN(config.token, ReadToken(options.token_file));
  }
  if (!options.tls_cert_file.empty()) {
    LULL_ASSIGN_OR_RETURN(config.tls_cert, ReadPem(options.tls_cert_file));
    LULL_ASSIGN_OR_RETURN(config.tls_key, ReadPem(options.tls_key_file));
  }
  config.committer.retention.max_age = absl::Seconds(options.max_age_seconds);
  config.committer.retention.max_bytes = options.max_size_bytes;
  return config;
}

}  // namespace lull::collector
