#include "daemon/relay/samples/memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "daemon/procfs/address_space.h"

namespace lull::relay {
namespace {

volatile uint64_t g_first = 11;
volatile uint64_t g_second = 22;

uint64_t AddressOf(const volatile void* object) {
  return reinterpret_cast<uint64_t>(object);
}

// Runs `check` in a child that may not read this process; 0 is good.
int AsNobody(const std::function<int()>& check) {
  pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(99);
    _exit(check());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

std::shared_ptr<const UniqueFd> OwnMemory() {
  return std::make_shared<const UniqueFd>(open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
}

TEST(TargetMemory, CopiesPiecesInTheirOrder) {
  TargetMemory memory(getpid(), nullptr);
  const Piece pieces[] = {{AddressOf(&g_second), 8}, {AddressOf(&g_first), 8}};
  uint64_t out[2] = {};
  ASSERT_EQ(memory.Read(pieces, reinterpret_cast<char*>(out)), 2u);
  EXPECT_EQ(out[0], 22u);
  EXPECT_EQ(out[1], 11u);
  EXPECT_EQ(memory.access(), v1::HOST_SAMPLE_ACCESS_READV);
}

TEST(TargetMemory, SaysHowFarItCame) {
  void* nothing = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const Piece pieces[] = {
      {AddressOf(&g_first), 8}, {AddressOf(nothing), 8}, {AddressOf(&g_second), 8}};
  uint64_t out[3] = {};
  TargetMemory memory(getpid(), nullptr);
  EXPECT_EQ(memory.Read(pieces, reinterpret_cast<char*>(out)), 1u);
  EXPECT_EQ(out[0], 11u);
  munmap(nothing, 4096);
  const std::vector<Piece> many(TargetMemory::kMostPieces + 1, pieces[0]);
  std::vector<uint64_t> room(many.size());
  EXPECT_EQ(memory.Read(many, reinterpret_cast<char*>(room.data())), 0u);
  EXPECT_EQ(memory.Read({}, reinterpret_cast<char*>(out)), 0u);
}

TEST(TargetMemory, IsReadThroughItsDescriptorWhereTheKernelRefuses) {
  if (geteuid() != 0) GTEST_SKIP() << "needs another user";
  const pid_t us = getpid();
  auto own = OwnMemory();
  ASSERT_TRUE(*own);
  EXPECT_EQ(AsNobody([&] {
              TargetMemory memory(us, own);
              const Piece pieces[] = {{AddressOf(&g_second), 8},
                                      {0x10, 8},  // nothing lies there
                                      {AddressOf(&g_first), 8}};
              uint64_t out[3] = {};
              if (memory.Read(pieces, reinterpret_cast<char*>(out)) != 1) return 1;
              if (out[0] != 22 || memory.access() != v1::HOST_SAMPLE_ACCESS_DESCRIPTOR)
                return 2;
              uint64_t first = 0;
              return memory.Read(AddressOf(&g_first), &first, 8) && first == 11 ? 0 : 3;
            }),
            0);
}

TEST(TargetMemory, IsOfNobodyOnceAnotherProgramHasItsPlace) {
  int started[2], go[2];
  ASSERT_EQ(pipe(started), 0);
  ASSERT_EQ(pipe(go), 0);
  pid_t child = fork();
  if (child == 0) {
    char byte;
    if (read(go[0], &byte, 1) != 1) _exit(1);
    // Says that it is another one, and goes on until it is killed.
    dup2(started[1], STDOUT_FILENO);
    execl("/bin/sh", "sh", "-c", "echo; read x; exit 0", nullptr);
    _exit(1);
  }
  const std::string path = "/proc/" + std::to_string(child) + "/mem";
  UniqueFd memory(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(memory);
  EXPECT_FALSE(IsOfNobody(memory));
  ASSERT_EQ(write(go[1], "", 1), 1);
  char byte;
  ASSERT_EQ(read(started[0], &byte, 1), 1);
  EXPECT_TRUE(IsOfNobody(memory));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  for (int fd : {started[0], started[1], go[0], go[1]}) close(fd);
  EXPECT_FALSE(IsOfNobody(UniqueFd()));
}

TEST(TargetMemory, IsDeniedWithoutOne) {
  if (geteuid() != 0) GTEST_SKIP() << "needs another user";
  const pid_t us = getpid();
  for (const auto& none :
       {std::shared_ptr<const UniqueFd>(), std::make_shared<const UniqueFd>()}) {
    EXPECT_EQ(AsNobody([&] {
                TargetMemory memory(us, none);
                uint64_t first = 0;
                if (memory.Read(AddressOf(&g_first), &first, 8)) return 1;
                return memory.access() == v1::HOST_SAMPLE_ACCESS_DENIED ? 0 : 2;
              }),
              0);
  }
}

}  // namespace
}  // namespace lull::relay
