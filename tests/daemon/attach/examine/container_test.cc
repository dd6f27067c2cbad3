// Footholds in real namespaces: a child that sees other files than we do loads what was
// put there for it, and reaches the socket.
#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "daemon/attach/examine/foothold.h"

namespace lull::attach {
namespace {

namespace fs = std::filesystem;
using ::testing::StartsWith;

// Runs in the child, in its own namespaces: 0, or the line of what went wrong.
int LoadAndConnect(const std::string& library, const std::string& socket_path) {
  if (dlopen(library.c_str(), RTLD_NOW) == nullptr) return __LINE__;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof(address.sun_path)) return __LINE__;
  memcpy(address.sun_path, socket_path.c_str(), socket_path.size() + 1);
  int client = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  bool connected =
      connect(client, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  return connected ? 0 : __LINE__;
}

// A child that enters namespaces, then does as told over a socket pair.
class Container {
 public:
  // `enter` returns 0, or the line of what went wrong; it may wait for `mapped`.
  explicit Container(std::function<int(int channel)> enter,
                     std::function<void(pid_t)> prepare = nullptr) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    channel_ = ends[0];
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      Serve(ends[1], enter);
    }
    close(ends[1]);
    if (prepare) {
      EXPECT_EQ(Answer(), 0);  // has its namespaces
      prepare(pid_);
      Send("go");
    }
    entered_ = Answer();
  }
  ~Container() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(channel_);
  }

  pid_t pid() const { return pid_; }
  int entered() const { return entered_; }
  int LoadAndConnect(const Foothold& foothold) {
    Send(foothold.library_as_target);
    Send(foothold.socket_as_target);
    return Answer();
  }

  static void Tell(int channel, int line) {
    (void)!write(channel, &line, sizeof(line));
  }
  static std::string Hear(int channel) {
    char text[256];
    ssize_t size = read(channel, text, sizeof(text));
    if (size <= 0) _exit(0);
    return std::string(text, static_cast<size_t>(size));
  }

 private:
  [[noreturn]] static void Serve(int channel, const std::function<int(int)>& enter) {
    Tell(channel, enter(channel));
    std::string library = Hear(channel);
    Tell(channel, attach::LoadAndConnect(library, Hear(channel)));
    pause();
    _exit(0);
  }
  void Send(const std::string& text) {
    EXPECT_EQ(write(channel_, text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
  }
  int Answer() {
    int line = -1;
    EXPECT_EQ(read(channel_, &line, sizeof(line)), static_cast<ssize_t>(sizeof(line)));
    return line;
  }

  pid_t pid_ = -1;
  int channel_ = -1;
  int entered_ = -1;
};

// Another view of the files: the writable places are new, and those before /tmp cannot
// hold programs.
int CoverPlaces() {
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return __LINE__;
  if (mount("none", "/run", "tmpfs", MS_NOEXEC, nullptr) != 0) return __LINE__;
  if (mount("none", "/tmp", "tmpfs", 0, "mode=1777") != 0) return __LINE__;
  return 0;
}

class ContainerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (getuid() != 0) GTEST_SKIP() << "making namespaces needs root";
    std::string name = ::testing::TempDir() + "lull-install-XXXXXX";
    folder_ = mkdtemp(name.data());
    options_.library = folder_ + "/liblull.so";
    options_.runtime_directory = folder_;
    fs::copy_file(LULL_SHIM, options_.library);
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  void CheckLoadsAndConnects(Container& container, uint32_t user) {
    ASSERT_EQ(container.entered(), 0);
    Process process = ReadProcess(container.pid(), Procfs());
    EXPECT_EQ(process.mount_namespace, Namespace::kOther);
    EXPECT_EQ(process.users.effective, user);
    std::string seen_from_here;
    {
      auto foothold = MakeFoothold(process, options_);
      ASSERT_TRUE(foothold.ok()) << foothold.status();
      EXPECT_THAT(foothold->as_target, StartsWith("/tmp/lull-"));
      EXPECT_FALSE(fs::exists(foothold->as_target));  // in our own view
      seen_from_here =
          "/proc/" + std::to_string(container.pid()) + "/root" + foothold->as_target;
      struct stat info;
      ASSERT_EQ(stat(seen_from_here.c_str(), &info), 0);
      EXPECT_EQ(info.st_uid, user);
      EXPECT_EQ(info.st_mode & 07777, 0700u);
      auto listener = foothold->Listen();
      ASSERT_TRUE(listener.ok()) << listener.status();
      EXPECT_EQ(container.LoadAndConnect(*foothold), 0);
    }
    EXPECT_FALSE(fs::exists(seen_from_here));
    EXPECT_TRUE(fs::is_empty("/proc/" + std::to_string(container.pid()) + "/root/tmp"));
  }

  std::string folder_;
  FootholdOptions options_;
};

TEST_F(ContainerTest, WithItsOwnMountsLoadsTheShimAndReachesTheSocket) {
  Container container(
      [](int) { return unshare(CLONE_NEWNS) != 0 ? __LINE__ : CoverPlaces(); });
  CheckLoadsAndConnects(container, 0);
}

TEST_F(ContainerTest, OfAnotherUserLoadsTheShimAndReachesTheSocket) {
  Container container([](int) {
    if (unshare(CLONE_NEWNS) != 0) return __LINE__;
    int line = CoverPlaces();
    if (line != 0) return line;
    bool dropped =
        setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0;
    return dropped ? 0 : __LINE__;
  });
  CheckLoadsAndConnects(container, 65534);
}

// File systems that are mounted in a user namespace refuse files of users that it does
// not know, and our root is one of them.
TEST_F(ContainerTest, WithItsOwnUsersLoadsTheShimAndReachesTheSocket) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "a process with a thread of TSan's may not leave its users";
#endif
  Container container(
      [](int channel) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return __LINE__;
        Container::Tell(channel, 0);
        Container::Hear(channel);  // the users are mapped
        if (setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0) return __LINE__;
        return CoverPlaces();
      },
      [](pid_t pid) {
        std::string process = "/proc/" + std::to_string(pid);
        std::ofstream(process + "/uid_map") << "0 65534 1\n";
        std::ofstream(process + "/gid_map") << "0 65534 1\n";
      });
  CheckLoadsAndConnects(container, 65534);
}

}  // namespace
}  // namespace lull::attach
