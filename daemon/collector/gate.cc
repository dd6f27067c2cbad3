#include "daemon/collector/gate.h"

#include <string_view>
#include <utility>

#include "daemon/base/clock.h"

namespace lull::collector {
namespace {

constexpr std::string_view kBearer = "Bearer ";

// Takes the same time wherever the two differ.
bool SameSecret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^
                                        static_cast<unsigned char>(b[i]));
  }
  return difference == 0;
}

}  // namespace

Gate::Gate(std::string token) : token_(std::move(token)), last_ns_(MonotonicNs()) {}

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

grpc::Status Gate::Check(const grpc::ServerContextBase& context) {
  if (token_.empty()) {
    Touch();
    return grpc::Status::OK;
  }
  auto [begin, end] = context.client_metadata().equal_range("authorization");
  for (auto it = begin; it != end; ++it) {
    std::string_view value(it->second.data(), it->second.size());
    if (value.substr(0, kBearer.size()) == kBearer &&
        SameSecret(value.substr(kBearer.size()), token_)) {
      Touch();
      return grpc::Status::OK;
    }
  }
  return grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                      begin == end ? "this collector wants a token" : "wrong token");
}

}  // namespace lull::collector
