// The way to a collector, for relay and CLI alike: address, TLS, token.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/connection/collector_address.h"

namespace lull {

// `most_reply_bytes`: longer messages are refused; 0 = gRPC's own bound, 4 MiB.
// INVALID_ARGUMENT / NOT_FOUND when the address or the CA file cannot work; does
// not connect yet. HTTP proxies of the environment are left alone: training hosts
// set them for the way out, and the collector is inside.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(
    const CollectorAddress& collector, int most_reply_bytes = 0);

// Adds a token to a call; "" adds nothing.
void Authorize(const std::string& token, grpc::ClientContext* context);

absl::Status FromGrpc(const grpc::Status& status);

}  // namespace lull
