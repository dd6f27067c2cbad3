#include "daemon/collector/serve/gate.h"

#include <string_view>
#include <utility>

#include "daemon/base/clock.h"

namespace lull::collector {
namespace {

constexpr std::string_view kBearer = "Bearer ";

}  // namespace

Gate::Gate(Tokens tokens, bool over_tcp)
    : tokens_(std::move(tokens)), over_tcp_(over_tcp), last_ns_(MonotonicNs()) {}

void Gate::Touch() { last_ns_ = MonotonicNs(); }

void Gate::StreamOpened() {
  ++open_streams_;
  Touch();
}

void Gate::StreamClosed() {
  Touch();
  --open_streams_;
}

absl::Duration Gate::IdleTime() const {
  if (open_streams_ > 0) return absl::ZeroDuration();
  return absl::Nanoseconds(static_cast<int64_t>(MonotonicNs() - last_ns_));
}

grpc::Status Gate::Admit(const grpc::ServerContextBase& context,
                         std::initializer_list<Right> rights) {
  auto [begin, end] = context.client_metadata().equal_range("authorization");
  bool known = !over_tcp_ && tokens_.empty();
  for (auto it = begin; it != end; ++it) {
    std::string_view value(it->second.data(), it->second.size());
    if (value.substr(0, kBearer.size()) != kBearer) continue;
    for (Right right : rights) {
      const std::string& token = tokens_.For(right);
      known |= !token.empty() && SameSecret(value.substr(kBearer.size()), token);
    }
  }
  if (!known) {
    return grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                        begin == end ? "this collector wants a token" : "wrong token");
  }
  Touch();
  return grpc::Status::OK;
}

grpc::Status Gate::Check(const grpc::ServerContextBase& context, Right right) {
  return Admit(context, {right});
}

grpc::Status Gate::CheckAny(const grpc::ServerContextBase& context) {
  return Admit(context, {Right::kWrite, Right::kRead, Right::kControl});
}

grpc::Status Gate::CheckShutdown(const grpc::ServerContextBase& context) {
  if (over_tcp_) {
    return grpc::Status(grpc::StatusCode::PERMISSION_DENIED,
                        "a collector with a port is not ended over it; send its "
                        "process SIGTERM");
  }
  return Admit(context, {Right::kControl});
}

}  // namespace lull::collector
