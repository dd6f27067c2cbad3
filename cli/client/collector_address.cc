#include "cli/client/collector_address.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/client/places.h"
#include "daemon/base/status.h"
#include "daemon/base/unique_fd.h"

namespace lull {
namespace {

constexpr size_t kMaxToken = 4096;

absl::Status CheckTarget(const std::string& target) {
  if (absl::StartsWith(target, "unix:/")) return absl::OkStatus();
  size_t colon = target.rfind(':');
  int port = 0;
  if (colon != std::string::npos && colon > 0 &&
      absl::SimpleAtoi(target.substr(colon + 1), &port) && port > 0 && port < 65536) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", target, "' is no collector address; give host:port or unix:/path"));
}

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return ErrnoStatus(errno, absl::StrCat("cannot read the token file ", path));
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, path);
  if (!S_ISREG(info.st_mode) || (info.st_mode & 077) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the token file ", path,
                     " can be read by others; give it mode 0600: chmod 600 ", path));
  }
  std::string token(kMaxToken, '\0');
  ssize_t size = read(fd.get(), token.data(), token.size());
  if (size < 0) return ErrnoStatus(errno, absl::StrCat("cannot read ", path));
  token.resize(static_cast<size_t>(size));
  absl::StripAsciiWhitespace(&token);
  if (token.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the token file ", path, " is empty"));
  }
  return token;
}

}  // namespace

absl::StatusOr<CollectorAddress> ResolveCollector(const CollectorFlags& flags,
                                                  absl::string_view runtime) {
  CollectorAddress result;
  const char* variable = getenv("LULL_COLLECTOR");
  result.target = !flags.address.empty() ? flags.address
                  : variable != nullptr  ? variable
                                         : "";
  if (result.target.empty()) {
    result.is_private = true;
    result.target = absl::StrCat("unix:", CollectorSocketPath(runtime));
    if (!flags.token_file.empty() || !flags.tls_ca.empty()) {
      return absl::InvalidArgumentError(
          "--token-file and --tls-ca are for a collector of your own; name it with "
          "--collector");
    }
    return result;
  }
  LULL_RETURN_IF_ERROR(CheckTarget(result.target));
  if (!flags.token_file.empty()) {
    LULL_ASSIGN_OR_RETURN(result.token, ReadToken(flags.token_file));
  }
  if (!flags.tls_ca.empty()) {
    if (access(flags.tls_ca.c_str(), R_OK) != 0) {
      return ErrnoStatus(errno,
                         absl::StrCat("cannot read the CA certificate ", flags.tls_ca));
    }
    // The relay worker may run elsewhere in the tree.
    result.tls_ca = std::filesystem::absolute(flags.tls_ca).string();
  }
  return result;
}

}  // namespace lull
