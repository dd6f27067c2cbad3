// Folders for the shim inside of another process's view, which is a folder here.
#include "daemon/attach/examine/foothold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "daemon/attach/examine/inside.h"
#include "tests/daemon/attach/examine/fake_proc.h"

namespace lull::attach {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class FootholdTest : public ::testing::Test {
 protected:
  FootholdTest() : inside_(proc_.folder() + "/inside") {
    fs::create_directories(inside_ + "/tmp");
    fs::create_directories(proc_.folder() + "/install");
    options_.library = proc_.folder() + "/install/liblull.so";
    options_.runtime_directory = proc_.folder() + "/run";
    std::ofstream(options_.library) << std::string(200'000, 'x');
    FakeProcess fake;
    fake.pid = 7;
    proc_.Add(fake);
    fake.pid = 8;
    fake.inner_mounts = "4026539999";
    fake.root_folder = inside_;
    proc_.Add(fake);
  }

  Process Ours() { return ReadProcess(7, proc_.procfs()); }
  Process Container() { return ReadProcess(8, proc_.procfs()); }
  absl::StatusOr<Foothold> Make(const Process& process) {
    return MakeFoothold(process, options_, proc_.procfs());
  }
  bool IsEmptyInside(const std::string& folder) {
    return fs::is_empty(inside_ + folder);
  }

  FakeProc proc_;
  std::string inside_;
  FootholdOptions options_;
};

TEST_F(FootholdTest, CopiesNothingForATargetThatSeesOurFiles) {
  auto foothold = Make(Ours());
  ASSERT_TRUE(foothold.ok()) << foothold.status();
  EXPECT_FALSE(foothold->is_copy());
  EXPECT_EQ(foothold->library_ours, options_.library);
  EXPECT_EQ(foothold->library_as_target, options_.library);
  EXPECT_EQ(foothold->socket_ours, foothold->socket_as_target);
  EXPECT_THAT(foothold->socket_ours, StartsWith(options_.runtime_directory));
}

TEST_F(FootholdTest, RemovesTheSocketInOurOwnFolder) {
  fs::create_directories(options_.runtime_directory);
  {
    auto foothold = Make(Ours());
    ASSERT_TRUE(foothold.ok());
    auto listener = foothold->Listen();
    ASSERT_TRUE(listener.ok()) << listener.status();
    EXPECT_TRUE(fs::is_socket(foothold->socket_ours));
  }
  EXPECT_TRUE(fs::is_empty(options_.runtime_directory));
}

TEST_F(FootholdTest, RefusesARuntimeFolderTooLongForASocket) {
  options_.runtime_directory = "/" + std::string(100, 'r');
  EXPECT_THAT(Make(Ours()).status().message(), HasSubstr("LULL_RUNTIME_DIR"));
}

TEST_F(FootholdTest, MakesAPrivateFolderWithTheShimForAContainerAndRemovesIt) {
  std::ofstream(proc_.folder() + "/install/libunwind.so.8") << "unwind";
  {
    auto foothold = Make(Container());
    ASSERT_TRUE(foothold.ok()) << foothold.status();
    EXPECT_TRUE(foothold->is_copy());
    EXPECT_THAT(foothold->as_target, MatchesRegex("/tmp/lull-[0-9a-f]{16}"));
    EXPECT_EQ(foothold->library_as_target, foothold->as_target + "/liblull.so");
    EXPECT_EQ(foothold->socket_as_target, foothold->as_target + "/s");
    struct stat info;
    ASSERT_EQ(stat((inside_ + foothold->as_target).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0700u);
    EXPECT_EQ(Contents(inside_ + foothold->library_as_target),
              Contents(options_.library));
    EXPECT_EQ(Contents(foothold->library_ours), Contents(options_.library));
    EXPECT_EQ(Contents(inside_ + foothold->as_target + "/libunwind.so.8"), "unwind");
  }
  EXPECT_TRUE(IsEmptyInside("/tmp"));
}

TEST_F(FootholdTest, ListensWhereTheTargetCanConnect) {
  auto foothold = Make(Container());
  ASSERT_TRUE(foothold.ok()) << foothold.status();
  auto listener = foothold->Listen();
  ASSERT_TRUE(listener.ok()) << listener.status();
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  // The view of the target, whose root is not ours here.
  ASSERT_EQ(chdir(inside_.c_str()), 0);
  std::string path = foothold->socket_as_target.substr(1);
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd client(socket(AF_UNIX, SOCK_SEQPACKET, 0));
  EXPECT_EQ(
      connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0)
      << strerror(errno);
  struct stat info;
  ASSERT_EQ(stat((inside_ + foothold->socket_as_target).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_EQ(chdir("/"), 0);
}

TEST_F(FootholdTest, FollowsNoSymbolicLinkOutOfTheContainer) {
  std::string outside = proc_.folder() + "/outside";
  fs::create_directories(outside + "/tmp");
  fs::remove_all(inside_ + "/tmp");
  fs::create_directory_symlink(outside, inside_ + "/tmp");
  fs::create_directory_symlink(outside, inside_ + "/run");
  fs::create_directory_symlink(outside, inside_ + "/var");
  fs::create_directory_symlink(outside, inside_ + "/dev");
  auto foothold = Make(Container());
  EXPECT_TRUE(absl::IsFailedPrecondition(foothold.status())) << foothold.status();
  for (const char* place : {"/run ", "/tmp ", "/var/tmp ", "/dev/shm "}) {
    EXPECT_THAT(foothold.status().message(), HasSubstr(place));
  }
  EXPECT_TRUE(fs::is_empty(outside + "/tmp"));
}

TEST_F(FootholdTest, StaysInItsFolderWhenTheTargetPutsALinkInItsPlace) {
  std::string outside = proc_.folder() + "/outside";
  fs::create_directories(outside);
  std::ofstream(outside + "/liblull.so") << "not ours";
  std::ofstream(outside + "/s") << "not ours";
  {
    auto foothold = Make(Container());
    ASSERT_TRUE(foothold.ok());
    fs::rename(inside_ + foothold->as_target, inside_ + "/tmp/moved");
    fs::create_directory_symlink(outside, inside_ + foothold->as_target);
    auto listener = foothold->Listen();
    EXPECT_TRUE(listener.ok()) << listener.status();
    EXPECT_TRUE(fs::is_socket(inside_ + "/tmp/moved/s"));
  }
  EXPECT_EQ(Contents(outside + "/liblull.so"), "not ours");
  EXPECT_EQ(Contents(outside + "/s"), "not ours");
  EXPECT_TRUE(IsEmptyInside("/tmp/moved"));
}

TEST_F(FootholdTest, FindsThePlaceWithoutMakingAnything) {
  auto place = FindFoothold(Container(), proc_.procfs());
  ASSERT_TRUE(place.ok()) << place.status();
  EXPECT_EQ(*place, "/tmp");
  EXPECT_TRUE(IsEmptyInside("/tmp"));
}

TEST_F(FootholdTest, LeavesNothingBehindWhenTheShimIsMissing) {
  fs::remove(options_.library);
  EXPECT_FALSE(Make(Container()).ok());
  EXPECT_TRUE(IsEmptyInside("/tmp"));
}

TEST_F(FootholdTest, SaysThatTheProcessIsGone) {
  Process process = Container();
  proc_.Remove(8, "root");
  EXPECT_TRUE(absl::IsUnavailable(Make(process).status()));
}

TEST_F(FootholdTest, WorksWithTheRightsOfTheTargetsUser) {
  if (getuid() != 0) GTEST_SKIP() << "only root can act as somebody else";
  Process process = Container();
  process.users = {65534, 65534, 65534};
  process.groups = {65534, 65534, 65534};
  fs::permissions(proc_.folder(), fs::perms::owner_all | fs::perms::others_exec);
  fs::permissions(inside_ + "/tmp", fs::perms::owner_all);
  EXPECT_THAT(Make(process).status().message(), HasSubstr("/tmp not writable"));
  fs::permissions(inside_ + "/tmp", fs::perms::all);
  {
    auto foothold = Make(process);
    ASSERT_TRUE(foothold.ok()) << foothold.status();
    struct stat info;
    ASSERT_EQ(stat((inside_ + foothold->library_as_target).c_str(), &info), 0);
    EXPECT_EQ(info.st_uid, 65534u);
    auto listener = foothold->Listen();
    ASSERT_TRUE(listener.ok()) << listener.status();
    ASSERT_EQ(stat((inside_ + foothold->socket_as_target).c_str(), &info), 0);
    EXPECT_EQ(info.st_uid, 65534u);
  }
  EXPECT_TRUE(IsEmptyInside("/tmp"));
  std::ofstream(proc_.folder() + "/mine") << "x";  // we are ourselves again
  struct stat info;
  ASSERT_EQ(stat((proc_.folder() + "/mine").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 0u);
}

}  // namespace
}  // namespace lull::attach
