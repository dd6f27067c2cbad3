// http::Client and fleet::ClickHouse against a server that sends what a test says.
#include "daemon/http/client.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "daemon/fleet/clickhouse.h"
#include "daemon/fleet/clickhouse_fleet.h"

namespace lull::fleet {
namespace {

using ::testing::HasSubstr;

// Answers each connection with what answer(request) gives, and closes it; with "" it
// waits until the client closes.
class Server {
 public:
  explicit Server(std::function<std::string(const std::string&)> answer)
      : answer_(std::move(answer)), listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener_, any, size), 0);
    EXPECT_EQ(listen(listener_, 16), 0);
    EXPECT_EQ(getsockname(listener_, any, &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Run(); });
  }
  ~Server() {
    ending_ = true;
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }

  http::Peer peer() const {
    http::Peer peer;
    peer.address = {"127.0.0.1", absl::StrCat(port_)};
    return peer;
  }
  std::vector<std::string> requests() const {
    std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void Run() {
    while (!ending_) {
      const int peer = accept(listener_, nullptr, nullptr);
      if (peer < 0) return;
      const std::string request = Read(peer);
      {
        std::lock_guard lock(mutex_);
        requests_.push_back(request);
      }
      const std::string reply = answer_(request);
      if (reply.empty()) Read(peer);
      for (size_t sent = 0; sent < reply.size();) {
        const ssize_t more =
            send(peer, reply.data() + sent, reply.size() - sent, MSG_NOSIGNAL);
        if (more <= 0) break;
        sent += static_cast<size_t>(more);
      }
      close(peer);
    }
  }

  // A whole request, or what there is until the client closes.
  static std::string Read(int peer) {
    std::string text;
    char bytes[65536];
    for (;;) {
      const size_t head = text.find("\r\n\r\n");
      const size_t length = text.find("Content-Length: ");
      if (head != std::string::npos && length < head &&
          text.size() >= head + 4 + strtoul(text.c_str() + length + 16, nullptr, 10)) {
        return text;
      }
      const ssize_t more = recv(peer, bytes, sizeof bytes, 0);
      if (more <= 0) return text;
      text.append(bytes, static_cast<size_t>(more));
    }
  }

  const std::function<std::string(const std::string&)> answer_;
  const int listener_;
  uint16_t port_ = 0;
  std::atomic<bool> ending_{false};
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

std::string Answer(const std::string& body, const char* status = "200 OK") {
  return absl::StrCat("HTTP/1.1 ", status, "\r\nContent-Length: ", body.size(),
                      "\r\n\r\n", body);
}

absl::StatusOr<http::Response> PostTo(const Server& server, absl::Duration patience,
                                      std::function<bool()> is_over = nullptr) {
  auto client = http::Client::Make(server.peer(), std::move(is_over));
  EXPECT_TRUE(client.ok());
  return (*client)->Post("/?a=b", {{"X-Key", "secret"}}, "body", patience);
}

TEST(HttpClient, GetsAnyAnswer) {
  for (const std::string& answer :
       {Answer("hello"), std::string("HTTP/1.0 200 OK\r\n\r\nhello"),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n")}) {
    Server server([&](const std::string&) { return answer; });
    auto response = PostTo(server, absl::Minutes(1));
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(response->body, "hello");
  }
  Server server([](const std::string&) { return Answer("no", "503 Busy"); });
  EXPECT_EQ(PostTo(server, absl::Minutes(1))->status, 503);
  EXPECT_THAT(server.requests().at(0), HasSubstr("POST /?a=b HTTP/1.1\r\n"));
  EXPECT_THAT(server.requests().at(0), HasSubstr("\r\nX-Key: secret\r\n"));
}

TEST(HttpClient, TakesNoLongerAnswerThanItsLimitHoweverItComes) {
  const std::string body(65 << 20, 'a');
  for (const std::string& answer :
       {Answer(body), absl::StrCat("HTTP/1.0 200 OK\r\n\r\n", body),
        absl::StrCat("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                     absl::Hex(body.size()), "\r\n", body, "\r\n0\r\n\r\n")}) {
    Server server([&](const std::string&) { return answer; });
    auto response = PostTo(server, absl::Minutes(1));
    EXPECT_TRUE(absl::IsUnavailable(response.status())) << response.status();
    EXPECT_THAT(response.status().message(), HasSubstr("body limit"));
  }
}

TEST(HttpClient, TakesNoLongerWordsBesideABodyThanItsLimit) {
  const std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  const auto answers = [&head](size_t size) {
    const std::string words(size, 'a');
    return std::vector<std::string>{
        absl::StrCat(head, "5;x=", words, "\r\nhello\r\n0\r\n\r\n"),
        absl::StrCat(head, "5\r\nhello\r\n0\r\nX: ", words, "\r\n\r\n")};
  };
  for (const std::string& answer : answers(100)) {
    Server server([&](const std::string&) { return answer; });
    auto response = PostTo(server, absl::Minutes(1));
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->body, "hello");
  }
  for (const std::string& answer : answers(1 << 20)) {
    Server server([&](const std::string&) { return answer; });
    auto response = PostTo(server, absl::Minutes(1));
    EXPECT_TRUE(absl::IsUnavailable(response.status())) << response.status();
  }
}

TEST(HttpClient, AnAnswerThatEndsEarlyIsNone) {
  for (const char* answer :
       {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", "HTTP/1.1 200", "junk"}) {
    Server server([&](const std::string&) { return answer; });
    EXPECT_TRUE(absl::IsUnavailable(PostTo(server, absl::Minutes(1)).status()))
        << answer;
  }
}

TEST(HttpClient, WaitsNoLongerThanItIsTold) {
  Server server([](const std::string&) { return ""; });
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(PostTo(server, absl::Milliseconds(50)).status()));
}

TEST(HttpClient, EndsWhenNobodyWaitsAnyMore) {
  Server server([](const std::string&) { return ""; });
  std::atomic<int> looks{0};
  auto is_over = [&] { return ++looks > 3; };
  EXPECT_TRUE(absl::IsCancelled(PostTo(server, absl::Hours(1), is_over).status()));
  EXPECT_GE(looks, 3);
}

TEST(HttpClient, IsCancelledByAnotherThreadUntilItIsResumed) {
  std::atomic<bool> silent{true};
  Server server([&](const std::string&) { return silent ? "" : Answer("back"); });
  auto client = http::Client::Make(server.peer());
  ASSERT_TRUE(client.ok());
  std::thread other([&] { (*client)->Cancel(); });
  EXPECT_TRUE(absl::IsCancelled((*client)->Post("/", {}, "", absl::Hours(1)).status()));
  other.join();
  EXPECT_TRUE(absl::IsCancelled((*client)->Post("/", {}, "", absl::Hours(1)).status()));
  (*client)->Resume();
  silent = false;
  auto response = (*client)->Post("/", {}, "", absl::Hours(1));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->body, "back");
}

TEST(ClickHouse, AsksForManyJobsInPortionsThatAServerTakes) {
  Server server([](const std::string&) { return Answer(""); });
  ClickHouseTarget target;
  target.peer = server.peer();
  auto clickhouse = ClickHouse::Make(target);
  ASSERT_TRUE(clickhouse.ok());
  std::vector<std::string> ids;
  for (int i = 0; i < 2500; ++i) ids.push_back(absl::StrCat(std::string(28, 'a'), i));
  auto found = (*clickhouse)->Find(ids);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->empty());
  ASSERT_EQ(server.requests().size(), 3U);
  size_t asked = 0;
  for (const std::string& request : server.requests()) {
    EXPECT_LT(request.size(), 256U << 10);
    for (const std::string& id : ids) {
      asked += absl::StrContains(request, absl::StrCat("'", id, "'"));
    }
  }
  EXPECT_EQ(asked, ids.size());
}

// Answers of `lull fleet`'s queries by a number of them: a valid one at first.
absl::Status FleetFrom(const std::function<std::string(const std::string&)>& answer) {
  Server server([&](const std::string& request) {
    if (absl::StrContains(request, "uniqExact(collector)")) {
      return Answer(std::string(15 * sizeof(uint64_t), '\0'));
    }
    if (absl::StrContains(request, "sum(cost_ns), sum(intDiv")) {
      return Answer(std::string(2 * sizeof(uint64_t), '\0'));
    }
    return Answer(answer(request));
  });
  ClickHouseTarget target;
  target.peer = server.peer();
  auto clickhouse = ClickHouse::Make(target);
  EXPECT_TRUE(clickhouse.ok());
  v1::FleetRequest request;
  request.set_limit(2);
  v1::FleetReply reply;
  const absl::Status status =
      FleetOf(**clickhouse, request, absl::Now() + absl::Minutes(1), &reply);
  for (const std::string& one : server.requests()) {
    EXPECT_THAT(one, HasSubstr("&max_execution_time="));
  }
  return status;
}

TEST(ClickHouse, HasOneDeadlineForAllOfAFleetsQueries) {
  Server silent([](const std::string&) { return ""; });
  ClickHouseTarget target;
  target.peer = silent.peer();
  auto clickhouse = ClickHouse::Make(target);
  ASSERT_TRUE(clickhouse.ok());
  v1::FleetReply reply;
  for (absl::Duration left : {absl::Milliseconds(50), absl::Seconds(-1)}) {
    EXPECT_TRUE(absl::IsDeadlineExceeded(
        FleetOf(**clickhouse, {}, absl::Now() + left, &reply)));
  }
  EXPECT_EQ(silent.requests().size(), 1U);  // after the deadline none is sent
}

TEST(ClickHouse, TakesNoMoreRowsOfAFleetThanItAskedFor) {
  EXPECT_EQ(FleetFrom([](const std::string&) { return ""; }), absl::OkStatus());
  const std::string cause = "\x02gc" + std::string(3 * sizeof(uint64_t), '\x01');
  for (int rows : {1, 100, 101, 100'000}) {
    const absl::Status status = FleetFrom([&](const std::string& request) {
      std::string body;
      if (!absl::StrContains(request, "GROUP BY cause ORDER BY")) return body;
      for (int i = 0; i < rows; ++i) body += cause;
      return body;
    });
    EXPECT_EQ(absl::IsDataLoss(status), rows > 100) << status;
  }
}

TEST(ClickHouse, TellsWhetherARefusedInsertMayStillArrive) {
  for (const auto& [status, may_arrive] : {std::pair("500 No", false),
                                           {"404 No", false},
                                           {"503 Busy", true},
                                           {"504 Late", true}}) {
    Server server(
        [status = status](const std::string&) { return Answer("why\nnot", status); });
    ClickHouseTarget target;
    target.peer = server.peer();
    auto clickhouse = ClickHouse::Make(target);
    ASSERT_TRUE(clickhouse.ok());
    Editions editions;
    editions.jobs.emplace_back().job = "a";
    const absl::Status written = (*clickhouse)->Write(editions);
    EXPECT_EQ(absl::IsFailedPrecondition(written), !may_arrive) << status;
    EXPECT_THAT(written.message(), HasSubstr("why"));
  }
}

}  // namespace
}  // namespace lull::fleet
