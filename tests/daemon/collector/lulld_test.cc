// The executable: what it says and how it ends.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "control.grpc.pb.h"
#include "tests/daemon/collector/fake_relay.h"
#include "tests/daemon/collector/lulld_process.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/storage/temporary_directory.h"

namespace lull::test {
namespace {

using ::testing::HasSubstr;

class Lulld : public ::testing::Test {
 protected:
  std::string Socket() const { return directory_ / "run/c.sock"; }

  std::vector<std::string> Arguments(std::vector<std::string> more = {}) const {
    std::vector<std::string> all = {"--listen", "unix:" + Socket(), "--database",
                                    directory_ / "a.db"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  void ExpectError(const std::vector<std::string>& arguments, int exit_status,
                   const std::string& text) {
    LulldProcess lulld(arguments);
    EXPECT_EQ(lulld.Wait(), exit_status) << lulld.errors();
    EXPECT_THAT(lulld.errors(), HasSubstr(text));
    if (exit_status == 1) {
      EXPECT_THAT(lulld.errors(), ::testing::StartsWith("lulld: "));
      EXPECT_EQ(std::count(lulld.errors().begin(), lulld.errors().end(), '\n'), 1)
          << lulld.errors();
    }
  }

  std::string WriteFile(const std::string& name, const std::string& text, mode_t mode) {
    std::string path = directory_ / name;
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
    return path;
  }

  TemporaryDirectory directory_;
};

TEST_F(Lulld, CommitsAndEndsWellOnSigterm) {
  LulldProcess lulld(Arguments());
  ASSERT_TRUE(lulld.AwaitSocket(Socket()));
  auto channel =
      grpc::CreateChannel("unix:" + Socket(), grpc::InsecureChannelCredentials());
  FakeRelay relay(channel);
  relay.Send(MakeHello(MakeJobId(1)));
  lull::v1::Batch batch;
  batch.set_sequence(1);
  relay.Send(batch);
  ASSERT_TRUE(relay.AwaitAcknowledgement(1));
  lulld.Signal(SIGTERM);
  EXPECT_EQ(lulld.Wait(), 0);
  EXPECT_EQ(lulld.errors(), "");
}

TEST_F(Lulld, MakesItsSocketAnewWhenItsFolderIsRemoved) {
  LulldProcess lulld(Arguments());
  ASSERT_TRUE(lulld.AwaitSocket(Socket()));
  auto channel =
      grpc::CreateChannel("unix:" + Socket(), grpc::InsecureChannelCredentials());
  FakeRelay relay(channel);
  relay.Send(MakeHello(MakeJobId(1)));
  for (int round = 0; round < 2; ++round) {
    // The folder, then the socket alone.
    std::filesystem::remove_all(round == 0 ? directory_ / "run" : Socket());
    ASSERT_TRUE(lulld.AwaitSocket(Socket()));
  }
  lull::v1::Batch batch;
  batch.set_sequence(1);
  relay.Send(batch);
  ASSERT_TRUE(relay.AwaitAcknowledgement(1)) << "the stream went on meanwhile";
  lulld.Signal(SIGTERM);
  EXPECT_EQ(lulld.Wait(), 0);
  EXPECT_FALSE(std::filesystem::exists(Socket()));
}

// Not a full disk, but the same to who writes: files that may not grow.
TEST_F(Lulld, RefusesWhileItCannotWriteAndGoesOnOnceItCan) {
  LulldProcess lulld(Arguments());
  ASSERT_TRUE(lulld.AwaitSocket(Socket()));
  auto channel =
      grpc::CreateChannel("unix:" + Socket(), grpc::InsecureChannelCredentials());
  auto send = [&](FakeRelay& relay, uint64_t sequence) {
    relay.Send(MakeHello(MakeJobId(1)));
    lull::v1::Batch batch;
    batch.set_sequence(sequence);
    batch.add_processes()->set_key(sequence);
    batch.mutable_processes(0)->set_command(std::string(4000, 'x'));
    relay.Send(batch);
  };
  {
    FakeRelay relay(channel);
    send(relay, 1);
    ASSERT_TRUE(relay.AwaitAcknowledgement(1));
  }
  rlimit unlimited;
  const rlimit none = {1, RLIM_INFINITY};
  ASSERT_EQ(prlimit(lulld.pid(), RLIMIT_FSIZE, &none, &unlimited), 0);
  for (int i = 0; i < 3; ++i) {
    FakeRelay relay(channel);
    send(relay, 2);
    EXPECT_EQ(relay.End(false).error_code(), grpc::StatusCode::UNAVAILABLE);
  }
  ASSERT_EQ(prlimit(lulld.pid(), RLIMIT_FSIZE, &unlimited, nullptr), 0);
  FakeRelay relay(channel);
  send(relay, 2);
  EXPECT_TRUE(relay.AwaitAcknowledgement(2));
  lulld.Signal(SIGTERM);
  EXPECT_EQ(lulld.Wait(), 0);
}

TEST_F(Lulld, EndsWhenAnotherTookItsPlace) {
  LulldProcess lulld(Arguments());
  ASSERT_TRUE(lulld.AwaitSocket(Socket()));
  std::filesystem::remove_all(directory_ / "run");
  std::filesystem::create_directory(directory_ / "run");
  std::filesystem::permissions(directory_ / "run", std::filesystem::perms::owner_all);
  std::string other = WriteFile("run/c.sock.lock", "", 0600);
  int lock = open(other.c_str(), O_RDWR);
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) GTEST_SKIP() << "it was faster";
  EXPECT_EQ(lulld.Wait(), 0);
  close(lock);
}

TEST_F(Lulld, EndsWhenAskedOverTheControlService) {
  LulldProcess lulld(Arguments());
  ASSERT_TRUE(lulld.AwaitSocket(Socket()));
  auto channel =
      grpc::CreateChannel("unix:" + Socket(), grpc::InsecureChannelCredentials());
  grpc::ClientContext context;
  lull::v1::ShutdownReply reply;
  EXPECT_TRUE(lull::v1::Control::NewStub(channel)->Shutdown(&context, {}, &reply).ok());
  EXPECT_EQ(lulld.Wait(), 0);
}

TEST_F(Lulld, EndsWhenPrivateAndIdleButNotWhileARelayIsThere) {
  LulldProcess lulld(Arguments({"--private", "--idle-exit", "1"}));
  ASSERT_TRUE(lulld.AwaitSocket(Socket()));
  auto channel =
      grpc::CreateChannel("unix:" + Socket(), grpc::InsecureChannelCredentials());
  {
    FakeRelay relay(channel);
    relay.Send(MakeHello(MakeJobId(1)));
    usleep(2'500'000);
    lull::v1::Batch batch;
    batch.set_sequence(1);
    relay.Send(batch);
    EXPECT_TRUE(relay.AwaitAcknowledgement(1));
  }
  EXPECT_EQ(lulld.Wait(), 0);
}

TEST_F(Lulld, CallsAWrongCommandLineAUsageError) {
  ExpectError(Arguments({"--nonsense"}), 2, "--nonsense");
  ExpectError({"--listen", "nowhere"}, 2, "neither unix:PATH nor HOST:PORT");
  ExpectError(Arguments({"--max-age", "soon"}), 2, "--max-age");
  ExpectError(Arguments({"--log-level", "loud"}), 2, "--log-level");
  ExpectError(Arguments({"--idle-exit", "5"}), 2, "--private");
  ExpectError(Arguments({"--tls-cert", "a.pem"}), 2, "--tls-key");
  ExpectError({"--listen", "0.0.0.0:0", "--database", directory_ / "a.db"}, 2,
              "--insecure-plain-tcp");
  // What it is called says nothing about where it is.
  ExpectError({"--listen", "127.0.0.1.invalid:0", "--database", directory_ / "a.db"}, 2,
              "--insecure-plain-tcp");
  ExpectError({"--listen", "0.0.0.0:0", "--insecure-plain-tcp", "--tls-cert", "a.pem",
               "--tls-key", "b.pem"},
              2, "--insecure-plain-tcp");
}

TEST_F(Lulld, SaysWhatIsWrongWithATokenFile) {
  ExpectError(Arguments({"--token-file", directory_ / "none"}), 1,
              "cannot read the token");
  ExpectError(Arguments({"--token-file", WriteFile("open", "secret\n", 0644)}), 1,
              "chmod 600");
  ExpectError(Arguments({"--token-file", WriteFile("empty", "\n", 0600)}), 1,
              "must hold a line");
  ExpectError(Arguments({"--token-file", WriteFile("short", "write abc\n", 0600)}), 1,
              "could be guessed");
  ExpectError(Arguments({"--token-file", WriteFile("one", std::string(32, 'a'), 0600)}),
              1, "a token of its own");
}

TEST_F(Lulld, SaysWhatIsWrongWithItsSurroundings) {
  std::string notes = WriteFile("notes", "dear to me, and longer than a header", 0600);
  ExpectError({"--listen", "unix:" + Socket(), "--database", notes}, 1,
              "is not a database of lull");
  ExpectError({"--listen", "unix:" + Socket(), "--database", "/proc/nowhere/a.db"}, 1,
              "/proc/nowhere");
  ExpectError(
      {"--listen", "unix:" + notes + "/c.sock", "--database", directory_ / "a.db"}, 1,
      notes);
}

TEST_F(Lulld, RefusesToStartTwiceOnOneSocketOrOneDatabase) {
  LulldProcess first(Arguments());
  ASSERT_TRUE(first.AwaitSocket(Socket()));
  ExpectError(Arguments(), 1, "another lulld listens on unix:");
  ExpectError({"--listen", "unix:" + (directory_ / "run/d.sock"), "--database",
               directory_ / "a.db"},
              1, "another lulld (pid ");
}

}  // namespace
}  // namespace lull::test
