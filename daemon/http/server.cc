#include "daemon/http/server.h"

#include <chrono>
#include <csignal>
#include <limits>
#include <list>
#include <optional>
#include <utility>

#ifdef __SANITIZE_THREAD__  // which knows no fences; locks order what there is
#define BOOST_ASIO_DISABLE_FENCED_BLOCK 1
#endif
// Boost 1.74 needs <utility> before it.
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"

namespace lull::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace beast_http = boost::beast::http;
using Tcp = asio::ip::tcp;

constexpr size_t kMostHeadBytes = 16 << 10;

std::chrono::nanoseconds Of(absl::Duration duration) {
  return absl::ToChronoNanoseconds(duration);
}

// Changes with the text, and tells nothing of it.
std::string Etag(const std::string& body) {
  return absl::StrCat("\"", absl::Hex(std::hash<std::string>()(body)), "-",
                      absl::Hex(body.size()), "\"");
}

class Connection;

// Connections, which these two hold, use all that stands before them.
struct Shared {
  ServerOptions options;
  Doorkeeper doorkeeper;
  Handler handler;
  size_t connections = 0;
  std::list<Connection*> asking;  // their heads are not here yet; the oldest first
  asio::io_context io;
  asio::thread_pool worker{1};
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Tcp::socket socket, Shared& shared)
      : stream_(std::move(socket)),
        buffer_(kMostHeadBytes),
        shared_(shared),
        place_(shared.asking.insert(shared.asking.end(), this)) {
    ++shared_.connections;
    parser_.header_limit(kMostHeadBytes);
    // None is ever read. (Of Boost 1.74 boost::none means that there may be none.)
    parser_.body_limit(std::numeric_limits<uint64_t>::max());
  }
  ~Connection() {
    StopAsking();
    if (!dropped_) --shared_.connections;
  }

  void Start() {
    stream_.expires_after(Of(shared_.options.patience));
    beast_http::async_read_header(
        stream_, buffer_, parser_,
        [self = shared_from_this()](beast::error_code error, size_t) {
          self->Read(error);
        });
  }

  // To make room for another.
  void Drop() {
    StopAsking();
    dropped_ = true;
    --shared_.connections;
    stream_.close();
  }

 private:
  void StopAsking() {
    if (asking_) shared_.asking.erase(place_);
    asking_ = false;
  }

  void Read(beast::error_code error) {
    if (dropped_) return;
    StopAsking();
    if (!error) {
      Decide();
    } else if (error == beast_http::error::header_limit ||
               error == beast_http::error::buffer_overflow) {
      Refuse(431);
    } else if (error.category() ==
                   beast_http::make_error_code(beast_http::error::bad_method)
                       .category() &&
               error != beast_http::error::end_of_stream &&
               error != beast_http::error::partial_message) {
      Refuse(400);
    }
  }

  void Decide() {
    const auto& head = parser_.get();
    Request request;
    request.method = std::string(head.method_string());
    request.target = std::string(head.target());
    head_ = head.method() == beast_http::verb::head;
    Take(beast_http::field::host, &request.host, &request);
    Take(beast_http::field::origin, &request.origin, &request);
    Take(beast_http::field::cookie, &request.cookies, &request);
    Take("Sec-Fetch-Site", &request.fetch_site, &request);
    Take(beast_http::field::authorization, &request.authorization, &request);
    Take(beast_http::field::if_none_match, &known_, &request);
    request.has_body =
        parser_.chunked() || parser_.content_length().get_value_or(0) > 0;
    Decision decision = shared_.doorkeeper(request);
    if (decision.status != 200) return Tell(std::move(decision));
    stream_.expires_never();
    asio::post(shared_.worker,
               [self = shared_from_this(), decision = std::move(decision)]() mutable {
                 Answer answer = self->shared_.handler(decision.path, decision.query);
                 Shared& shared = self->shared_;
                 asio::post(shared.io, [self = std::move(self),
                                        answer = std::move(answer)]() mutable {
                   self->Send(std::move(answer));
                 });
               });
  }

  template <typename Name>
  void Take(const Name& name, std::string* value, Request* request) {
    const auto [first, last] = parser_.get().equal_range(name);
    if (first == last) return;
    *value = std::string(first->value());
    request->has_one_of_each = request->has_one_of_each && std::next(first) == last;
  }

  void Refuse(int status) {
    Decision decision;
    decision.status = status;
    Tell(std::move(decision));
  }

  void Tell(Decision decision) {
    for (const auto& [name, value] : decision.headers) response_.set(name, value);
    Answer answer;
    answer.status = decision.status;
    answer.body = std::move(decision.body);
    Send(std::move(answer));
  }

  void Send(Answer answer) {
    response_.result(static_cast<unsigned>(answer.status));
    response_.version(11);
    response_.keep_alive(false);
    response_.set("X-Content-Type-Options", "nosniff");
    response_.set("X-Frame-Options", "DENY");
    response_.set(beast_http::field::cache_control, "no-store");
    response_.set("Referrer-Policy", "no-referrer");
    response_.set("Cross-Origin-Resource-Policy", "same-origin");
    response_.set("Cross-Origin-Opener-Policy", "same-origin");
    // A page has its own policy, which allows its script.
    response_.set("Content-Security-Policy",
                  answer.has_policy ? "frame-ancestors 'none'"
                                    : "default-src 'none'; frame-ancestors 'none'");
    if (answer.status == 503) response_.set("Refresh", "5");
    response_.set(beast_http::field::content_type, answer.type);
    if (answer.status == 200) {
      const std::string etag = Etag(answer.body);
      response_.set(beast_http::field::etag, etag);
      if (known_ == etag) {
        response_.result(beast_http::status::not_modified);
        answer.body.clear();
      }
    }
    response_.content_length(answer.body.size());
    if (!head_) response_.body() = std::move(answer.body);
    stream_.expires_after(Of(shared_.options.slowest));
    beast_http::async_write(
        stream_, response_, [self = shared_from_this()](beast::error_code, size_t) {
          beast::error_code ignored;
          self->stream_.socket().shutdown(Tcp::socket::shutdown_send, ignored);
        });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  beast_http::request_parser<beast_http::empty_body> parser_;
  beast_http::response<beast_http::string_body> response_;
  std::string known_;  // the ETag that the client has
  bool head_ = false;
  bool asking_ = true;
  bool dropped_ = false;
  Shared& shared_;
  const std::list<Connection*>::iterator place_;  // in shared_.asking
};

