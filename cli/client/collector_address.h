// Which collector to talk to, and with what.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/base/tokens.h"
#include "daemon/connection/collector_address.h"

namespace lull {

// As given on the command line.
struct CollectorFlags {
  std::string address;     // --collector, or $LULL_COLLECTOR; "" = private
  std::string token_file;  // --token-file, or $LULL_TOKEN_FILE
  std::string tls_ca;      // --tls-ca, or $LULL_TLS_CA
  bool insecure_plain_tcp = false;
};

// Its `token` is empty: each call takes the one of `tokens` that it needs.
struct ChosenCollector : CollectorAddress {
  bool is_private = false;
  Tokens tokens;
  std::string token_file;  // where they are from; "" = none
  bool insecure_plain_tcp = false;
};

// Checks and completes the flags. `runtime` is where the private collector
// listens. Plain TCP is only for this host, and `target` is then its address by number;
// for any other host `insecure_plain_tcp` must be given. So tokens and events never
// cross a network readably by oversight. May ask DNS. Errors: INVALID_ARGUMENT for an
// address that is not valid or needs TLS, and for a file that is no token file or that
// others can read; NOT_FOUND for a file that is not there.
absl::StatusOr<ChosenCollector> ResolveCollector(const CollectorFlags& flags,
                                                 absl::string_view runtime);

// Another collector, HOST:PORT, which `known` named: with the tokens of that one, and
// under the same conditions. INVALID_ARGUMENT as above.
absl::StatusOr<ChosenCollector> ResolveOther(const ChosenCollector& known,
                                             const std::string& address);

// The address for delivering events. FAILED_PRECONDITION when tokens were given, but
// none for that.
absl::StatusOr<CollectorAddress> ForWriting(const ChosenCollector& collector);

}  // namespace lull
