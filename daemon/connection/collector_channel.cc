#include "daemon/connection/collector_channel.h"

#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/tcp_address.h"

namespace lull {

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(
    const CollectorAddress& collector, int most_reply_bytes) {
  const std::string& address = collector.target;
  if (!absl::StartsWith(address, "unix:") && !absl::StrContains(address, ":")) {
    return absl::InvalidArgumentError(
        absl::StrCat("the collector's address \"", address,
                     "\" is neither unix:/path nor host:port"));
  }
  std::shared_ptr<grpc::ChannelCredentials> credentials =
      grpc::InsecureChannelCredentials();
  if (!collector.tls_ca.empty()) {
    std::ifstream file(collector.tls_ca, std::ios::binary);
    std::ostringstream pem;
    pem << file.rdbuf();
    if (!file || pem.str().empty()) {
      return absl::NotFoundError(
          absl::StrCat("cannot read the CA certificate ", collector.tls_ca));
    }
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = pem.str();
    credentials = grpc::SslCredentials(options);
  }
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // A collector whose host vanished sends no reset.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  if (most_reply_bytes > 0) arguments.SetMaxReceiveMessageSize(most_reply_bytes);
  // Otherwise a host called "unix" would be a socket.
  const std::string target =
      ParseTcpAddress(address) ? absl::StrCat("dns:///", address) : address;
  return grpc::CreateCustomChannel(target, credentials, arguments);
}

void Authorize(const std::string& token, grpc::ClientContext* context) {
  if (!token.empty()) {
    context->AddMetadata("authorization", absl::StrCat("Bearer ", token));
  }
}

absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

}  // namespace lull
