#include "daemon/relay/read/host_use.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace lull::relay {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

class HostUseTest : public ::testing::Test {
 protected:
  HostUseTest() {
    std::filesystem::remove_all(root_);
    SetStat(/*start=*/777, /*user=*/300, /*system=*/50);
    Write("proc/7/io", "rchar: 9\nread_bytes: 4096\nwrite_bytes: 8192\n");
    Write("proc/7/net/dev",
          "Inter-|   Receive  |  Transmit\n face |bytes packets\n"
          "    lo: 5 5 5 5 5 5 5 5 5 5 5 5 5 5 5 5\n"
          "  eth0: 100 1 0 0 0 0 0 0 200 2 0 0 0 0 0 0\n"
          "   ib0:1000 1 0 0 0 0 0 0 2000 2 0 0 0 0 0 0\n");
    Write("proc/7/cgroup", "1:name=systemd:/other\n0::/job.slice\n");
    for (const char* of :
         {"cgroups/job.slice/cpu.pressure", "cgroups/job.slice/memory.pressure"}) {
      Write(of,
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=11\n"
            "full avg10=0.00 avg60=0.00 avg300=0.00 total=12\n");
    }
    Write("proc/pressure/io", "some avg10=0.00 total=13\nfull avg10=0.00 total=14\n");
  }

  void Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = root_ + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  // Fields 4 to 11, major faults, their children's, times, then up to the start;
  // memory.
  void SetStat(int start, int user, int system) {
    Write("proc/7/stat",
          absl::StrCat("7 (py) x) S 4 5 6 7 8 9 10 11 12 13 ", user, " ", system,
                       " 16 17 18 19 20 21 ", start, " 23 1000 25\n"));
  }
  HostUseReader Reader() {
    return HostUseReader(7, Procfs(root_ + "/proc"), root_ + "/cgroups");
  }

  const std::string root_ =
      absl::StrCat(::testing::TempDir(), "lull-host-use-", getpid());
};

