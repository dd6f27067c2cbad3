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

// For verbs that ask something: starts the private collector if no other one was named,
// and gives it what earlier relays could not deliver, so that the answer is complete.
absl::StatusOr<std::unique_ptr<CollectorClient>> Connect(const CollectorFlags& flags);

}  // namespace lull
