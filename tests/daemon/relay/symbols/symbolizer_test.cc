#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/runtime_directory.h"
#include "daemon/base/unique_fd.h"
#include "daemon/relay/symbols/maps.h"
#include "daemon/relay/symbols/native_symbolizer.h"

namespace lull::relay {

// What is looked up below. Not in the anonymous namespace: the names are asserted.
__attribute__((noinline)) uint64_t ReturnAddressOfCaller() {
  return reinterpret_cast<uint64_t>(__builtin_return_address(0));
}
// The barriers keep the calls from being the last thing that a function does.
__attribute__((always_inline)) inline uint64_t InlinedCaller() {
  uint64_t address = ReturnAddressOfCaller();  // kInlinedLine
  asm volatile("nop" : "+r"(address));
  return address;
}
constexpr int kInlinedLine = __LINE__ - 4;
__attribute__((noinline)) uint64_t OuterFunction() {
  uint64_t address = InlinedCaller();  // kOuterLine
  asm volatile("nop" : "+r"(address));
  return address;
}
constexpr int kOuterLine = __LINE__ - 4;

namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Frames = google::protobuf::RepeatedPtrField<lull::v1::Frame>;

constexpr char kMaps[] =
    "00400000-00452000 r-xp 00002000 08:02 173521      /usr/bin/dbus daemon\n"
    "00651000-00652000 r--p 00051000 08:02 173521      /usr/bin/dbus daemon\n"
    "7f0000000000-7f0000001000 r-xp 00000000 00:00 0 \n"
    "nonsense\n"
    "7ffff000-7ffff000 r-xp 00000000 00:00 0 /empty\n"
    "7ffff7fc1000-7ffff7fc3000 r-xp 00000000 00:00 0                  [vdso]\n";

TEST(Maps, KnowsTheExecutableMappings) {
  Maps maps = Maps::Parse(kMaps);
  ASSERT_EQ(maps.mappings().size(), 3u);
  const Mapping* mapping = maps.Find(0x400010);
  ASSERT_NE(mapping, nullptr);
  EXPECT_EQ(mapping->path, "/usr/bin/dbus daemon");
  EXPECT_EQ(mapping->offset, 0x2000u);
  EXPECT_EQ(mapping->inode, 173521u);
  EXPECT_EQ(maps.Find(0x3fffff), nullptr);
  EXPECT_EQ(maps.Find(0x452000), nullptr);
  EXPECT_EQ(maps.Find(0x651000), nullptr) << "not executable";
  EXPECT_EQ(maps.Find(0x7f0000000010)->path, "");
  EXPECT_EQ(maps.Find(0x7ffff7fc1000)->path, "[vdso]");
}

TEST(Maps, ComesBackFromItsOwnText) {
  Maps maps = Maps::Parse(kMaps);
  Maps again = Maps::Parse(maps.ToText());
  ASSERT_EQ(again.mappings().size(), 3u);
  EXPECT_EQ(again.Find(0x400010)->path, "/usr/bin/dbus daemon");
  EXPECT_EQ(again.ToText(), maps.ToText());
}

TEST(Demangle, GivesNamesAsPeopleWriteThem) {
  EXPECT_EQ(Demangle("_ZN2at4_ops4add_4callERNS_6TensorE"),
            "at::_ops::add_::call(at::Tensor&)");
  EXPECT_EQ(Demangle("cudaLaunchKernel"), "cudaLaunchKernel");
  EXPECT_EQ(Demangle("_Znonsense"), "_Znonsense");
}

Maps OwnMaps() {
  std::ifstream file("/proc/self/maps");
  std::ostringstream text;
  text << file.rdbuf();
  return Maps::Parse(text.str());
}

class SymbolizerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/lull-symbolizer-test-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    root_ = path;
  }
  void TearDown() override { ASSERT_TRUE(RemoveTree(root_).ok()); }
  std::string Snapshot() const { return root_ + "/maps.1"; }
  std::string root_;
  ModuleCache modules_;
};

