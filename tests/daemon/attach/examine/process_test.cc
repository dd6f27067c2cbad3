// What is read of a process in a folder that looks like /proc.
#include "daemon/attach/examine/process.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string.h>

#include <filesystem>
#include <fstream>

#include "daemon/attach/examine/glibc_version.h"
#include "tests/daemon/attach/examine/fake_proc.h"

namespace lull::attach {
namespace {

using ::testing::ElementsAre;

TEST(ReadProcess, SaysThatAProcessIsNotThere) {
  FakeProc proc;
  EXPECT_FALSE(ReadProcess(7, proc.procfs()).exists);
}

TEST(ReadProcess, ReadsWhatEverybodyMayKnow) {
  FakeProc proc;
  FakeProcess fake;
  fake.pid = 7;
  fake.parent = 3;
  fake.name = "a) R (b";  // the name may hold anything
  fake.arguments = {"train", "--lr", "0.1"};
  fake.status =
      "TracerPid:\t42\nNoNewPrivs:\t1\nSeccomp:\t2\nNSpid:\t7\t1\n"
      "x86_Thread_features:\tshstk wrss\nCapPrm:\t0000000000000c00\n";
  proc.Add(fake);
  Process process = ReadProcess(7, proc.procfs());
  EXPECT_TRUE(process.exists);
  EXPECT_EQ(process.name, "a) R (b");
  EXPECT_EQ(process.state, 'S');
  EXPECT_EQ(process.parent, 3);
  EXPECT_EQ(process.threads, 3);
  EXPECT_EQ(process.start_ticks, 6000u);
  EXPECT_EQ(process.start_realtime_ns / 1'000'000'000, 1700000060u);  // 100 Hz
  EXPECT_THAT(process.arguments, ElementsAre("train", "--lr", "0.1"));
  EXPECT_EQ(process.tracer, 42);
  EXPECT_EQ(process.tracer_name, "program");
  EXPECT_TRUE(process.no_new_privs);
  EXPECT_EQ(process.seccomp, SeccompMode::kFilter);
  EXPECT_TRUE(process.in_inner_pid_namespace);
  EXPECT_TRUE(process.shadow_stack);
  EXPECT_EQ(process.capabilities, 0xc00u);
  EXPECT_TRUE(process.dumpable);
}

TEST(ReadProcess, KeepsWhatItHasWhenTheProcessVanishesMidWay) {
  FakeProc proc;
  FakeProcess fake = Python(7, 1, {"train.py"});
  proc.Add(fake);
  for (const char* gone : {"maps", "environ", "fd", "ns", "root", "exe", "stat"}) {
    proc.Remove(7, gone);
    Process process = ReadProcess(7, proc.procfs());
    EXPECT_TRUE(process.exists) << gone;
    EXPECT_FALSE(process.readable) << gone;
    EXPECT_TRUE(process.is_python) << gone;  // by its command line
  }
  proc.Remove(7, "");
  EXPECT_FALSE(ReadProcess(7, proc.procfs()).exists);
}

TEST(ReadProcess, TellsGpuDevicesFromTheControlDevice) {
  FakeProc proc;
  FakeProcess fake;
  fake.pid = 7;
  fake.open_files = {"/dev/nvidia3", "/dev/nvidiactl",  "/dev/nvidia0",
                     "/dev/nvidia3", "/dev/nvidia-uvm", "socket:[3]"};
  proc.Add(fake);
  Process process = ReadProcess(7, proc.procfs());
  EXPECT_THAT(process.gpu_devices, ElementsAre(0, 3));
  EXPECT_TRUE(process.gpu_monitor);
  EXPECT_FALSE(process.uses_cuda());
}

TEST(ReadProcess, ComparesNamespacesAndRoots) {
  FakeProc proc;
  FakeProcess fake;
  fake.pid = 7;
  proc.Add(fake);
  fake.pid = 8;
  fake.inner_mounts = "4026539999";
  proc.Add(fake);
  fake.pid = 9;
  fake.inner_mounts = "";
  fake.root_folder = proc.folder();  // chroot
  proc.Add(fake);
  Process same = ReadProcess(7, proc.procfs());
  EXPECT_EQ(same.mount_namespace, Namespace::kOurs);
  EXPECT_TRUE(same.same_root);
  Process container = ReadProcess(8, proc.procfs());
  EXPECT_EQ(container.mount_namespace, Namespace::kOther);
  EXPECT_EQ(container.pid_namespace, Namespace::kOurs);
  EXPECT_FALSE(container.same_root);
  EXPECT_FALSE(ReadProcess(9, proc.procfs()).same_root);
}

TEST(MappedFiles, NameTheLibraryOfCAndThePython) {
  MappedFiles files =
      ReadMappedFiles(MapsOf({"/usr/bin/train", "/lib/x86_64-linux-gnu/libc.so.6",
                              "/opt/lib/libpython3.12.so.1.0"}));
  EXPECT_EQ(files.glibc, "/lib/x86_64-linux-gnu/libc.so.6");
  EXPECT_FALSE(files.musl);
  EXPECT_EQ(files.python_version, "3.12");
  EXPECT_FALSE(files.cuda_runtime);
  EXPECT_TRUE(ReadMappedFiles(MapsOf({"/lib/ld-musl-x86_64.so.1"})).musl);
  EXPECT_TRUE(ReadMappedFiles(MapsOf({"/usr/lib/x86_64-linux-musl/libc.so"})).musl);
}

TEST(MappedFiles, FindAnInterpreterInsideOfAnotherProgramByItsModules) {
  MappedFiles files = ReadMappedFiles(MapsOf(
      {"/opt/embed", "/opt/lib/python3.10/lib-dynload/_json.cpython-310-x86.so"}));
  EXPECT_EQ(files.python_version, "3.10");
}

TEST(MappedFiles, TellTheRuntimeFromTheDriverAndFromLibrariesOfLikeNames) {
  MappedFiles runtime =
      ReadMappedFiles(MapsOf({"/torch/lib/libcudart-9335f6a2.so.12"}));
  EXPECT_TRUE(runtime.cuda_runtime);
  EXPECT_FALSE(runtime.cuda_driver);
  EXPECT_TRUE(ReadMappedFiles(MapsOf({"/usr/lib/libcuda.so.535.1"})).cuda_driver);
  MappedFiles none = ReadMappedFiles(
      MapsOf({"/usr/lib/libcudadebugger.so.1", "/usr/lib/libnvidia-ml.so.1"}));
  EXPECT_FALSE(none.cuda_driver || none.cuda_runtime);
}

TEST(MappedFiles, CountCodeAloneAndFilesThatWereRemoved) {
  EXPECT_EQ(ReadMappedFiles("7f00-7f10 r--p 0 fe:00 7   /x/liblull.so\n").shim, "");
  EXPECT_EQ(
      ReadMappedFiles("7f00-7f10 r-xp 0 fe:00 7   /a b/liblull.so (deleted)\n").shim,
      "/a b/liblull.so");
}

TEST(MappedFiles, TellAShimThatRecordsFromOneAsleep) {
  std::string shim = MapsOf({"/opt/lull/lib/lull/liblull.so"});
  EXPECT_FALSE(ReadMappedFiles(shim).shim_records);
  std::string segment = "7e00-7e10 rw-s 0 00:01 9   /memfd:lull (deleted)\n";
  EXPECT_TRUE(ReadMappedFiles(shim + segment).shim_records);
  EXPECT_FALSE(ReadMappedFiles(segment).shim_records);  // the relay's own mapping
}

TEST(MappedFiles, SurviveLinesThatAreNone) {
  for (const char* text : {"", "\n\n", " ", "a", "a b c d e", "1-2 r-xp 0 0 0",
                           "1-2 r-xp 0 0:0 0  ", "x x x x x x x x"}) {
    EXPECT_EQ(ReadMappedFiles(text).glibc, "") << text;
  }
}

TEST(PythonVersion, IsReadFromNamesOfInterpretersAndLibraries) {
  EXPECT_EQ(PythonVersionOf("python3.11"), "3.11");
  EXPECT_EQ(PythonVersionOf("python3.13t"), "3.13t");
  EXPECT_EQ(PythonVersionOf("libpython3.9d.so.1.0"), "3.9");
  EXPECT_EQ(PythonVersionOf("python2.7"), "2.7");
  EXPECT_EQ(PythonVersionOf("python3"), "");
  EXPECT_EQ(PythonVersionOf("pythonista"), "");
  EXPECT_TRUE(IsPythonProgram("python3"));
  EXPECT_FALSE(IsPythonProgram("python-config"));
  EXPECT_FALSE(IsPythonProgram("ipython"));
}

TEST(ReadRank, BelievesTheInnermostLauncher) {
  using namespace std::string_literals;
  std::string environment =
      "SLURM_PROCID=1\0SLURM_NTASKS=2\0RANK=9\0LOCAL_RANK=1\0WORLD_SIZE=16\0"s;
  Rank rank = ReadRank(environment);
  EXPECT_EQ(rank.rank, 9);
  EXPECT_EQ(rank.local_rank, 1);
  EXPECT_EQ(rank.world_size, 16);
}

TEST(ReadRank, KnowsOpenMpiAndSlurm) {
  using namespace std::string_literals;
  EXPECT_EQ(ReadRank("OMPI_COMM_WORLD_RANK=3\0OMPI_COMM_WORLD_SIZE=4\0"s).world_size,
            4);
  EXPECT_EQ(ReadRank("SLURM_PROCID=5\0SLURM_LOCALID=1\0"s).local_rank, 1);
}

TEST(ReadRank, TakesNothingThatIsNoRank) {
  using namespace std::string_literals;
  for (const std::string& text :
       {""s, "RANK="s, "RANK=x\0"s, "RANK=-1\0"s, "XRANK=1\0"s, "RANK"s, "\0\0\0"s}) {
    EXPECT_EQ(ReadRank(text).rank, -1) << text;
  }
}

class ProgramTest : public ::testing::Test {
 protected:
  void Write(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~ProgramTest() override { std::filesystem::remove(path_); }
  std::string path_ = ::testing::TempDir() + "lull-program-" + std::to_string(getpid());
};

TEST_F(ProgramTest, OfThisTestIsOneOfOursWithALoader) {
  Program program = ReadProgram("/proc/self/exe");
  EXPECT_TRUE(program.known);
  EXPECT_EQ(program.bits, OwnBits());
  EXPECT_EQ(program.machine, OwnMachine());
  EXPECT_THAT(program.loader, ::testing::HasSubstr("/ld-linux"));
}

TEST_F(ProgramTest, IsUnknownWhenTheFileIsNoProgramOrCutShort) {
  EXPECT_FALSE(ReadProgram("/nowhere").known);
  Write("#!/bin/sh\nexit 0\n and some more bytes to read");
  EXPECT_FALSE(ReadProgram(path_).known);
  Write(std::string("\177ELF\2\1\1", 7) + std::string(20, '\0'));
  EXPECT_FALSE(ReadProgram(path_).known);
}

TEST_F(ProgramTest, WithLyingHeadersIsReadNoFurther) {
  Elf64_Ehdr header = {};
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_machine = EM_AARCH64;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 0xffff;
  header.e_phoff = ~uint64_t{7};
  Write(std::string(reinterpret_cast<char*>(&header), sizeof(header)));
  Program program = ReadProgram(path_);
  EXPECT_TRUE(program.known);
  EXPECT_EQ(program.machine, EM_AARCH64);
  EXPECT_EQ(program.loader, "");
}

TEST(GlibcVersion, IsInTheNameOrTheBanner) {
  EXPECT_EQ(ReadGlibcVersion("/lib/libc-2.17.so", "/nowhere"), "2.17");
  std::string path = ::testing::TempDir() + "lull-libc-" + std::to_string(getpid());
  std::ofstream(path)
      << "xx GNU C Library (Debian GLIBC 2.36-9) stable release version "
         "2.36.\nCopyright";
  EXPECT_EQ(ReadGlibcVersion("/lib/libc.so.6", path), "2.36");
  std::ofstream(path) << "another library of C";
  EXPECT_EQ(ReadGlibcVersion("/lib/libc.so.6", path), "");
  std::filesystem::remove(path);
  EXPECT_FALSE(IsGlibcNewEnough("2.27"));
  EXPECT_TRUE(IsGlibcNewEnough("2.28"));
  EXPECT_TRUE(IsGlibcNewEnough("3.0"));
  EXPECT_TRUE(IsGlibcNewEnough(""));
}

}  // namespace
}  // namespace lull::attach