class OnePort : public Server {
 public:
  OnePort(const ServerOptions& options, Doorkeeper doorkeeper, Handler handler)
      : acceptor_(shared_.io), retry_(shared_.io) {
    shared_.options = options;
    shared_.doorkeeper = std::move(doorkeeper);
    shared_.handler = std::move(handler);
    if (!options.ends_by_signals) return;
    signals_.emplace(shared_.io, SIGINT, SIGTERM);
    signals_->async_wait([this](beast::error_code, int) { Stop(); });
  }

  absl::Status Open() {
    const ServerOptions& options = shared_.options;
    beast::error_code error;
    const asio::ip::address address = asio::ip::make_address(options.address, error);
    if (error) {
      return absl::InvalidArgumentError(
          absl::StrCat(options.address, " is no address by its number"));
    }
    const Tcp::endpoint endpoint(address, options.port);
    acceptor_.open(endpoint.protocol(), error);
    // Not so that another socket of this port could take its connections: Linux's
    // meaning of it is that the connections of an earlier one may still be closing.
    if (!error) acceptor_.set_option(Tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) {
      const bool v6 = absl::StrContains(options.address, ":");
      return absl::UnavailableError(absl::StrCat("cannot listen on ", v6 ? "[" : "",
                                                 options.address, v6 ? "]:" : ":",
                                                 options.port, ": ", error.message()));
    }
    return absl::OkStatus();
  }

  uint16_t port() const override {
    beast::error_code ignored;
    return acceptor_.local_endpoint(ignored).port();
  }

  void Run() override {
    Accept();
    shared_.io.run();
  }

  void Stop() override { shared_.io.stop(); }

 private:
  void Accept() {
    acceptor_.async_accept([this](beast::error_code error, Tcp::socket socket) {
      if (error) return Later();  // no descriptor is left, for instance
      next_ = std::move(socket);
      Serve();
    });
  }

  // The next one, once there is a place; those behind it wait in the kernel's queue.
  void Serve() {
    if (shared_.connections >= shared_.options.most_connections) {
      if (shared_.asking.empty()) return Later();
      shared_.asking.front()->Drop();
    }
    std::make_shared<Connection>(*std::move(next_), shared_)->Start();
    next_.reset();
    Accept();
  }

  void Later() {
    retry_.expires_after(std::chrono::milliseconds(20));
    retry_.async_wait([this](beast::error_code error) {
      if (!error) next_ ? Serve() : Accept();
    });
  }

  Shared shared_;
  Tcp::acceptor acceptor_;
  std::optional<Tcp::socket> next_;
  asio::steady_timer retry_;
  std::optional<asio::signal_set> signals_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Listen(const ServerOptions& options,
                                                       Doorkeeper doorkeeper,
                                                       Handler handler) {
  auto server =
      std::make_unique<OnePort>(options, std::move(doorkeeper), std::move(handler));
  LULL_RETURN_IF_ERROR(server->Open());
  return server;
}

}  // namespace lull::http