TEST_F(SymbolizerTest, NamesFunctionFileAndLineThroughInlinedCalls) {
  NativeSymbolizer symbolizer(getpid(), Snapshot(), &modules_);
  Frames frames;
  symbolizer.Resolve(OuterFunction(), &frames);
  ASSERT_EQ(frames.size(), 2) << frames[0].ShortDebugString();
  EXPECT_THAT(frames[0].function(), HasSubstr("InlinedCaller"));
  EXPECT_THAT(frames[0].file(), EndsWith("symbolizer_test.cc"));
  EXPECT_EQ(frames[0].line(), kInlinedLine);
  EXPECT_EQ(frames[1].function(), "lull::relay::OuterFunction()");
  EXPECT_THAT(frames[1].file(), EndsWith("symbolizer_test.cc"));
  EXPECT_EQ(frames[1].line(), kOuterLine);
  EXPECT_THAT(frames[1].module(), HasSubstr("relay_unit_test"));
}

TEST_F(SymbolizerTest, ReadsSymbolsOfASharedLibraryWithoutDwarf) {
  NativeSymbolizer symbolizer(getpid(), Snapshot(), &modules_);
  Frames frames;
  symbolizer.Resolve(reinterpret_cast<uint64_t>(&lcong48) + 4, &frames);
  ASSERT_GE(frames.size(), 1);
  EXPECT_THAT(frames[frames.size() - 1].function(), HasSubstr("lcong48"));
  EXPECT_THAT(frames[0].module(), HasSubstr("libc"));
}

