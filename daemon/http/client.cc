#include "daemon/http/client.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <type_traits>

#ifdef __SANITIZE_THREAD__  // which knows no fences; locks order what there is
#define BOOST_ASIO_DISABLE_FENCED_BLOCK 1
#endif
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"

namespace lull::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace beast_http = boost::beast::http;
using Tcp = asio::ip::tcp;
using TlsStream = asio::ssl::stream<Tcp::socket>;
using ErrorCode = boost::system::error_code;

constexpr uint64_t kMostBody = 64 << 20;
constexpr uint32_t kMostHead = 64 << 10;
constexpr std::chrono::milliseconds kLook{200};

bool IsNumber(const std::string& host) {
  ErrorCode error;
  asio::ip::make_address(host, error);
  return !error;
}

class OnePeer : public Client {
 public:
  OnePeer(Peer peer, std::function<bool()> is_over)
      : peer_(std::move(peer)), is_over_(std::move(is_over)) {}

  absl::Status Trust() {
    if (!peer_.tls) return absl::OkStatus();
    tls_.emplace(asio::ssl::context::tls_client);
    ErrorCode error;
    tls_->add_certificate_authority(asio::buffer(peer_.roots), error);
    if (!error) tls_->set_verify_mode(asio::ssl::verify_peer, error);
    if (!error) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("certificates cannot be used: ", error.message()));
  }

  absl::StatusOr<Response> Post(const std::string& target, const Headers& headers,
                                std::string body, absl::Duration patience) override {
    deadline_ = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(patience);
    Request request{beast_http::verb::post, target, 11};
    request.set(beast_http::field::host, peer_.address.text());
    request.set(beast_http::field::user_agent, "lulld");
    for (const auto& [name, value] : headers) request.set(name, value);
    request.body() = std::move(body);
    request.prepare_payload();
    request.keep_alive(false);
    if (!peer_.tls) {
      Tcp::socket socket(io_);
      LULL_RETURN_IF_ERROR(Connect(socket));
      return Talk(socket, request);
    }
    TlsStream stream(io_, *tls_);
    LULL_RETURN_IF_ERROR(Connect(stream.next_layer()));
    LULL_RETURN_IF_ERROR(ShakeHands(stream));
    return Talk(stream, request);
  }

  void Cancel() override {
    cancelled_ = true;
    asio::post(io_, [] {});  // wakes up who waits
  }
  void Resume() override { cancelled_ = false; }

 private:
  using Request = beast_http::request<beast_http::string_body>;
  using Clock = std::chrono::steady_clock;

  bool IsOver() const { return cancelled_ || (is_over_ && is_over_()); }

  // Waits for what start(handler) begins on `socket`, which is closed where that takes
  // too long.
  template <typename Start>
  absl::Status Wait(const char* what, Tcp::socket& socket, Start start) {
    std::optional<ErrorCode> done;
    start([&done](const ErrorCode& error, const auto&...) { done = error; });
    io_.restart();
    while (!done && !IsOver() && Clock::now() < deadline_) {
      io_.run_one_until(is_over_ ? std::min(deadline_, Clock::now() + kLook)
                                 : deadline_);
    }
    if (done && !*done) return absl::OkStatus();
    if (done) {
      return absl::UnavailableError(absl::StrCat(what, ": ", done->message()));
    }
    ErrorCode ignored;
    socket.close(ignored);
    resolver_.cancel();
    io_.restart();
    io_.run();  // until the handler has been called: it uses `done`
    if (IsOver()) return absl::CancelledError("cancelled");
    return absl::DeadlineExceededError(absl::StrCat(what, ": no answer in time"));
  }

  absl::Status Connect(Tcp::socket& socket) {
    Tcp::resolver::results_type found;
    LULL_RETURN_IF_ERROR(Wait("its name cannot be resolved", socket, [&](auto handler) {
      resolver_.async_resolve(
          peer_.address.host, peer_.address.port,
          [&found, handler](const ErrorCode& error, Tcp::resolver::results_type all) {
            found = std::move(all);
            handler(error);
          });
    }));
    return Wait("cannot connect", socket,
                [&](auto handler) { asio::async_connect(socket, found, handler); });
  }

  absl::Status ShakeHands(TlsStream& stream) {
    const std::string& host = peer_.address.host;
    if (!IsNumber(host)) SSL_set_tlsext_host_name(stream.native_handle(), host.c_str());
    ErrorCode error;
    stream.set_verify_callback(asio::ssl::host_name_verification(host), error);
    if (error) return absl::InternalError(error.message());
    return Wait("no TLS", stream.next_layer(), [&](auto handler) {
      stream.async_handshake(TlsStream::client, handler);
    });
  }

  template <typename Stream>
  absl::StatusOr<Response> Talk(Stream& stream, const Request& request) {
    auto& socket = beast::get_lowest_layer(stream);
    // A server may answer before it has read all, and close then: what it says counts.
    const absl::Status sent = Wait("cannot send", socket, [&](auto handler) {
      beast_http::async_write(stream, request, handler);
    });
    if (absl::IsCancelled(sent) || absl::IsDeadlineExceeded(sent)) return sent;
    // What belongs to no body is kept whole while it is read: heads, and what a server
    // may say with a chunk or after the last.
    beast::flat_buffer buffer{2 * kMostHead};
    beast_http::response_parser<beast_http::string_body> parser;
    parser.header_limit(kMostHead);
    parser.body_limit(kMostBody);
    // Beast 1.74 looks at no limit where it parses a head and a body in one go.
    absl::Status read = Wait("no answer", socket, [&](auto handler) {
      beast_http::async_read_header(stream, buffer, parser, handler);
    });
    if (read.ok()) {
      read = Wait("no answer", socket, [&](auto handler) {
        beast_http::async_read(stream, buffer, parser, handler);
      });
    }
    if (!read.ok()) return sent.ok() ? read : sent;
    return Response{static_cast<int>(parser.get().result_int()),
                    std::move(parser.get().body())};
  }

  const Peer peer_;
  const std::function<bool()> is_over_;
  std::optional<asio::ssl::context> tls_;
  asio::io_context io_;
  Tcp::resolver resolver_{io_};
  Clock::time_point deadline_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace

std::string Peer::url() const {
  return absl::StrCat(tls ? "https://" : "http://", address.text());
}

absl::StatusOr<std::unique_ptr<Client>> Client::Make(Peer peer,
                                                     std::function<bool()> is_over) {
  auto client = std::make_unique<OnePeer>(std::move(peer), std::move(is_over));
  LULL_RETURN_IF_ERROR(client->Trust());
  return client;
}

}  // namespace lull::http
