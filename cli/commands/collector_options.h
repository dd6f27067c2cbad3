// --collector, --token-file, --tls-ca and --insecure-plain-tcp, and a connection made
// of them.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "absl/status/statusor.h"
#include "cli/client/collector_address.h"
#include "cli/client/collector_client.h"

namespace lull {

void AddCollectorOptions(CLI::App* verb, CollectorFlags* flags);

// For the verbs that ask: starts the private collector if that is the one, and
// hands it what earlier relays could not deliver, so that an answer is complete.
absl::StatusOr<std::unique_ptr<CollectorClient>> Connect(const CollectorFlags& flags);

}  // namespace lull