TEST_F(SymbolizerTest, ReadsTheSymbolsOfLargeLibrariesBeforeTheyAreNeeded) {
  NativeSymbolizer symbolizer(getpid(), Snapshot(), &modules_);
  Maps maps = OwnMaps();
  const Mapping* mapping = maps.Find(reinterpret_cast<uint64_t>(&lcong48));
  ASSERT_NE(mapping, nullptr);
  MappedBy self = MappedBy::Process(getpid());
  ASSERT_FALSE(modules_.Has(self, *mapping));
  EXPECT_FALSE(modules_.IsReading());
  for (int i = 0; i < 100 && !modules_.Has(self, *mapping); ++i) {
    symbolizer.PrepareNow();
    for (int j = 0; j < 1000 && modules_.IsReading(); ++j) usleep(10'000);
  }
  EXPECT_TRUE(modules_.Has(self, *mapping));
}

TEST_F(SymbolizerTest, KnowsWhichMappingsAreFiles) {
  Maps maps = OwnMaps();
  MappedBy self = MappedBy::Process(getpid());
  modules_.Prepare(self, maps);
  for (const Mapping& mapping : maps.mappings()) {
    std::vector<ModuleCache::Place> places(1);
    places[0].mapping = &mapping;
    places[0].offset = mapping.offset;
    modules_.Resolve(self, &places);
    EXPECT_EQ(places[0].outcome == ModuleCache::Outcome::kKnown,
              mapping.path.starts_with("/"))
        << mapping.path;
  }
}

TEST_F(SymbolizerTest, StopsWhileFilesWaitToBeRead) {
  ModuleCache short_lived;
  short_lived.Prepare(MappedBy::Process(getpid()), OwnMaps());
}

TEST_F(SymbolizerTest, GoesOnWithTheSnapshotOfAProcessThatIsGone) {
  pid_t child = fork();  // has our mappings
  if (child == 0) {
    while (true) pause();
  }
  {
    NativeSymbolizer symbolizer(child, Snapshot(), &modules_);
    symbolizer.Refresh();
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  NativeSymbolizer successor(child, Snapshot(), &modules_);
  Frames frames;
  successor.Resolve(OuterFunction(), &frames);
  ASSERT_EQ(frames.size(), 2);
  EXPECT_EQ(frames[1].function(), "lull::relay::OuterFunction()");
}

Maps MapsOf(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/maps"));
  std::ostringstream text;
  text << file.rdbuf();
  return Maps::Parse(text.str());
}

TEST_F(SymbolizerTest, DoesNotTakeTheProgramThatAProcessBecameForTheOneThatItWas) {
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  pid_t child = fork();  // has our mappings
  if (child == 0) {
    char byte;
    if (read(go[0], &byte, 1) == 1) execl("/bin/sleep", "sleep", "60", nullptr);
    _exit(1);
  }
  const std::string path = absl::StrCat("/proc/", child, "/mem");
  auto memory =
      std::make_shared<const UniqueFd>(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(*memory);
  NativeSymbolizer known(child, Snapshot(), &modules_, memory);
  known.Refresh();
  Frames ignored;
  known.Resolve(reinterpret_cast<uint64_t>(&lcong48) + 4, &ignored);  // waits for it
  NativeSymbolizer late(child, Snapshot() + ".late", &modules_, memory);
  ASSERT_EQ(write(go[1], "x", 1), 1);
  uint64_t address = 0;  // in the program that it becomes
  for (int i = 0; i < 1000 && address == 0; ++i) {
    const Maps maps = MapsOf(child);
    for (const Mapping& mapping : maps.mappings()) {
      if (mapping.path.ends_with("/sleep") || mapping.path.ends_with("/coreutils")) {
        address = mapping.start + 0x100;
      }
    }
    usleep(10'000);
  }
  late.Refresh();
  known.Refresh();
  Frames frames;
  late.Resolve(address, &frames);
  known.Resolve(OuterFunction(), &frames);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(go[0]);
  close(go[1]);
  ASSERT_NE(address, 0u);
  ASSERT_EQ(frames.size(), 3);
  EXPECT_EQ(frames[0].function(), absl::StrFormat("0x%x", address - 1));
  EXPECT_EQ(frames[0].module(), "");
  EXPECT_EQ(frames[2].function(), "lull::relay::OuterFunction()");
}

// The mappings were read a moment before, and are not read again for each address.
TEST_F(SymbolizerTest, NamesWhatALibraryLoadedJustNowHasOnceThatIsWanted) {
  std::atomic<int> readings = 0;
  NativeSymbolizer symbolizer(getpid(), Snapshot(), &modules_, nullptr, [&readings] {
    return readings++ == 0 ? Maps::Parse(kMaps) : OwnMaps();
  });
  symbolizer.Refresh();
  const uint64_t address = OuterFunction();
  symbolizer.Expect(&address, 1);
  usleep(150'000);
  Frames frames;
  symbolizer.Resolve(address, &frames);
  ASSERT_EQ(frames.size(), 2) << frames[0].ShortDebugString();
  EXPECT_EQ(frames[1].function(), "lull::relay::OuterFunction()");
  EXPECT_EQ(symbolizer.modules_unread(), 0u);
}

TEST_F(SymbolizerTest, IsHonestAboutWhatItDoesNotKnow) {
  {
    std::ofstream(Snapshot())
        << "10000000-10100000 r-xp 00001000 00:00 5 /opt/gone/libgone.so.1\n";
  }
  pid_t nobody = 0;  // /proc/0 is not there
  NativeSymbolizer symbolizer(nobody, Snapshot(), &modules_);
  Frames frames;
  symbolizer.Resolve(0x10000241, &frames);
  symbolizer.Resolve(0x42, &frames);
  ASSERT_EQ(frames.size(), 2);
  EXPECT_EQ(frames[0].function(), "libgone.so.1+0x1240");
  EXPECT_EQ(frames[0].module(), "/opt/gone/libgone.so.1");
  EXPECT_EQ(frames[0].line(), 0);
  EXPECT_EQ(frames[1].function(), "0x41");
  EXPECT_EQ(symbolizer.modules_unread(), 0u) << "an address of no mapping is no loss";
}

TEST_F(SymbolizerTest, CountsAProcessThatIsGoneBeforeItsMappingsAreRead) {
  NativeSymbolizer symbolizer(0, Snapshot(), &modules_);
  EXPECT_EQ(symbolizer.modules_unread(), 0u);
  Frames frames;
  symbolizer.Resolve(0x42, &frames);
  symbolizer.Resolve(0x1042, &frames);
  ASSERT_EQ(frames.size(), 2);
  EXPECT_EQ(frames[0].function(), "0x41");
  EXPECT_EQ(symbolizer.modules_unread(), 1u);
}

TEST_F(SymbolizerTest, DoesNotTakeAnotherFileOfTheSameNameForTheMappedOne) {
  {
    std::ofstream(Snapshot())
        << "10000000-10100000 r-xp 00000000 00:00 1 /proc/self/exe\n";
  }
  NativeSymbolizer symbolizer(0, Snapshot(), &modules_);
  Frames frames;
  symbolizer.Resolve(0x10001001, &frames);
  ASSERT_EQ(frames.size(), 1);
  EXPECT_THAT(frames[0].function(), StartsWith("exe+0x"));
}

}  // namespace
}  // namespace lull::relay
