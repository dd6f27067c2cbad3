// Who gets in: tokens, TLS, sockets and ports.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "control.grpc.pb.h"
#include "daemon/collector/serve/collector.h"
#include "query.grpc.pb.h"
#include "tests/daemon/collector/fake_relay.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/storage/temporary_directory.h"

namespace lull::collector {
namespace {

using ::testing::HasSubstr;

const Tokens kTokens = {"may-write", "may-read", "may-control"};

CollectorConfig Config(const test::TemporaryDirectory& directory,
                       const std::string& listen) {
  CollectorConfig config;
  config.listen = *ParseListenAddress(listen);
  config.database = directory / "a.db";
  if (!config.listen.is_unix()) config.tokens = kTokens;
  return config;
}

grpc::Status GetStatus(const std::shared_ptr<grpc::Channel>& channel,
                       const std::string& token = "") {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
  lull::v1::StatusReply reply;
  return lull::v1::Control::NewStub(channel)->GetStatus(&context, {}, &reply);
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// One call of each kind with one token, and what became of it.
class Caller {
 public:
  Caller(std::shared_ptr<grpc::Channel> channel, std::string token)
      : channel_(std::move(channel)), token_(std::move(token)) {}

  grpc::StatusCode Deliver() {
    test::FakeRelay relay(channel_, token_);
    relay.Send(test::MakeHello(test::MakeJobId(1)));
    lull::v1::Batch batch;
    batch.set_sequence(1);
    relay.Send(batch);
    if (relay.AwaitAcknowledgement(1)) return grpc::StatusCode::OK;
    return relay.End(false).error_code();
  }
  grpc::StatusCode Ask() {
    lull::v1::ListJobsReply jobs;
    return Call([&](auto* context) {
      return lull::v1::Query::NewStub(channel_)->ListJobs(context, {}, &jobs);
    });
  }
  // NOT_FOUND when it got in: there is no such job.
  grpc::StatusCode Arm() {
    lull::v1::ArmRequest request;
    request.set_job("nowhere");
    lull::v1::ArmReply armed;
    return Call([&](auto* context) {
      return lull::v1::Control::NewStub(channel_)->Arm(context, request, &armed);
    });
  }
  grpc::StatusCode Mark() {
    lull::v1::MarkRequest request;
    request.add_jobs("nowhere");
    lull::v1::MarkReply marked;
    return Call([&](auto* context) {
      return lull::v1::Control::NewStub(channel_)->Mark(context, request, &marked);
    });
  }
  grpc::StatusCode Shutdown() {
    lull::v1::ShutdownReply reply;
    return Call([&](auto* context) {
      return lull::v1::Control::NewStub(channel_)->Shutdown(context, {}, &reply);
    });
  }
  grpc::StatusCode Status() { return GetStatus(channel_, token_).error_code(); }

 private:
  template <typename Do>
  grpc::StatusCode Call(Do call) {
    grpc::ClientContext context;
    if (!token_.empty()) context.AddMetadata("authorization", "Bearer " + token_);
    return call(&context).error_code();
  }

  std::shared_ptr<grpc::Channel> channel_;
  std::string token_;
};

TEST(Token, GivesOneRightAndNoOther) {
  test::TemporaryDirectory directory;
  auto collector = Collector::Start(Config(directory, "127.0.0.1:0"));
  ASSERT_TRUE(collector.ok()) << collector.status();
  auto channel =
      grpc::CreateChannel((*collector)->address(), grpc::InsecureChannelCredentials());
  constexpr auto kOk = grpc::StatusCode::OK;
  constexpr auto kNo = grpc::StatusCode::UNAUTHENTICATED;
  for (const char* token : {"", "wrong", "may-writ", "may-writee", "may-"}) {
    Caller nobody(channel, token);
    EXPECT_EQ(nobody.Status(), kNo) << token;
    EXPECT_EQ(nobody.Deliver(), kNo) << token;
    EXPECT_EQ(nobody.Ask(), kNo) << token;
    EXPECT_EQ(nobody.Arm(), kNo) << token;
    EXPECT_EQ(nobody.Mark(), kNo) << token;
  }
  Caller writer(channel, "may-write");
  EXPECT_EQ(writer.Status(), kOk);
  EXPECT_EQ(writer.Deliver(), kOk);
  EXPECT_EQ(writer.Ask(), kNo);
  EXPECT_EQ(writer.Arm(), kNo);
  EXPECT_EQ(writer.Mark(), kNo);
  Caller reader(channel, "may-read");
  EXPECT_EQ(reader.Status(), kOk);
  EXPECT_EQ(reader.Deliver(), kNo);
  EXPECT_EQ(reader.Ask(), kOk);
  EXPECT_EQ(reader.Arm(), kNo);
  EXPECT_EQ(reader.Mark(), kNo);
  Caller controller(channel, "may-control");
  EXPECT_EQ(controller.Status(), kOk);
  EXPECT_EQ(controller.Deliver(), kNo);
  EXPECT_EQ(controller.Ask(), kNo);
  EXPECT_EQ(controller.Arm(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(controller.Mark(), grpc::StatusCode::NOT_FOUND);
  lull::v1::StatusRequest to_write;
  to_write.set_to_write(true);
  for (const std::string& token : {kTokens.write, kTokens.read, kTokens.control}) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + token);
    lull::v1::StatusReply reply;
    EXPECT_EQ(lull::v1::Control::NewStub(channel)
                  ->GetStatus(&context, to_write, &reply)
                  .error_code(),
              token == kTokens.write ? kOk : kNo);
  }
}

// While jobs are marked no relay is answered: who may mark may not hold that up.
TEST(Token, MarksNoMoreThanALittleWhileTakes) {
  test::TemporaryDirectory directory;
  auto collector = Collector::Start(Config(directory, "127.0.0.1:0"));
  ASSERT_TRUE(collector.ok()) << collector.status();
  auto channel =
      grpc::CreateChannel((*collector)->address(), grpc::InsecureChannelCredentials());
  ASSERT_EQ(Caller(channel, "may-write").Deliver(), grpc::StatusCode::OK);
  auto mark = [&](int jobs, int tags) {
    lull::v1::MarkRequest request;
    for (int i = 0; i < jobs; ++i) request.add_jobs(test::MakeJobId(1));
    for (int i = 0; i < tags; ++i) request.add_remove_tags("none");
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer may-control");
    lull::v1::MarkReply reply;
    return lull::v1::Control::NewStub(channel)->Mark(&context, request, &reply);
  };
  EXPECT_EQ(mark(1000, 0).error_code(), grpc::StatusCode::OK);
  EXPECT_EQ(mark(1001, 0).error_message(),
            "these are 1001 jobs; at most 1000 are marked at once");
  EXPECT_EQ(mark(1, 1000).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(mark(1, 1001).error_message(), "these are more than 1000 tags");
  lull::v1::ListJobsRequest request;
  for (int i = 0; i < 33; ++i) request.add_tags("a");
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer may-read");
  lull::v1::ListJobsReply jobs;
  EXPECT_EQ(lull::v1::Query::NewStub(channel)
                ->ListJobs(&context, request, &jobs)
                .error_message(),
            "a job has 32 tags at most");
}

TEST(Token, EndsNoCollectorOverAPort) {
  test::TemporaryDirectory directory;
  auto collector = Collector::Start(Config(directory, "127.0.0.1:0"));
  ASSERT_TRUE(collector.ok()) << collector.status();
  auto channel =
      grpc::CreateChannel((*collector)->address(), grpc::InsecureChannelCredentials());
  for (const char* token : {"", "may-write", "may-read", "may-control"}) {
    EXPECT_EQ(Caller(channel, token).Shutdown(), grpc::StatusCode::PERMISSION_DENIED);
  }
  EXPECT_FALSE((*collector)->shutdown_requested());
}

TEST(Token, OfARightThatIsNotGivenIsNotTheEmptyOne) {
  test::TemporaryDirectory directory;
  CollectorConfig config = Config(directory, "127.0.0.1:0");
  config.tokens = {"may-write", "", ""};
  auto collector = Collector::Start(config);
  ASSERT_TRUE(collector.ok()) << collector.status();
  auto channel =
      grpc::CreateChannel((*collector)->address(), grpc::InsecureChannelCredentials());
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer ");
  lull::v1::ListJobsReply jobs;
  EXPECT_EQ(
      lull::v1::Query::NewStub(channel)->ListJobs(&context, {}, &jobs).error_code(),
      grpc::StatusCode::UNAUTHENTICATED);
}

TEST(Token, IsNeededForEveryPort) {
  test::TemporaryDirectory directory;
  CollectorConfig config = Config(directory, "127.0.0.1:0");
  config.tokens = {};
  EXPECT_TRUE(absl::IsInvalidArgument(Collector::Start(config).status()));
}

TEST(Tls, CarriesAStreamAndRefusesPlainText) {
  test::TemporaryDirectory directory;
  std::string command =
      "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost "
      "-addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout " +
      (directory / "key.pem") + " -out " + (directory / "cert.pem") + " 2>/dev/null";
  ASSERT_EQ(system(command.c_str()), 0) << "openssl is needed";
  CollectorConfig config = Config(directory, "127.0.0.1:0");
  config.tls_cert = ReadAll(directory / "cert.pem");
  config.tls_key = ReadAll(directory / "key.pem");
  auto collector = Collector::Start(config);
  ASSERT_TRUE(collector.ok()) << collector.status();

  grpc::SslCredentialsOptions trust;
  trust.pem_root_certs = config.tls_cert;
  auto secure =
      grpc::CreateChannel((*collector)->address(), grpc::SslCredentials(trust));
  test::FakeRelay relay(secure, kTokens.write);
  relay.Send(test::MakeHello(test::MakeJobId(1)));
  lull::v1::Batch batch;
  batch.set_sequence(1);
  relay.Send(batch);
  EXPECT_TRUE(relay.AwaitAcknowledgement(1));

  auto plain =
      grpc::CreateChannel((*collector)->address(), grpc::InsecureChannelCredentials());
  EXPECT_FALSE(GetStatus(plain, kTokens.read).ok());
}

TEST(UnixSocket, IsForItsOwnerAlone) {
  test::TemporaryDirectory directory;
  std::string path = directory / "run/c.sock";
  auto collector = Collector::Start(Config(directory, "unix:" + path));
  ASSERT_TRUE(collector.ok()) << collector.status();
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_EQ(stat((directory / "run").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

// What the mode of a socket does not keep out, its peer's uid does.
TEST(UnixSocket, HangsUpOnAnotherUser) {
  if (getuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  test::TemporaryDirectory directory;
  std::string path = directory / "run/c.sock";
  auto collector = Collector::Start(Config(directory, "unix:" + path));
  ASSERT_TRUE(collector.ok()) << collector.status();
  for (const std::string& each : {directory.path(), directory / "run"}) {
    ASSERT_EQ(chmod(each.c_str(), 0755), 0);
  }
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  pid_t child = fork();
  if (child == 0) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (setuid(65534) != 0) _exit(2);
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0)
      _exit(3);
    char byte;
    _exit(read(fd, &byte, 1) == 0 ? 0 : 4);  // gRPC would send its settings
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(UnixSocket, HasRoomForOneCollector) {
  test::TemporaryDirectory directory;
  std::string listen = "unix:" + (directory / "run/c.sock");
  auto first = Collector::Start(Config(directory, listen));
  ASSERT_TRUE(first.ok()) << first.status();
  CollectorConfig config = Config(directory, listen);
  config.database = directory / "other.db";
  auto second = Collector::Start(config);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.status().message(), HasSubstr("another lulld listens on unix:"));
  EXPECT_TRUE(
      GetStatus(grpc::CreateChannel(listen, grpc::InsecureChannelCredentials())).ok());
}

TEST(UnixSocket, IsTakenOverFromADeadCollector) {
  test::TemporaryDirectory directory;
  std::string path = directory / "run/c.sock";
  ASSERT_EQ(mkdir((directory / "run").c_str(), 0700), 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  close(fd);
  auto collector = Collector::Start(Config(directory, "unix:" + path));
  ASSERT_TRUE(collector.ok()) << collector.status();
  EXPECT_TRUE(
      GetStatus(grpc::CreateChannel("unix:" + path, grpc::InsecureChannelCredentials()))
          .ok());
}

TEST(UnixSocket, DoesNotReplaceAFile) {
  test::TemporaryDirectory directory;
  std::string path = directory / "run/notes";
  ASSERT_EQ(mkdir((directory / "run").c_str(), 0700), 0);
  std::ofstream(path) << "dear to me";
  auto collector = Collector::Start(Config(directory, "unix:" + path));
  ASSERT_FALSE(collector.ok());
  EXPECT_EQ(ReadAll(path), "dear to me");
}

TEST(UnixSocket, WantsADirectoryThatOthersCannotWriteTo) {
  test::TemporaryDirectory directory;
  ASSERT_EQ(chmod(directory.path().c_str(), 0777), 0);
  auto collector =
      Collector::Start(Config(directory, "unix:" + (directory / "c.sock")));
  ASSERT_FALSE(collector.ok());
  EXPECT_THAT(collector.status().message(), HasSubstr(directory.path()));
}

TEST(Port, InUseIsAClearError) {
  test::TemporaryDirectory directory;
  auto first = Collector::Start(Config(directory, "127.0.0.1:0"));
  ASSERT_TRUE(first.ok()) << first.status();
  CollectorConfig config = Config(directory, (*first)->address());
  config.database = directory / "other.db";
  auto second = Collector::Start(config);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.status().message(), HasSubstr("cannot listen on 127.0.0.1:"));
  EXPECT_THAT(second.status().message(), HasSubstr("in use"));
}

}  // namespace
}  // namespace lull::collector
