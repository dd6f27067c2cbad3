// Names beside the reader of rings. The symbol reader is this program, see
// unit_main.cc.
#include "daemon/relay/symbols/async_symbolizer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/thread.h"
#include "daemon/base/unique_fd.h"
#include "tests/daemon/storage/temporary_directory.h"

namespace lull::relay {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kKey = 7;

// As definitions.cc makes them.
v1::Batch BatchOf(const std::vector<uint64_t>& addresses, uint64_t key = kKey) {
  v1::Batch batch;
  v1::Batch::Stacks* stacks = batch.add_stacks();
  stacks->set_process_key(key);
  stacks->add_stacks()->set_ref(1);  // of Python
  v1::StackDef* native = stacks->add_stacks();
  native->set_ref(2);
  native->set_native(true);
  for (uint64_t address : addresses) native->add_return_addresses(address);
  batch.add_counters()->set_process_key(key);
  return batch;
}
const v1::StackDef& NativeOf(const v1::Batch& batch) {
  return batch.stacks(0).stacks(1);
}

uint64_t KnownAddress() { return reinterpret_cast<uint64_t>(&lcong48) + 4; }

// What is mapped of a file with which a symbol reader never ends.
class Endless {
 public:
  explicit Endless(const std::string& path, const char* text = "lull-test: spin",
                   size_t size = 4096)
      : size_(size) {
    std::ofstream(path) << text;
    UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    code_ = mmap(nullptr, size_, PROT_READ | PROT_EXEC, MAP_PRIVATE, file.get(), 0);
    EXPECT_NE(code_, MAP_FAILED);
  }
  ~Endless() { munmap(code_, size_); }
  uint64_t address() const { return reinterpret_cast<uint64_t>(code_) + 0x100; }

 private:
  const size_t size_;
  void* code_;
};

// As the sender does.
bool Name(AsyncSymbolizer* symbols, v1::Batch* batch) {
  for (int i = 0; i < 600; ++i) {
    if (symbols->Name(batch)) return true;
  }
  return false;
}

class AsyncSymbolizerTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(chmod(files_.path().c_str(), 0755), 0); }

  void Watch(AsyncSymbolizer* symbols, bool now = false) {
    symbols->Watch(kKey, getpid(), nullptr, now);
  }
  test::TemporaryDirectory files_;
};

TEST_F(AsyncSymbolizerTest, PutsFramesInThePlaceOfAddresses) {
  AsyncSymbolizer symbols(files_.path());
  Watch(&symbols);
  symbols.Expect(kKey, {KnownAddress(), KnownAddress()});
  v1::Batch batch = BatchOf({KnownAddress(), 0x42});
  ASSERT_TRUE(Name(&symbols, &batch));
  EXPECT_THAT(batch.stacks(0).stacks(0).frames(), IsEmpty());
  const v1::StackDef& native = NativeOf(batch);
  EXPECT_EQ(native.ref(), 2u);
  EXPECT_THAT(native.return_addresses(), IsEmpty());
  ASSERT_GE(native.frames_size(), 2);
  EXPECT_THAT(native.frames(native.frames_size() - 2).function(), HasSubstr("lcong48"));
  EXPECT_EQ(native.frames(native.frames_size() - 1).function(), "0x41");
  EXPECT_EQ(batch.counters(0).modules_unread(), 0u);
  // Sent once more after a break.
  v1::Batch again = BatchOf({KnownAddress(), 0x42});
  ASSERT_TRUE(Name(&symbols, &again));
  EXPECT_EQ(again.SerializeAsString(), batch.SerializeAsString());
}

TEST_F(AsyncSymbolizerTest, LongStacksOfOneBatchAreAllNamed) {
  AsyncSymbolizer symbols(files_.path());
  Watch(&symbols);
  v1::Batch batch = BatchOf(std::vector<uint64_t>(300, KnownAddress()));
  for (int i = 0; i < 20; ++i) {
    *batch.mutable_stacks(0)->add_stacks() = NativeOf(batch);
  }
  ASSERT_TRUE(Name(&symbols, &batch));
  for (int i = 1; i < batch.stacks(0).stacks_size(); ++i) {
    const v1::StackDef& stack = batch.stacks(0).stacks(i);
    EXPECT_THAT(stack.frames(), SizeIs(256));
    EXPECT_TRUE(stack.truncated());
    EXPECT_THAT(stack.frames(255).function(), HasSubstr("lcong48"));
  }
}

