#include "cli/client/collector_address.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/base/environment.h"
#include "cli/client/places.h"
#include "daemon/base/host_name.h"
#include "daemon/base/status.h"
#include "daemon/base/tcp_address.h"
#include "daemon/base/tokens.h"

namespace lull {
namespace {

absl::StatusOr<Tokens> TokensOf(const std::string& path) {
  absl::StatusOr<Tokens> tokens = ReadTokenFile(path);
  if (tokens.ok() || absl::IsNotFound(tokens.status())) return tokens;
  return absl::InvalidArgumentError(tokens.status().message());
}

// The address to connect to.
absl::StatusOr<std::string> Target(const std::string& given, bool plain_is_fine) {
  if (absl::StartsWith(given, "unix:/")) return given;
  std::optional<TcpAddress> tcp = ParseTcpAddress(given);
  if (!tcp || tcp->port == "0") {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", given, "' is no collector address; give host:port or unix:/path"));
  }
  if (plain_is_fine) return given;
  if (std::optional<TcpAddress> here = OnThisHost(*tcp)) return here->text();
  return absl::InvalidArgumentError(absl::StrCat(
      "the collector at ", given,
      " is not on this host, and events and the token would cross the network for "
      "everyone to read; give --tls-ca (and lulld --tls-cert and --tls-key), or, where "
      "you trust the network, --insecure-plain-tcp"));
}

}  // namespace

absl::StatusOr<ChosenCollector> ResolveCollector(const CollectorFlags& flags,
                                                 absl::string_view runtime) {
  ChosenCollector result;
  std::string given =
      !flags.address.empty() ? flags.address : Variable("LULL_COLLECTOR");
  if (given.empty()) {
    result.is_private = true;
    result.target = absl::StrCat("unix:", CollectorSocketPath(runtime));
    if (!flags.token_file.empty() || !flags.tls_ca.empty()) {
      return absl::InvalidArgumentError(
          "--token-file and --tls-ca are for a collector of your own; name it with "
          "--collector");
    }
    return result;
  }
  std::string ca = !flags.tls_ca.empty() ? flags.tls_ca : Variable("LULL_TLS_CA");
  result.token_file =
      !flags.token_file.empty() ? flags.token_file : Variable("LULL_TOKEN_FILE");
  if (!result.token_file.empty()) {
    LULL_ASSIGN_OR_RETURN(result.tokens, TokensOf(result.token_file));
  }
  LULL_ASSIGN_OR_RETURN(result.target,
                        Target(given, !ca.empty() || flags.insecure_plain_tcp));
  result.insecure_plain_tcp = flags.insecure_plain_tcp;
  if (!ca.empty()) {
    if (access(ca.c_str(), R_OK) != 0) {
      return ErrnoStatus(errno, absl::StrCat("cannot read the CA certificate ", ca));
    }
    // The relay worker may run elsewhere in the tree.
    result.tls_ca = std::filesystem::absolute(ca).string();
  }
  return result;
}

absl::StatusOr<ChosenCollector> ResolveOther(const ChosenCollector& known,
                                             const std::string& address) {
  ChosenCollector other = known;
  other.is_private = false;
  const std::optional<TcpAddress> there = ParseTcpAddress(address);
  if (!there || !IsPlainHost(there->host) || IsAnyHost(*there)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", address, "' is no address of a collector"));
  }
  // A loopback address is meant on the host of `known`. Here somebody else may listen
  // to it, who is to get no token.
  const std::optional<TcpAddress> tcp = ParseTcpAddress(known.target);
  const bool is_proven = !known.tls_ca.empty() && there->host == HostName();
  if (tcp && !OnThisHost(*tcp) && OnThisHost(*there) && !is_proven) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", address, "' is reached on the host of ", known.target,
        " alone; give that collector an address for others (lulld --advertise)"));
  }
  LULL_ASSIGN_OR_RETURN(
      other.target, Target(address, !known.tls_ca.empty() || known.insecure_plain_tcp));
  return other;
}

absl::StatusOr<CollectorAddress> ForWriting(const ChosenCollector& collector) {
  if (collector.tokens.empty() || !collector.tokens.write.empty()) {
    return CollectorAddress{collector.target, collector.tokens.write, collector.tls_ca};
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the token file ", collector.token_file,
                   " has no write token, and a job cannot report without one; ask the "
                   "collector's owner for that line"));
}

}  // namespace lull
