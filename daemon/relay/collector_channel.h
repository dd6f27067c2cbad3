// A gRPC channel to a collector. This header and upstream.cc are the only places
// of the relay that see gRPC.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lull::relay {

struct CollectorAddress {
  std::string address;      // "unix:/path" or "host:port"
  std::string token;        // "" = none
  std::string tls_ca_file;  // "" = no TLS
};

// INVALID_ARGUMENT / NOT_FOUND when the address or the CA file cannot work; does
// not connect yet. HTTP proxies of the environment are left alone: training hosts
// set them for the way out, and the collector is inside.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(
    const CollectorAddress& collector);

// Adds the token to a call.
void Authorize(const CollectorAddress& collector, grpc::ClientContext* context);

absl::Status FromGrpc(const grpc::Status& status);

}  // namespace lull::relay
