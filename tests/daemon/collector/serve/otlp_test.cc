// Where metrics are pushed to, by option and environment; and a receiver over a real
// socket that gets them, refuses them, or says nothing.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/collector/serve/collector.h"
#include "daemon/collector/serve/otlp_push.h"
#include "daemon/collector/serve/otlp_target.h"
#include "otlp.grpc.pb.h"
#include "tests/daemon/collector/fake_relay.h"
#include "tests/daemon/collector/serve/parsed_options.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/query/pipeline.h"
#include "tests/daemon/storage/temporary_directory.h"

namespace lull::collector {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

Environment Variables(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  };
}

std::string UrlOf(const std::string& endpoint,
                  std::map<std::string, std::string> variables = {}) {
  auto target = FindOtlpTarget(endpoint, Variables(std::move(variables)), "/a.db");
  return target.ok() ? target->url() : std::string(target.status().message());
}

TEST(OtlpTarget, IsThatOfTheOptionOrTheEnvironment) {
  EXPECT_EQ(UrlOf(""), "http://127.0.0.1:4317");
  EXPECT_EQ(UrlOf("http://otel:80"), "http://otel:80");
  EXPECT_EQ(UrlOf("http://otel/"), "http://otel:4317");
  EXPECT_EQ(UrlOf("http://[::1]"), "http://[::1]:4317");
  const std::map<std::string, std::string> both = {
      {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://general:1"},
      {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://metrics:2"}};
  EXPECT_EQ(UrlOf("", both), "http://metrics:2");
  EXPECT_EQ(UrlOf("", {{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://general:1"}}),
            "http://general:1");
  EXPECT_EQ(UrlOf("http://own:3", both), "http://own:3");
}

TEST(OtlpTarget, IsAHostWhateverItIsCalled) {
  for (const char* host : {"unix", "dns", "xds", "127.0.0.1", "[::1]"}) {
    auto target =
        FindOtlpTarget(absl::StrCat("http://", host, ":1"), Variables({}), "/a.db");
    ASSERT_TRUE(target.ok()) << target.status();
    EXPECT_EQ(target->grpc_name(), absl::StrCat("dns:///", host, ":1"));
  }
}

// Series of the answer itself have no run: receivers make labels of these alone.
TEST(OtlpTarget, IsToldApartFromTheLulldOfOthers) {
  const auto id_of = [](const std::string& database,
                        std::map<std::string, std::string> variables = {}) {
    auto target = FindOtlpTarget("", Variables(std::move(variables)), database);
    EXPECT_TRUE(target.ok()) << target.status();
    for (const auto& [key, value] : target->resource) {
      if (key == "service.instance.id") return value;
    }
    return std::string();
  };
  EXPECT_EQ(id_of("/a/lull.db"), id_of("/a/lull.db"));
  EXPECT_NE(id_of("/a/lull.db"), id_of("/b/lull.db")) << "two on one host";
  char host[256] = {};
  ASSERT_EQ(gethostname(host, sizeof host - 1), 0);
  EXPECT_THAT(id_of("/a/lull.db"), ::testing::StartsWith(absl::StrCat(host, ":")));
  EXPECT_EQ(
      id_of("/a/lull.db", {{"OTEL_RESOURCE_ATTRIBUTES", "service.instance.id=mine"}}),
      "mine");
}

TEST(OtlpTarget, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(UrlOf("otel:4317"),
            "--otlp \"otel:4317\" is no http://HOST:PORT or https://HOST:PORT");
  EXPECT_THAT(UrlOf("http://otel:4318/v1/metrics"), HasSubstr("has a path"));
  EXPECT_THAT(UrlOf("http://"), HasSubstr("has no HOST:PORT"));
  EXPECT_THAT(UrlOf("http://a:99999"), HasSubstr("has no HOST:PORT"));
  EXPECT_THAT(
      UrlOf("", {{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4318"},
                 {"OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"}}),
      HasSubstr("OTEL_EXPORTER_OTLP_PROTOCOL is http/protobuf, and lulld speaks "
                "grpc"));
  EXPECT_THAT(UrlOf("", {{"OTEL_EXPORTER_OTLP_TIMEOUT", "soon"}}),
              HasSubstr("OTEL_EXPORTER_OTLP_TIMEOUT \"soon\" is no number"));
  EXPECT_THAT(UrlOf("", {{"OTEL_EXPORTER_OTLP_HEADERS", "novalue"}}),
              HasSubstr("OTEL_EXPORTER_OTLP_HEADERS is no list of KEY=VALUE"));
  EXPECT_THAT(UrlOf("https://a", {{"OTEL_EXPORTER_OTLP_CERTIFICATE", "/dev/null"}}),
              HasSubstr("/dev/null cannot be read or is no PEM file"));
  // What gRPC would end the program for. A header's value is a secret.
  for (const char* headers :
       {"a b=c", "x-bin=1", "grpc-timeout=1S", "a=b%0Ac", ":path=x"}) {
    const std::string said = UrlOf("", {{"OTEL_EXPORTER_OTLP_HEADERS", headers}});
    EXPECT_THAT(said, HasSubstr("that gRPC cannot send")) << headers;
  }
}

TEST(OtlpTarget, RepeatsNoSecrets) {
  for (const char* url :
       {"http://me:secret@otel:4317", "https://secret@otel",
        "grpc://me:secret@otel:4317", "http://otel:4318/v1/metrics?key=secret",
        "http://otel:4317?key=secret", "http://otel#secret"}) {
    const std::string said = UrlOf(url);
    EXPECT_THAT(said, ::testing::StartsWith("--otlp ")) << url;
    EXPECT_THAT(said, Not(HasSubstr("secret"))) << url;
  }
  for (const char* headers : {"Bearer secret==", "a=b,authorization: Basic secret=",
                              "x=\xc3\xa9secret", "secret", "a-bin=secret"}) {
    const std::string said = UrlOf("", {{"OTEL_EXPORTER_OTLP_HEADERS", headers}});
    EXPECT_THAT(said, ::testing::StartsWith("OTEL_EXPORTER_OTLP_HEADERS ")) << headers;
    EXPECT_THAT(said, Not(HasSubstr("secret"))) << headers;
  }
}

TEST(OtlpTarget, TakesHeadersTimesAndResource) {
  auto target = FindOtlpTarget(
      "",
      Variables({{"OTEL_EXPORTER_OTLP_HEADERS", "Api-Key=s%20%65=, b=c"},
                 {"OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "2500"},
                 {"OTEL_METRIC_EXPORT_INTERVAL", "60000"},
                 {"OTEL_SERVICE_NAME", "gpus"},
                 {"OTEL_RESOURCE_ATTRIBUTES",
                  "service.name=other,host.name=login,service.instance.id=1,"
                  "k8s.pod.name=p%2C1"}}),
      "/a.db");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_THAT(target->headers,
              UnorderedElementsAre(Pair("api-key", "s e="), Pair("b", "c")));
  EXPECT_EQ(target->timeout, absl::Milliseconds(2500));
  EXPECT_EQ(target->interval, absl::Minutes(1));
  EXPECT_THAT(target->resource, UnorderedElementsAre(Pair("service.name", "gpus"),
                                                     Pair("host.name", "login"),
                                                     Pair("service.instance.id", "1"),
                                                     Pair("k8s.pod.name", "p,1"),
                                                     Pair("service.version", Not(""))));
  // A resource has a key once.
  target = FindOtlpTarget(
      "",
      Variables({{"OTEL_RESOURCE_ATTRIBUTES",
                  "host.name=a,k%3D=1,host.name=b,service.instance.id=2"}}),
      "/a.db");
  EXPECT_THAT(target->resource,
              UnorderedElementsAre(Pair("host.name", "b"), Pair("k=", "1"),
                                   Pair("service.instance.id", "2"),
                                   Pair("service.name", "lulld"),
                                   Pair("service.version", Not(""))));
  target =
      FindOtlpTarget("", Variables({{"OTEL_METRIC_EXPORT_INTERVAL", "1"}}), "/a.db");
  EXPECT_EQ(target->interval, absl::Seconds(5)) << "an answer is not made anew before";
}

class Receiver : public metrics::otlp::MetricsService::Service {
 public:
  explicit Receiver(const std::string& address = "127.0.0.1:0",
                    const std::shared_ptr<grpc::ServerCredentials>& credentials =
                        grpc::InsecureServerCredentials()) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, credentials, &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    url_ = absl::StrCat("http://127.0.0.1:", port_);
  }
  ~Receiver() override {
    {
      MutexLock lock(mutex_);
      silent_ = false;
      changed_.notify_all();
    }
    server_->Shutdown(std::chrono::system_clock::now());
  }

  grpc::Status Export(grpc::ServerContext* context,
                      const metrics::otlp::ExportMetricsServiceRequest* request,
                      metrics::otlp::ExportMetricsServiceResponse* answer) override {
    MutexLock lock(mutex_);
    got_.push_back(*request);
    peers_.insert(context->peer());
    *answer = answer_;
    const auto& headers = context->client_metadata();
    if (const auto key = headers.find("api-key"); key != headers.end()) {
      key_ = std::string(key->second.data(), key->second.size());
    }
    changed_.notify_all();
    while (silent_) changed_.wait(lock.native());
    return status_;
  }

  // From now on so many points of each request, and says why.
  void Refuse(int64_t points, const std::string& why) {
    MutexLock lock(mutex_);
    answer_.mutable_partial_success()->set_rejected_data_points(points);
    answer_.mutable_partial_success()->set_error_message(why);
  }
  void Fail(const grpc::Status& status) {
    MutexLock lock(mutex_);
    status_ = status;
  }
  void BeSilent() {
    MutexLock lock(mutex_);
    silent_ = true;
  }
  size_t WaitFor(size_t count) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    MutexLock lock(mutex_);
    while (got_.size() < count &&
           changed_.wait_until(lock.native(), until) != std::cv_status::timeout) {
    }
    return got_.size();
  }
  size_t got() {
    MutexLock lock(mutex_);
    return got_.size();
  }
  size_t peers() {
    MutexLock lock(mutex_);
    return peers_.size();
  }
  metrics::otlp::ExportMetricsServiceRequest Last() {
    MutexLock lock(mutex_);
    return got_.back();
  }
  std::string key() {
    MutexLock lock(mutex_);
    return key_;
  }
  const std::string& url() const { return url_; }
  int port() const { return port_; }

 private:
  std::unique_ptr<grpc::Server> server_;
  std::string url_;
  int port_ = 0;
  Mutex mutex_;
  std::condition_variable changed_;
  std::vector<metrics::otlp::ExportMetricsServiceRequest> got_ ABSL_GUARDED_BY(mutex_);
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> peers_ ABSL_GUARDED_BY(mutex_);  // who sent them
  metrics::otlp::ExportMetricsServiceResponse answer_ ABSL_GUARDED_BY(mutex_);
  std::string key_ ABSL_GUARDED_BY(mutex_);
  bool silent_ ABSL_GUARDED_BY(mutex_) = false;
};

class Push : public ::testing::Test {
 protected:
  Push() : pipeline_(test::MakeHello(test::MakeJobId(1), "one")) { Report(0, 1); }

  // Processes of these ranks have reported.
  void Report(uint32_t first_rank, uint32_t end_rank) {
    lull::v1::Batch batch;
    batch.set_sequence(end_rank);
    for (uint32_t rank = first_rank; rank < end_rank; ++rank) {
      *batch.add_processes() =
          test::MakeProcess(rank + 1, 101 + rank, static_cast<int32_t>(rank));
      test::AddCounters(batch, rank + 1, 0, 0, test::kJobStartNs + 1);
    }
    pipeline_.Apply(batch);
    pipeline_.Commit();
  }

  OtlpTarget TargetOf(const std::string& url) {
    auto target = FindOtlpTarget(
        url, Variables({{"OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret"}}), "/a.db");
    EXPECT_TRUE(target.ok()) << target.status();
    target->interval = absl::Milliseconds(20);
    return *std::move(target);
  }

  static bool Has(const metrics::otlp::ExportMetricsServiceRequest& request,
                  const std::string& name) {
    for (const auto& metric : request.resource_metrics(0).scope_metrics(0).metrics()) {
      if (metric.name() == name) return true;
    }
    return false;
  }

  test::Pipeline pipeline_;
  MetricsSource source_{pipeline_.store(), [](const std::string&) { return true; }};
};

TEST_F(Push, DeliversWhatPrometheusMayAskForAndOnceMoreAtTheEnd) {
  Receiver receiver;
  {
    OtlpPush push(TargetOf(receiver.url()), source_);
    ASSERT_EQ(receiver.WaitFor(1), 1u);
    EXPECT_TRUE(Has(receiver.Last(), "lull.run.running"));
    EXPECT_TRUE(Has(receiver.Last(), "lull.build.info"));
    EXPECT_EQ(receiver.key(), "secret");
    absl::SleepFor(absl::Milliseconds(200));
    EXPECT_EQ(receiver.WaitFor(1), 1u) << "an answer that is still the same";
  }
  EXPECT_EQ(receiver.WaitFor(2), 2u);
}

TEST_F(Push, GoesOnWhereSomeIsRefusedAndSaysSoOnce) {
  Report(1, 250);  // too much for one request
  Receiver receiver;
  receiver.Refuse(3, "no summaries");
  testing::internal::CaptureStderr();
  {
    OtlpPush push(TargetOf(receiver.url()), source_);
    ASSERT_GE(receiver.WaitFor(2), 2u);
    EXPECT_TRUE(Has(receiver.Last(), "lull.build.info")) << "what comes last";
    absl::SleepFor(absl::Milliseconds(200));
    EXPECT_EQ(receiver.WaitFor(2), 2u) << "what it has seen, once more";
  }
  EXPECT_EQ(receiver.WaitFor(4), 4u);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("it refused 6 of the points: no summaries"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

TEST_F(Push, AddsUpNoNonsense) {
  Receiver receiver;
  receiver.Refuse(std::numeric_limits<int64_t>::max(), "all");
  testing::internal::CaptureStderr();
  { OtlpPush push(TargetOf(receiver.url()), source_); }
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("it refused 4000 of the points: all"));
}

TEST_F(Push, EndsAtOnceWhereNobodyListensOrAnswers) {
  Receiver receiver;
  receiver.BeSilent();
  const absl::Time began = absl::Now();
  {
    OtlpPush push(TargetOf(receiver.url()), source_);
    ASSERT_EQ(receiver.WaitFor(1), 1u);
  }
  { OtlpPush push(TargetOf("http://127.0.0.1:1"), source_); }
  EXPECT_LT(absl::Now() - began, absl::Seconds(20));
}

TEST_F(Push, GoesOnOnceTheReceiverIsBack) {
  const std::string url = Receiver().url();
  OtlpPush push(TargetOf(url), source_);
  absl::SleepFor(absl::Milliseconds(300));
  Receiver again(url.substr(std::string("http://").size()));
  EXPECT_GE(again.WaitFor(1), 1u);
}

TEST_F(Push, TellsOfAnyErrorInOneLine) {
  const std::pair<grpc::Status, std::string> errors[] = {
      {{grpc::StatusCode::CANCELLED, "a proxy had enough"}, ": a proxy had enough\n"},
      {{grpc::StatusCode::UNIMPLEMENTED, ""}, ": UNIMPLEMENTED\n"},
      {{grpc::StatusCode::INTERNAL, "x\n[lulld] [error] y\x1b[2J\xc2\x9bz"},
       ": x?[lulld] [error] y?[2J?z\n"}};
  for (const auto& [status, told] : errors) {
    Receiver receiver;
    receiver.Fail(status);
    testing::internal::CaptureStderr();
    {
      OtlpPush push(TargetOf(receiver.url()), source_);
      EXPECT_GE(receiver.WaitFor(3), 3u);
    }
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_THAT(said, HasSubstr(told));
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  }
}

// gRPC's own patience with a receiver that was away grows to two minutes.
TEST_F(Push, TriesAgainEachTimeWhereNobodyAnswers) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 10), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  {
    OtlpPush push(TargetOf(absl::StrCat("http://127.0.0.1:", ntohs(address.sin_port))),
                  source_);
    const absl::Time until = absl::Now() + absl::Seconds(5);  // gRPC: 7 s at least
    for (int i = 0; i < 5; ++i) {
      pollfd wait = {listener, POLLIN, 0};
      const auto left = absl::ToInt64Milliseconds(until - absl::Now());
      ASSERT_EQ(poll(&wait, 1, static_cast<int>(std::max<int64_t>(left, 0))), 1) << i;
      close(accept(listener, nullptr, nullptr));
    }
  }
  close(listener);
}

// A connection may be dead without anybody saying so, or end at the one of many
// receivers that hangs.
TEST_F(Push, ConnectsAnewAfterOneThatGotNoAnswer) {
  Receiver receiver;
  receiver.BeSilent();
  OtlpTarget target = TargetOf(receiver.url());
  target.timeout = absl::Milliseconds(100);
  OtlpPush push(target, source_);
  ASSERT_GE(receiver.WaitFor(2), 2u);
  EXPECT_GE(receiver.peers(), 2u);
}

// An authority of one's own, and who it says to be 127.0.0.1.
class PushByTls : public Push {
 protected:
  void SetUp() override {
    MakeAuthority("ours");
    MakeAuthority("others");
    Run("openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
        "-subj /CN=receiver -keyout key.pem "
        "-out request.pem && echo subjectAltName=IP:127.0.0.1 > extensions && "
        "openssl x509 -req -in request.pem -CA ours.pem -CAkey ours.key "
        "-CAcreateserial -days 1 -extfile extensions -out cert.pem");
    grpc::SslServerCredentialsOptions options;
    options.pem_key_cert_pairs.push_back({Text("key.pem"), Text("cert.pem")});
    receiver_ =
        std::make_unique<Receiver>("0.0.0.0:0", grpc::SslServerCredentials(options));
  }

  // What lulld says while it pushes to `host`, until the last push.
  std::string Said(const std::string& host, const std::string& authority) {
    auto target =
        FindOtlpTarget(absl::StrCat(host, ":", receiver_->port()),
                       Variables({{"OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret"},
                                  {"OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE",
                                   directory_ / (authority + ".pem")}}),
                       "/a.db");
    EXPECT_TRUE(target.ok()) << target.status();
    testing::internal::CaptureStderr();
    { OtlpPush push(*std::move(target), source_); }
    return testing::internal::GetCapturedStderr();
  }

  std::unique_ptr<Receiver> receiver_;

 private:
  void Run(const std::string& commands) {
    const std::string all =
        "(cd " + directory_.path() + " && " + commands + ") > /dev/null 2>&1";
    ASSERT_EQ(system(all.c_str()), 0) << "openssl is needed";
  }
  std::string Text(const std::string& name) {
    std::ifstream file(directory_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void MakeAuthority(const std::string& name) {
    Run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
        "-days 1 -subj /CN=" +
        name + " -keyout " + name + ".key -out " + name + ".pem");
  }

  test::TemporaryDirectory directory_;
};

TEST_F(PushByTls, GoesToWhomTheNamedAuthorityKnows) {
  EXPECT_EQ(Said("https://127.0.0.1", "ours"), "");
  EXPECT_EQ(receiver_->WaitFor(1), 1u);
  EXPECT_EQ(receiver_->key(), "secret");
}

TEST_F(PushByTls, GoesToNobodyElse) {
  for (const auto& [host, authority] : {std::pair("https://127.0.0.1", "others"),
                                        std::pair("https://127.0.0.2", "ours"),
                                        std::pair("http://127.0.0.1", "ours")}) {
    EXPECT_THAT(Said(host, authority), HasSubstr("metrics do not arrive at http"))
        << host;
  }
  EXPECT_EQ(receiver_->got(), 0u);
}

TEST(OtlpOfACollector, SaysAtItsEndThatRunsGoOn) {
  Receiver receiver;
  test::TemporaryDirectory directory;
  CollectorConfig config;
  config.listen = *ParseListenAddress("unix:" + (directory / "c.sock"));
  config.database = directory / "a.db";
  config.otlp = *FindOtlpTarget(receiver.url(), Variables({}), config.database);
  auto collector = Collector::Start(config);
  ASSERT_TRUE(collector.ok()) << collector.status();
  test::FakeRelay relay(
      grpc::CreateChannel((*collector)->address(), grpc::InsecureChannelCredentials()));
  relay.Send(test::MakeHello(test::MakeJobId(1)));
  lull::v1::Batch batch;
  batch.set_sequence(1);
  *batch.add_processes() = test::MakeProcess(1, 101, 0);
  test::AddCounters(batch, 1, 0, 0, test::kJobStartNs + 1);
  relay.Send(batch);
  ASSERT_TRUE(relay.AwaitAcknowledgement(1));
  (*collector)->Stop();
  ASSERT_EQ(receiver.WaitFor(1), 1u);
  std::map<std::string, int64_t> told;
  const auto request = receiver.Last();
  for (const auto& metric : request.resource_metrics(0).scope_metrics(0).metrics()) {
    for (const auto& point : metric.gauge().data_points()) {
      std::string what;
      for (const auto& label : point.attributes()) {
        if (label.key() == "what") what = label.value().string_value();
      }
      told[absl::StrCat(metric.name(), " ", what)] = point.as_int();
    }
  }
  EXPECT_EQ(told["lull.run.running "], 1);
  EXPECT_EQ(told["lull.run.incomplete end_unseen"], 0);
}

TEST(OtlpOption, NeedsNoValue) {
  EXPECT_FALSE(test::Parsed({}).pushes_metrics);
  EXPECT_TRUE(test::Parsed({"--otlp", "--private"}).pushes_metrics);
  EXPECT_EQ(test::Parsed({"--otlp", "http://a:1"}).otlp, "http://a:1");
}

}  // namespace
}  // namespace lull::collector
