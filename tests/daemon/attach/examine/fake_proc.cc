#include "tests/daemon/attach/examine/fake_proc.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lull::attach {
namespace {

namespace fs = std::filesystem;

std::string WithZeros(const std::vector<std::string>& strings) {
  std::string text;
  for (const std::string& one : strings) text.append(one).push_back('\0');
  return text;
}

}  // namespace

std::string MapsOf(const std::vector<std::string>& files) {
  std::string text = "7f0000000000-7f0000001000 rw-p 00000000 00:00 0\n";
  uint64_t at = 0x7f0000010000;
  for (const std::string& file : files) {
    absl::StrAppendFormat(&text, "%x-%x r-xp 00000000 fe:00 77 %s%s\n", at, at + 0x1000,
                          std::string(20, ' '), file);
    at += 0x10000;
  }
  return text;
}

FakeProcess Python(pid_t pid, pid_t parent, const std::vector<std::string>& arguments) {
  FakeProcess process;
  process.pid = pid;
  process.parent = parent;
  process.name = "python";
  process.arguments = {"python"};
  process.arguments.insert(process.arguments.end(), arguments.begin(), arguments.end());
  process.executable = "/usr/bin/python3.11";
  return process;
}

FakeProc::FakeProc() {
  std::string name = ::testing::TempDir() + "lull-proc-XXXXXX";
  folder_ = mkdtemp(name.data());
  FakeProcess self;
  self.pid = 42;
  Add(self);
  fs::create_directory_symlink("42", folder_ + "/proc/self");
  Write("stat", "cpu 1 2 3\nbtime 1700000000\nprocesses 5\n");
  Write("sys/kernel/osrelease", "6.1.0-13-amd64\n");
}

FakeProc::~FakeProc() { fs::remove_all(folder_); }

void FakeProc::Write(const std::string& name, const std::string& text) {
  std::string path = absl::StrCat(folder_, "/proc/", name);
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

void FakeProc::Remove(pid_t pid, const std::string& name) {
  fs::remove_all(absl::StrCat(folder_, "/proc/", pid, "/", name));
}

void FakeProc::Add(const FakeProcess& p) {
  std::string pid = absl::StrCat(p.pid);
  std::string here = absl::StrCat(folder_, "/proc/", pid);
  uint32_t uid = getuid();
  uint32_t gid = getgid();
  // The first line of a name counts, so those of the test come first.
  Write(pid + "/status",
        absl::StrFormat("Name:\t%s\n%sState:\t%c (x)\nPid:\t%d\nPPid:\t%d\n"
                        "TracerPid:\t0\nUid:\t%d\t%d\t%d\t%d\nGid:\t%d\t%d\t%d\t%d\n"
                        "NSpid:\t%d\nKthread:\t0\nThreads:\t3\n"
                        "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
                        "NoNewPrivs:\t0\nSeccomp:\t0\n",
                        p.name, p.status, p.state, p.pid, p.parent, uid, uid, uid, uid,
                        gid, gid, gid, gid, p.pid));
  uint64_t stack =
      p.stack != 0 ? p.stack : 0x7ffc00000000 + static_cast<uint64_t>(p.pid) * 4096;
  Write(pid + "/stat",
        absl::StrFormat("%d (%s) %c %d 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 3 0 6000 "
                        "1000 10 1000000 4194304 5000000 %d 0 0\n",
                        p.pid, p.name, p.state, p.parent, stack));
  Write(pid + "/cmdline", WithZeros(p.arguments));
  Write(pid + "/comm", p.name + "\n");
  Write(pid + "/maps", MapsOf(p.mapped));
  Write(pid + "/environ", WithZeros(p.environment));
  fs::create_directories(here + "/ns");
  fs::create_directories(here + "/fd");
  fs::create_symlink(p.executable, here + "/exe");
  fs::create_symlink(p.root_folder.empty() ? "/" : p.root_folder, here + "/root");
  for (const char* kind : {"pid", "mnt", "user", "net"}) {
    bool other = std::string(kind) == "mnt" && !p.inner_mounts.empty();
    fs::create_symlink(
        absl::StrCat(kind, ":[", other ? p.inner_mounts : "4026531840", "]"),
        absl::StrCat(here, "/ns/", kind));
  }
  int fd = 3;
  for (const std::string& file : p.open_files) {
    fs::create_symlink(file, absl::StrCat(here, "/fd/", fd++));
  }
}

}  // namespace lull::attach