// A collector takes no message of more than 64 MiB, and a stream would break at it
// again and again.
TEST_F(AsyncSymbolizerTest, TheFramesOfAllProcessesOfABatchHaveABound) {
  // A path so long that the module of each frame takes nearly 4 KiB.
  std::string path = files_.path();
  UniqueFd folder(open(path.c_str(), O_PATH | O_CLOEXEC));
  while (path.size() < 3800) {
    const std::string name(200, 'd');
    ASSERT_EQ(mkdirat(folder.get(), name.c_str(), 0755), 0);
    folder.reset(openat(folder.get(), name.c_str(), O_PATH | O_CLOEXEC));
    absl::StrAppend(&path, "/", name);
  }
  Endless file(path + "/file", "no ELF file");
  AsyncSymbolizer symbols(files_.path());
  v1::Batch batch;
  for (uint64_t key = 1; key <= 3; ++key) {
    symbols.Watch(key, getpid(), nullptr, false);
    v1::Batch one = BatchOf(std::vector<uint64_t>(250, file.address()), key);
    for (int i = 0; i < 18; ++i) *one.mutable_stacks(0)->add_stacks() = NativeOf(one);
    batch.MergeFrom(one);
  }
  ASSERT_TRUE(Name(&symbols, &batch));
  EXPECT_GT(batch.ByteSizeLong(), 16u << 20);
  EXPECT_LT(batch.ByteSizeLong(), 20u << 20);
  EXPECT_THAT(batch.stacks(2).stacks(18).frames(), SizeIs(250));
  EXPECT_THAT(batch.stacks(2).stacks(18).return_addresses(), IsEmpty());
}

// Its predecessor had the mappings of a process that is gone.
TEST_F(AsyncSymbolizerTest, ASuccessorNamesWhatItsPredecessorHasLeft) {
  {
    AsyncSymbolizer predecessor(files_.path());
    Watch(&predecessor);
    v1::Batch batch = BatchOf({KnownAddress()});
    ASSERT_TRUE(Name(&predecessor, &batch));
  }
  AsyncSymbolizer symbols(files_.path());
  v1::Batch batch = BatchOf({KnownAddress()});
  ASSERT_TRUE(Name(&symbols, &batch));
  const v1::StackDef& native = NativeOf(batch);
  ASSERT_GE(native.frames_size(), 1);
  EXPECT_THAT(native.frames(native.frames_size() - 1).function(), HasSubstr("lcong48"));
}

TEST_F(AsyncSymbolizerTest, WhatIsForgottenLeavesNoSnapshot) {
  AsyncSymbolizer symbols(files_.path());
  Watch(&symbols);
  v1::Batch batch = BatchOf({KnownAddress()});
  ASSERT_TRUE(Name(&symbols, &batch));
  const std::string snapshot = absl::StrCat(files_.path(), "/maps.", kKey);
  EXPECT_EQ(access(snapshot.c_str(), F_OK), 0);
  symbols.Forget(kKey);
  // It may be reading ahead what the batch did not need.
  for (int i = 0; i < 30'000 && access(snapshot.c_str(), F_OK) == 0; ++i) usleep(1'000);
  EXPECT_NE(access(snapshot.c_str(), F_OK), 0);
}

TEST_F(AsyncSymbolizerTest, SaysWhenLargeLibrariesHaveBeenRead) {
  AsyncSymbolizer symbols(files_.path());
  EXPECT_FALSE(symbols.IsReading());
  Watch(&symbols, /*now=*/true);
  EXPECT_TRUE(symbols.IsReading());
  for (int i = 0; i < 60'000 && symbols.IsReading(); ++i) usleep(1'000);
  EXPECT_FALSE(symbols.IsReading());
  EXPECT_GT(symbols.CpuNs(), 0u);
}

// A thread that lacks a processor while it reads our maps would keep mmap() from us.
TEST_F(AsyncSymbolizerTest, ReadersYieldToOthersAndNoThreadOfOursDoes) {
  Endless hangs(absl::StrCat(files_.path(), "/hangs"), "lull-test: hang");
  const int own = getpriority(PRIO_PROCESS, 0);
  std::thread([] {}).join();  // TSan's own thread begins with the first one
  WaitForTurns();  // as whoever sends batches does, who may have to start the thread
  AsyncSymbolizer symbols(files_.path());
  Watch(&symbols);
  v1::Batch batch = BatchOf({hangs.address()});
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(symbols.Name(&batch));
  int readers = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const int tid = std::stoi(task.path().filename());
    EXPECT_EQ(getpriority(PRIO_PROCESS, static_cast<id_t>(tid)), own);
    if (tid != getpid()) {
      EXPECT_EQ(sched_getscheduler(tid), SCHED_OTHER);
    }
    std::ifstream children(task.path() / "children");
    for (int child = 0; children >> child; ++readers) {
      EXPECT_EQ(getpriority(PRIO_PROCESS, static_cast<id_t>(child)),
                std::min(own + 5, 19));
    }
  }
  EXPECT_GE(readers, 1);
  TakeTurnsAtOnce();
}

