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
#include "daemon/collector/collector.h"
#include "query.grpc.pb.h"
#include "tests/daemon/collector/fake_relay.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/storage/temporary_directory.h"

namespace lull::collector {
namespace {

using ::testing::HasSubstr;

CollectorConfig Config(const test::TemporaryDirectory& directory,
                       const std::string& listen) {
  CollectorConfig config;
  config.listen = *ParseListenAddress(listen);
  config.database = directory / "a.db";
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

TEST(Token, IsAskedOfEveryCall) {
  test::TemporaryDirectory directory;
  CollectorConfig config = Config(directory, "127.0.0.1:0");
  config.token = "right";
  auto collector = Collector::Start(config);
  ASSERT_TRUE(collector.ok()) << collector.status();
  auto channel =
      grpc::CreateChannel((*collector)->address(), grpc::InsecureChannelCredentials());
  for (const char* token : {"", "wrong", "righ", "rightt"}) {
    EXPECT_EQ(GetStatus(channel, token).error_code(),
              grpc::StatusCode::UNAUTHENTICATED);
    test::FakeRelay relay(channel, token);
    relay.Send(test::MakeHello(test::MakeJobId(1)));
    EXPECT_EQ(relay.End(false).error_code(), grpc::StatusCode::UNAUTHENTICATED)
        << token;
    grpc::ClientContext context;
    if (*token != '\0')
      context.AddMetadata("authorization", std::string("Bearer ") + token);
    lull::v1::ListJobsReply jobs;
    EXPECT_EQ(
        lull::v1::Query::NewStub(channel)->ListJobs(&context, {}, &jobs).error_code(),
        grpc::StatusCode::UNAUTHENTICATED);
    grpc::ClientContext another;
    if (*token != '\0') {
      another.AddMetadata("authorization", std::string("Bearer ") + token);
    }
    lull::v1::ArmReply armed;
    EXPECT_EQ(
        lull::v1::Control::NewStub(channel)->Arm(&another, {}, &armed).error_code(),
        grpc::StatusCode::UNAUTHENTICATED);
  }
  EXPECT_TRUE(GetStatus(channel, "right").ok());
  test::FakeRelay relay(channel, "right");
  relay.Send(test::MakeHello(test::MakeJobId(1)));
  lull::v1::Batch batch;
  batch.set_sequence(1);
  relay.Send(batch);
  EXPECT_TRUE(relay.AwaitAcknowledgement(1));
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
  test::FakeRelay relay(secure);
  relay.Send(test::MakeHello(test::MakeJobId(1)));
  lull::v1::Batch batch;
  batch.set_sequence(1);
  relay.Send(batch);
  EXPECT_TRUE(relay.AwaitAcknowledgement(1));

  auto plain =
      grpc::CreateChannel((*collector)->address(), grpc::InsecureChannelCredentials());
  EXPECT_FALSE(GetStatus(plain).ok());
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