TEST_F(HostUseTest, TellsWhatTheKernelCounts) {
  HostUseReader reader = Reader();
  EXPECT_EQ(reader.use().ByteSizeLong(), 0);
  reader.Follow(kSecond);
  const v1::HostUse& use = reader.use();
  const auto tick = kSecond / static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  EXPECT_EQ(use.user_ns(), 300 * tick);
  EXPECT_EQ(use.system_ns(), 50 * tick);
  EXPECT_EQ(use.major_faults(), 12);
  EXPECT_EQ(use.resident_bytes(), 1000 * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(use.read_bytes(), 4096);
  EXPECT_EQ(use.written_bytes(), 8192);
  EXPECT_EQ(use.received_bytes(), 1100) << "without loopback";
  EXPECT_EQ(use.sent_bytes(), 2200);
  EXPECT_EQ(use.cpu_some_ns(), 11'000);
  EXPECT_EQ(use.memory_some_ns(), 11'000);
  EXPECT_EQ(use.memory_full_ns(), 12'000);
  EXPECT_FALSE(use.has_io_some_ns()) << "the host's is another total";
}

TEST_F(HostUseTest, IsReadAnewEveryFiveSeconds) {
  HostUseReader reader = Reader();
  reader.Follow(kSecond);
  SetStat(777, 400, 50);
  reader.Follow(5 * kSecond);
  const uint64_t before = reader.use().user_ns();
  reader.Follow(60 * kSecond);
  EXPECT_GT(reader.use().user_ns(), before);
}

TEST_F(HostUseTest, IsNotOfAnotherProcessWithTheSameNumber) {
  HostUseReader reader = Reader();
  reader.Follow(kSecond);
  const uint64_t before = reader.use().user_ns();
  SetStat(778, 9999, 50);
  reader.Follow(60 * kSecond);
  EXPECT_EQ(reader.use().user_ns(), before);
  std::filesystem::remove_all(root_);
  reader.Follow(120 * kSecond);
  EXPECT_EQ(reader.use().user_ns(), before);
  reader.SetEnded();
  EXPECT_TRUE(reader.use().has_resident_bytes());
  EXPECT_EQ(reader.use().resident_bytes(), 0);
}

// As in a container: its own cgroup is the root of all that it sees.
TEST_F(HostUseTest, PressureOfAContainerIsThatOfItsRoot) {
  Write("proc/7/cgroup", "0::/\n");
  Write("cgroups/cpu.pressure", "some avg10=0.00 total=21\n");
  Write("cgroups/io.pressure", "some avg10=0.00 total=22\nfull avg10=0.00 total=23\n");
  HostUseReader reader = Reader();
  reader.Follow(kSecond);
  EXPECT_EQ(reader.use().cpu_some_ns(), 21'000);
  EXPECT_EQ(reader.use().io_full_ns(), 23'000);
  // Another worker, for which it does not tell: no total falls.
  v1::HostUse earlier = reader.use();
  std::filesystem::remove_all(root_ + "/cgroups");
  HostUseReader next = Reader();
  next.Resume(earlier);
  next.Follow(kSecond);
  EXPECT_EQ(next.use().io_full_ns(), 23'000);
}

TEST_F(HostUseTest, ATunnelThatIsTheOnlyDeviceCounts) {
  Write("proc/7/net/dev", "  lo: 1 1 1 1 1 1 1 1 1\n  tap0: 100 1 0 0 0 0 0 0 10 2\n");
  HostUseReader reader = Reader();
  reader.Follow(kSecond);
  EXPECT_EQ(reader.use().received_bytes(), 100);
}

TEST_F(HostUseTest, PressureIsOfTheHostWhereTheCgroupTellsOfNone) {
  std::filesystem::remove_all(root_ + "/cgroups");
  HostUseReader reader = Reader();
  reader.Follow(kSecond);
  EXPECT_EQ(reader.use().io_some_ns(), 13'000);
  EXPECT_EQ(reader.use().io_full_ns(), 14'000);
}

constexpr char kHeader[] = "Inter-|   Receive  |  Transmit\n face |bytes packets\n";

std::string Device(const std::string& name, int received, int sent) {
  return absl::StrCat("  ", name, ": ", received, " 1 0 0 0 0 0 0 ", sent,
                      " 2 0 0 0 0 0 0\n");
}

TEST_F(HostUseTest, ADeviceThatGoesTakesNothingAway) {
  HostUseReader reader = Reader();
  Write("proc/7/net/dev", kHeader + Device("eth0", 100, 10) + Device("eth1", 1000, 0));
  reader.Follow(kSecond);
  EXPECT_EQ(reader.use().received_bytes(), 1100);
  Write("proc/7/net/dev", kHeader + Device("eth0", 150, 20));
  reader.Follow(60 * kSecond);
  EXPECT_EQ(reader.use().received_bytes(), 1150);
  EXPECT_EQ(reader.use().sent_bytes(), 20);
}

TEST_F(HostUseTest, NoPacketCountsTwice) {
  HostUseReader reader = Reader();
  Write("proc/7/net/dev",
        kHeader + Device("eth0", 100, 10) + Device("eth0.7", 90, 9) +
            Device("bond0", 100, 10) + Device("veth12ab", 5, 5) +
            Device("docker0", 5, 5) + Device("br0", 5, 5) +
            Device("vxlan.calico", 5, 5) + Device("cilium_net", 5, 5) +
            "  eth9: 100 1 0 0 0 0 0 0 2");  // the text is longer than what was read
  reader.Follow(kSecond);
  EXPECT_EQ(reader.use().received_bytes(), 100);
  EXPECT_EQ(reader.use().sent_bytes(), 10);
}

TEST_F(HostUseTest, GoesOnWhereAnEarlierWorkerWas) {
  v1::HostUse earlier;
  earlier.set_received_bytes(5000);
  earlier.set_resident_bytes(77);
  HostUseReader reader = Reader();
  reader.Resume(earlier);
  HostUseReader late = Reader();
  late.Resume(earlier);
  late.SetEnded();  // before this worker has read anything
  EXPECT_EQ(late.use().resident_bytes(), 0);
  reader.Follow(kSecond);
  EXPECT_EQ(reader.use().received_bytes(), 5000) << "a device has gone meanwhile";
  reader.SetAsleep();
  EXPECT_FALSE(reader.use().has_resident_bytes());
}

TEST_F(HostUseTest, WhatTheKernelDoesNotSayIsAbsent) {
  for (const char* name : {"io", "net", "cgroup"}) {
    std::filesystem::remove_all(root_ + "/proc/7/" + name);
  }
  Write("proc/pressure/io", "some avg10=0.00 total=99999999999999999999\nfull\n");
  HostUseReader reader = Reader();
  reader.Follow(kSecond);
  const v1::HostUse& use = reader.use();
  EXPECT_TRUE(use.has_user_ns());
  EXPECT_FALSE(use.has_read_bytes());
  EXPECT_FALSE(use.has_received_bytes());
  EXPECT_FALSE(use.has_cpu_some_ns());
  EXPECT_FALSE(use.has_io_some_ns());
  EXPECT_FALSE(use.has_io_full_ns());
}

TEST_F(HostUseTest, OfARealProcessIsWhatItHasUsed) {
  HostUseReader reader(getpid());
  volatile uint64_t sum = 0;
  const clock_t end = clock() + CLOCKS_PER_SEC / 20;
  while (clock() < end) sum = sum + 1;
  reader.Follow(kSecond);
  const v1::HostUse& use = reader.use();
  EXPECT_GE(use.user_ns() + use.system_ns(), 30'000'000);
  EXPECT_GT(use.resident_bytes(), 1 << 20);
}

}  // namespace
}  // namespace lull::relay
