// Which collector to talk to, and with what.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lull {

// As given on the command line.
struct CollectorFlags {
  std::string address;     // --collector, or $LULL_COLLECTOR; "" = private
  std::string token_file;  // --token-file
  std::string tls_ca;      // --tls-ca
};

struct CollectorAddress {
  std::string target;  // "unix:/path" or "host:port"
  bool is_private = false;
  std::string token;   // "" = none
  std::string tls_ca;  // PEM file; "" = no TLS
};

// Checks and completes the flags. `runtime` is where the private collector
// listens. Errors: INVALID_ARGUMENT for an address that is none or a token file
// that others can read, NOT_FOUND for a file that is not there.
absl::StatusOr<CollectorAddress> ResolveCollector(const CollectorFlags& flags,
                                                  absl::string_view runtime);

}  // namespace lull