TEST_F(AsyncSymbolizerTest, NobodyWaitsForAFileWithoutEnd) {
  Endless endless(absl::StrCat(files_.path(), "/endless"));
  AsyncSymbolizer symbols(files_.path());
  Watch(&symbols);
  v1::Batch batch = BatchOf({endless.address()});
  // By then it is at the file; if it is not yet, the test says less.
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(symbols.Name(&batch));
  EXPECT_EQ(batch.SerializeAsString(),
            BatchOf({endless.address()}).SerializeAsString());
  for (int i = 0; i < 1'000; ++i) {
    symbols.Expect(kKey, {endless.address(), KnownAddress()});
    EXPECT_EQ(symbols.ModulesUnread(kKey), 0u);
    EXPECT_TRUE(symbols.IsReading());
  }
}

// Two readers run out of time with it, which takes longer than a sender is patient with
// something of which nothing is heard.
TEST_F(AsyncSymbolizerTest, AFileThatReadersDoNotGetThroughCostsItsOwnNamesAlone) {
  Endless hangs(absl::StrCat(files_.path(), "/hangs"), "lull-test: hang");
  AsyncSymbolizer symbols(files_.path(), absl::Seconds(4),
                          /*reader_patience=*/absl::Seconds(3));
  Watch(&symbols);
  v1::Batch first = BatchOf({KnownAddress()});
  ASSERT_TRUE(Name(&symbols, &first));
  while (symbols.IsNaming()) usleep(1'000);
  v1::Batch batch = BatchOf({hangs.address(), KnownAddress()});
  ASSERT_TRUE(Name(&symbols, &batch));
  ASSERT_GE(NativeOf(batch).frames_size(), 2);
  EXPECT_THAT(NativeOf(batch).frames(0).module(), HasSubstr("/hangs"));
  EXPECT_THAT(NativeOf(batch).frames(NativeOf(batch).frames_size() - 1).function(),
              HasSubstr("lcong48"));
  EXPECT_EQ(batch.counters(0).modules_unread(), 1u);
}

TEST_F(AsyncSymbolizerTest, ManySlowFilesAreNotOneThatHangs) {
  AsyncSymbolizer symbols(files_.path(), absl::Seconds(2));
  std::vector<std::unique_ptr<Endless>> slow;
  std::vector<uint64_t> addresses;
  for (int i = 0; i < 4; ++i) {
    slow.push_back(std::make_unique<Endless>(absl::StrCat(files_.path(), "/slow", i),
                                             "lull-test: dawdle"));
    addresses.push_back(slow.back()->address());
  }
  Watch(&symbols);
  v1::Batch first = BatchOf({KnownAddress()});
  ASSERT_TRUE(Name(&symbols, &first));
  while (symbols.IsNaming()) usleep(1'000);
  v1::Batch batch = BatchOf(addresses);
  ASSERT_TRUE(Name(&symbols, &batch));
  ASSERT_THAT(NativeOf(batch).frames(), SizeIs(4));
  EXPECT_THAT(NativeOf(batch).frames(3).module(), HasSubstr("/slow3"));
}

// At its end a job does not wait for libraries that none of its stacks names.
TEST_F(AsyncSymbolizerTest, TellsNamesFromWhatIsReadAhead) {
  Endless endless(absl::StrCat(files_.path(), "/endless"), "lull-test: hang", 2 << 20);
  AsyncSymbolizer symbols(files_.path());
  Watch(&symbols, /*now=*/true);
  for (int i = 0; i < 30'000 && (symbols.IsNaming() || !symbols.IsReading()); ++i) {
    usleep(1'000);
  }
  EXPECT_FALSE(symbols.IsNaming());
  EXPECT_TRUE(symbols.IsReading());
}

// Where a file hangs and no collector is there.
TEST_F(AsyncSymbolizerTest, WhatIsExpectedTakesLittleMemory) {
  Endless hangs(absl::StrCat(files_.path(), "/hangs"), "lull-test: hang");
  AsyncSymbolizer symbols(files_.path());
  Watch(&symbols);
  const size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
  const std::vector<uint64_t> addresses(4096, hangs.address());
  for (int i = 0; i < 4'000; ++i) symbols.Expect(kKey, addresses);
  EXPECT_LT(mallinfo2().uordblks + mallinfo2().hblkhd, before + (16 << 20));
}

TEST_F(AsyncSymbolizerTest, WhatHangsCostsNamesAndIsCounted) {
  Endless endless(absl::StrCat(files_.path(), "/endless"));
  AsyncSymbolizer symbols(files_.path(), absl::Milliseconds(500));
  Watch(&symbols);
  for (int i = 0; i < 2; ++i) {
    v1::Batch batch = BatchOf({endless.address()});
    ASSERT_TRUE(Name(&symbols, &batch));
    ASSERT_THAT(NativeOf(batch).frames(), SizeIs(1));
    EXPECT_EQ(NativeOf(batch).frames(0).function(),
              absl::StrFormat("0x%x", endless.address() - 1));
    EXPECT_EQ(batch.counters(0).modules_unread(), 1u);
  }
  EXPECT_EQ(symbols.ModulesUnread(kKey), 1u);
  EXPECT_FALSE(symbols.IsReading()) << "there is nothing to wait for";
}

}  // namespace
}  // namespace lull::relay
