// The bounds of `lull web`'s server, with short times and small numbers. What it tells
// to whom is tried on the finished verb: tests/integration/web_test.py.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/web/guard.h"
#include "daemon/base/unique_fd.h"
#include "daemon/http/server.h"

namespace lull::web {
namespace {

using http::Answer;
using http::Server;
using http::ServerOptions;

constexpr size_t kLarge = 64 << 20;  // more than the kernel keeps for a connection

class WebServer : public ::testing::Test {
 protected:
  ~WebServer() override { Stop(); }

  void Start(ServerOptions options) {
    options.ends_by_signals = true;
    auto secrets = Guard::NewSecrets();
    ASSERT_TRUE(secrets.ok()) << secrets.status();
    guard_ = std::make_unique<Guard>(*std::move(secrets));
    auto server = Server::Listen(
        options,
        [this](const http::Request& request) { return guard_->Decide(request); },
        [](const std::string& path, const std::string&) {
          if (path == "slow") absl::SleepFor(absl::Seconds(1));
          Answer answer;
          answer.body = path == "large" ? std::string(kLarge, 'x') : "small";
          return answer;
        });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    port_ = server_->port();
    const std::string address = guard_->Address(port_);
    running_ = std::thread([this] { server_->Run(); });
    const std::string answer = ReadAll(Send(address.substr(address.rfind('/'))));
    folder_ = HeaderOf(answer, "Location: ");
    cookie_ = HeaderOf(answer, "Set-Cookie: ");
  }

  static std::string HeaderOf(const std::string& answer, const std::string& name) {
    const size_t at = answer.find(name);
    EXPECT_NE(at, std::string::npos) << answer;
    const size_t begin = at + name.size();
    return answer.substr(begin, answer.find_first_of(";\r", begin) - begin);
  }

  void Stop() {
    if (!running_.joinable()) return;
    kill(getpid(), SIGTERM);
    running_.join();
    server_.reset();
  }

  UniqueFd Open() const {
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)),
              0);
    return fd;
  }

  static void Write(const UniqueFd& fd, const std::string& text) {
    EXPECT_EQ(send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }

  UniqueFd Send(const std::string& target) const {
    UniqueFd fd = Open();
    Write(fd, absl::StrCat("GET ", target, " HTTP/1.1\r\nHost: localhost\r\nCookie: ",
                           cookie_, "\r\n\r\n"));
    return fd;
  }

  UniqueFd Get(const std::string& page) const { return Send(folder_ + page); }

  // Until the other side closes, at most so long between two pieces.
  static std::string ReadAll(const UniqueFd& fd) {
    std::string all;
    std::string piece(1 << 16, '\0');
    pollfd ready = {fd.get(), POLLIN, 0};
    while (true) {
      EXPECT_EQ(poll(&ready, 1, 20'000), 1) << "it is still open";
      const ssize_t bytes = recv(fd.get(), piece.data(), piece.size(), MSG_DONTWAIT);
      if (bytes <= 0) return all;
      all.append(piece, 0, static_cast<size_t>(bytes));
    }
  }

  void ExpectAnswer() const {
    EXPECT_TRUE(absl::EndsWith(ReadAll(Get("")), "\r\n\r\nsmall"));
  }

  uint16_t port_ = 0;
  std::string folder_;
  std::string cookie_;
  std::unique_ptr<Guard> guard_;
  std::unique_ptr<Server> server_;
  std::thread running_;
};

TEST_F(WebServer, CutsOffWhoTakesNothingAndServesOthersMeanwhile) {
  ServerOptions options;
  options.slowest = absl::Milliseconds(500);
  Start(options);
  std::vector<UniqueFd> slow;
  for (int i = 0; i < 3; ++i) slow.push_back(Get("large"));
  ExpectAnswer();
  absl::SleepFor(absl::Seconds(2));
  for (const UniqueFd& fd : slow) EXPECT_LT(ReadAll(fd).size(), kLarge);
}

TEST_F(WebServer, CutsOffWhoDoesNotSay) {
  ServerOptions options;
  options.patience = absl::Milliseconds(300);
  Start(options);
  UniqueFd silent = Open(), slow = Open();
  Write(slow, "GET / HTTP/1.1\r\nX: ");
  for (int i = 0; i < 10; ++i) {  // a byte now and then gains no time
    send(slow.get(), "y", 1, MSG_NOSIGNAL);
    absl::SleepFor(absl::Milliseconds(100));
  }
  EXPECT_EQ(ReadAll(silent), "");
  EXPECT_EQ(ReadAll(slow), "");
  EXPECT_GT(ReadAll(Get("large")).size(), kLarge);
}

TEST_F(WebServer, TheOldestThatHasNotAskedMakesRoom) {
  ServerOptions options;
  options.patience = absl::Hours(1);
  options.most_connections = 4;
  Start(options);
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 30; ++i) silent.push_back(Open());
  ExpectAnswer();
  EXPECT_EQ(ReadAll(silent.front()), "");
  Write(silent.back(), "GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(absl::StartsWith(ReadAll(silent.back()), "HTTP/1.1 403"));
}

TEST_F(WebServer, ThoseThatAreAnsweredKeepTheirPlaces) {
  ServerOptions options;
  options.most_connections = 2;
  Start(options);
  UniqueFd first = Get("slow"), second = Get("slow");
  ExpectAnswer();
  EXPECT_TRUE(absl::EndsWith(ReadAll(first), "small"));
  EXPECT_TRUE(absl::EndsWith(ReadAll(second), "small"));
}

TEST_F(WebServer, EndsWithRequestsUnderWay) {
  Start(ServerOptions());
  UniqueFd silent = Open(), large = Get("large"), slow = Get("slow"),
           waiting = Get("slow");
  absl::SleepFor(absl::Milliseconds(200));
  const absl::Time began = absl::Now();
  Stop();
  EXPECT_LT(absl::Now() - began, absl::Seconds(10));
  EXPECT_EQ(ReadAll(silent), "");
  EXPECT_EQ(ReadAll(waiting), "");
}

}  // namespace
}  // namespace lull::web
