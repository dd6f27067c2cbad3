#include "cli/commands/collector_options.h"

#include <string>

#include "cli/base/output.h"
#include "cli/client/places.h"
#include "cli/client/private_collector.h"
#include "daemon/base/status.h"
#include "daemon/relay/deliver/deliver.h"

namespace lull {
namespace {

// A spool that cannot be delivered leaves the answer without that job, no more.
void DeliverLeftovers(const ChosenCollector& address, const std::string& spools) {
  for (const std::string& spool : relay::FindLeftoverSpools(spools)) {
    relay::DeliverOptions options;
    options.collector = address;
    absl::Status delivered = relay::DeliverSpool(spool, options);
    if (delivered.ok() || absl::IsUnavailable(delivered)) continue;
    PrintError("relay", absl::StrCat("the spool ", spool,
                                     " of an earlier job could not be delivered: ",
                                     delivered.message()));
  }
}

// Started, and not just about to end of idleness.
absl::StatusOr<std::unique_ptr<CollectorClient>> ConnectToPrivate(
    const ChosenCollector& address, const std::string& runtime) {
  LULL_RETURN_IF_ERROR(EnsurePrivateCollector(runtime));
  LULL_ASSIGN_OR_RETURN(auto client, CollectorClient::Create(address));
  absl::Status status = client->GetStatus().status();
  if (status.ok()) return client;
  if (!absl::IsUnavailable(status)) return status;
  LULL_RETURN_IF_ERROR(EnsurePrivateCollector(runtime));
  return CollectorClient::Create(address);
}

}  // namespace

void AddCollectorOptions(CLI::App* verb, CollectorFlags* flags) {
  verb->add_option("--collector", flags->address,
                   "collector to use: host:port or unix:/path (default: "
                   "$LULL_COLLECTOR, else a private one, started on demand)")
      ->type_name("ADDR")
      ->configurable();
  verb->add_option("--token-file", flags->token_file,
                   "file with the collector's tokens, mode 0600 (default: "
                   "$LULL_TOKEN_FILE)")
      ->type_name("FILE")
      ->configurable();
  verb->add_option("--tls-ca", flags->tls_ca,
                   "PEM certificate of the CA that signed the collector's; turns TLS "
                   "on (default: $LULL_TLS_CA)")
      ->type_name("FILE")
      ->configurable();
  verb->add_flag("--insecure-plain-tcp", flags->insecure_plain_tcp,
                 "reach a collector on another host without TLS: whoever sees the "
                 "network's traffic can read events and tokens")
      ->configurable();
}

absl::StatusOr<std::unique_ptr<CollectorClient>> Connect(const CollectorFlags& flags) {
  // Only the private collector needs the runtime directory.
  LULL_ASSIGN_OR_RETURN(ChosenCollector address, ResolveCollector(flags, ""));
  if (!address.is_private) return CollectorClient::Create(address);
  LULL_ASSIGN_OR_RETURN(std::string runtime, PrepareRuntimeDirectory());
  LULL_ASSIGN_OR_RETURN(address, ResolveCollector(flags, runtime));
  LULL_ASSIGN_OR_RETURN(auto client, ConnectToPrivate(address, runtime));
  for (const std::string& place : SpoolPlaces(runtime, /*is_private=*/true)) {
    DeliverLeftovers(address, place);
  }
  return client;
}

}  // namespace lull
