// What files can do to the process that reads them, and what it can do to others. The
// reader is this program, see unit_main.cc.
#include "daemon/relay/symbols/symbol_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "daemon/relay/symbols/module_cache.h"
#include "tests/daemon/storage/temporary_directory.h"

namespace lull::relay {
namespace {

using Outcome = ModuleCache::Outcome;

constexpr uid_t kUser = 12345;
constexpr gid_t kGroup = 23456;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class SymbolReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(chmod(files_.path().c_str(), 0755), 0);
    process_ = {getpid(), kUser, kGroup};
  }

  // A file as maps would have it.
  Mapping Mapped(const std::string& path) const {
    struct stat info = {};
    EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
    Mapping mapping;
    mapping.end = 4096;
    mapping.device = info.st_dev;
    mapping.inode = info.st_ino;
    mapping.path = path;
    return mapping;
  }
  // One that makes its reader do something.
  Mapping Evil(const std::string& name, const std::string& how) const {
    std::ofstream(files_ / name) << "lull-test: " << how;
    return Mapped(files_ / name);
  }
  Mapping Good() const {
    char exe[4096];
    ssize_t size = readlink("/proc/self/exe", exe, sizeof(exe));
    return Mapped(std::string(exe, static_cast<size_t>(size)));
  }
  Outcome Resolve(const Mapping& mapping) { return Resolve(mapping, &modules_); }
  Outcome Resolve(const Mapping& mapping, ModuleCache* modules) {
    std::vector<ModuleCache::Place> places(1);
    places[0].mapping = &mapping;
    modules->Resolve(process_, &places);
    return places[0].outcome;
  }
  pid_t Reader() {
    SymbolReader* reader = modules_.ReaderOf(process_);
    return reader == nullptr ? -1 : reader->pid();
  }
  std::map<std::string, std::string> ReaderStatus() {
    std::map<std::string, std::string> fields;
    std::string text = ReadAll(absl::StrCat("/proc/", Reader(), "/status"));
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      std::pair<std::string, std::string> field =
          absl::StrSplit(line, absl::MaxSplits(":\t", 1));
      fields.insert(field);
    }
    return fields;
  }

  test::TemporaryDirectory files_;
  MappedBy process_;
  ModuleCache modules_;
};

TEST_F(SymbolReaderTest, HasTheRightsOfTheTargetsUserAndNoMore) {
  auto status = ReaderStatus();
  if (getuid() == 0) {
    EXPECT_EQ(status["Uid"], "12345\t12345\t12345\t12345");
    EXPECT_EQ(status["Gid"], "23456\t23456\t23456\t23456");
    EXPECT_EQ(absl::StripAsciiWhitespace(status["Groups"]), "");
  }
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapAmb"}) {
    EXPECT_EQ(status[set], "0000000000000000") << set;
  }
  EXPECT_EQ(status["NoNewPrivs"], "1");
}

TEST_F(SymbolReaderTest, IsNobodyForAFileOfRoot) {
  if (getuid() != 0) GTEST_SKIP() << "needs root, to have something to give up";
  process_.uid = process_.gid = 0;
  auto status = ReaderStatus();
  EXPECT_EQ(status["Uid"], "65534\t65534\t65534\t65534");
  EXPECT_EQ(status["Gid"], "65534\t65534\t65534\t65534");
  EXPECT_EQ(status["CapEff"], "0000000000000000");
}

TEST_F(SymbolReaderTest, HasNothingOfTheRelaysButTheSocket) {
  setenv("SECRET_OF_THE_RELAY", "1", 1);
  int open_here = open("/dev/null", O_RDONLY);  // on purpose without O_CLOEXEC
  pid_t reader = Reader();
  unsetenv("SECRET_OF_THE_RELAY");
  close(open_here);
  if (getuid() != 0) GTEST_SKIP() << "needs root, to look into the reader";
  EXPECT_EQ(ReadAll(absl::StrCat("/proc/", reader, "/environ")).find("SECRET"),
            std::string::npos);
  int descriptors = 0;
  for (int fd = 4; fd < 1024; ++fd) {
    std::string path = absl::StrCat("/proc/", reader, "/fd/", fd);
    descriptors += access(path.c_str(), F_OK) == 0 ? 1 : 0;
  }
  EXPECT_EQ(descriptors, 0);
}

TEST_F(SymbolReaderTest, ReadsFilesThatTheUserCouldNotOpen) {
  std::string path = files_ / "locked";
  std::ofstream(path, std::ios::binary) << ReadAll("/proc/self/exe");
  ASSERT_EQ(chmod(path.c_str(), 0400), 0);
  EXPECT_EQ(Resolve(Mapped(path)), Outcome::kKnown);
}

TEST_F(SymbolReaderTest, QuotesWhatTheUserMayReadAndNoMore) {
  const std::string open_to_all = files_ / "open.py", locked = files_ / "locked.py";
  for (const std::string& path : {open_to_all, locked}) {
    std::ofstream(path) << "one\ntwo\nthree\n";
  }
  ASSERT_EQ(chmod(open_to_all.c_str(), 0644), 0);
  ASSERT_EQ(chmod(locked.c_str(), 0600), 0);
  std::vector<SymbolReader::Question> questions(3);
  for (SymbolReader::Question& question : questions) {
    question.module = 7;
    question.offset = 2;
    question.file.reset(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    question.not_after_ns = UINT64_MAX;
  }
  questions[0].path = open_to_all;
  questions[1].path = locked;
  questions[2].path = open_to_all;
  questions[2].offset = 9;
  std::vector<SymbolAnswer> answers;
  modules_.Quote(process_, questions, &answers);
  ASSERT_EQ(answers.size(), 3u);
  ASSERT_EQ(answers[0].frames.size(), 3u);
  EXPECT_EQ(answers[0].address, 1u);
  EXPECT_EQ(answers[0].frames[1].function, "two");
  EXPECT_EQ(answers[1].frames.size(), getuid() == 0 ? 0u : 3u);
  EXPECT_TRUE(answers[2].frames.empty());
}

TEST_F(SymbolReaderTest, DiesOverAFileTwiceAndThenDoesWithoutIt) {
  EXPECT_EQ(Resolve(Good()), Outcome::kKnown);
  Mapping evil = Evil("evil.so", "abort");
  pid_t before = Reader();
  EXPECT_EQ(Resolve(evil), Outcome::kUnread);
  pid_t after = Reader();
  EXPECT_NE(after, before);
  EXPECT_EQ(Resolve(evil), Outcome::kUnread);
  EXPECT_EQ(Reader(), after) << "it was asked for again";
  EXPECT_EQ(Resolve(Good()), Outcome::kKnown) << "another file pays for it";
}

TEST_F(SymbolReaderTest, DoesNotLoseOtherFilesOfTheSameStack) {
  Mapping good = Good();
  Mapping evil = Evil("evil.so", "abort");
  Mapping worse = Evil("worse.so", "lie");
  Mapping none = Evil("none.so", "nothing");
  std::vector<ModuleCache::Place> places(8);
  const Mapping* order[] = {&good, &evil, &good, &worse, &none, &evil, &good, &good};
  for (size_t i = 0; i < places.size(); ++i) places[i].mapping = order[i];
  modules_.Resolve(process_, &places);
  for (size_t i = 0; i < places.size(); ++i) {
    Outcome expected = order[i] == &good   ? Outcome::kKnown
                       : order[i] == &none ? Outcome::kNoFile
                                           : Outcome::kUnread;
    EXPECT_EQ(places[i].outcome, expected) << i;
  }
}

// What it answered before it died counts, also where the relay had no time to read it
// yet and the reader none to read what else it was asked.
TEST_F(SymbolReaderTest, DiesOverOneFileAndNotOverTheOneBefore) {
  Mapping good = Good();
  for (const char* name : {"evil.so", "worse.so", "worst.so"}) {
    ASSERT_EQ(Resolve(good), Outcome::kKnown) << name;  // and it takes no time any more
    Mapping evil = Evil(name, "abort");
    std::vector<ModuleCache::Place> places(500);
    for (ModuleCache::Place& place : places) place.mapping = &good;
    places[1].mapping = &evil;
    modules_.Resolve(process_, &places);
    for (size_t i = 0; i < places.size(); ++i) {
      ASSERT_EQ(places[i].outcome, i == 1 ? Outcome::kUnread : Outcome::kKnown) << i;
    }
  }
}

TEST_F(SymbolReaderTest, AnswersManyQuestionsAtOnce) {
  Mapping good = Good();
  std::vector<ModuleCache::Place> places(5'000);
  for (size_t i = 0; i < places.size(); ++i) {
    places[i].mapping = &good;
    places[i].offset = i * 64;
  }
  modules_.Resolve(process_, &places);
  for (const ModuleCache::Place& place : places) {
    ASSERT_EQ(place.outcome, Outcome::kKnown);
  }
}

TEST_F(SymbolReaderTest, DiesInTheBackgroundToo) {
  EXPECT_EQ(Resolve(Good()), Outcome::kKnown);
  Mapping evil = Evil("evil.so", "abort");
  evil.start = 0x1000;
  evil.end = evil.start + (4 << 20);
  Maps maps = Maps::Parse(absl::StrCat("1000-401000 r-xp 00000000 00:00 ", evil.inode,
                                       " ", evil.path, "\n"));
  ASSERT_EQ(maps.mappings().size(), 1u);
  for (int i = 0; i < 3; ++i) {
    modules_.Prepare(process_, maps);
    usleep(100'000);
    EXPECT_EQ(Resolve(Good()), Outcome::kKnown);
  }
  EXPECT_EQ(Resolve(maps.mappings()[0]), Outcome::kUnread);
}

TEST_F(SymbolReaderTest, DiesOfAnAnswerThatIsNone) {
  EXPECT_EQ(Resolve(Evil("evil.so", "lie")), Outcome::kUnread);
  EXPECT_EQ(Resolve(Good()), Outcome::kKnown);
}

TEST_F(SymbolReaderTest, IsNotWaitedForForEver) {
  ModuleCache impatient(absl::Seconds(3));
  Mapping evil = Evil("evil.so", "spin");
  EXPECT_EQ(Resolve(evil, &impatient), Outcome::kUnread);
  EXPECT_EQ(Resolve(evil, &impatient), Outcome::kUnread);
  EXPECT_EQ(Resolve(Good()), Outcome::kKnown);
}

TEST_F(SymbolReaderTest, HasABoundForMemory) {
  if (getenv("ASAN_OPTIONS") != nullptr || getenv("TSAN_OPTIONS") != nullptr) {
    GTEST_SKIP() << "sanitizers map more than any bound";
  }
  EXPECT_EQ(Resolve(Evil("evil.so", "eat")), Outcome::kUnread);
  EXPECT_EQ(Resolve(Good()), Outcome::kKnown);
}

TEST_F(SymbolReaderTest, MakesNoProcesses) {
  if (getuid() != 0) GTEST_SKIP() << "other processes of ours count";
  EXPECT_EQ(Resolve(Evil("evil.so", "fork")), Outcome::kUnread);
}

TEST_F(SymbolReaderTest, IsGivenUpWhenSomebodyKeepsKillingIt) {
  int killed = 0;
  while (killed < 100 && Reader() > 0) {
    kill(Reader(), SIGKILL);
    while (modules_.ReaderOf(process_) != nullptr && Reader() > 0 &&
           kill(Reader(), 0) != 0) {
    }
    usleep(20'000);
    ++killed;
  }
  EXPECT_GE(killed, 3);
  EXPECT_LT(killed, 20);
  EXPECT_EQ(Resolve(Good()), Outcome::kUnread);
}

TEST_F(SymbolReaderTest, IsOneForEachUser) {
  if (getuid() != 0) GTEST_SKIP() << "needs root, to become other users";
  pid_t one = Reader();
  process_.uid = kUser + 1;
  pid_t another = Reader();
  EXPECT_NE(one, another);
  EXPECT_EQ(Resolve(Evil("evil.so", "abort")), Outcome::kUnread);
  process_.uid = kUser;
  EXPECT_EQ(Reader(), one) << "what a user's file does is that user's";
}

TEST_F(SymbolReaderTest, EndsWithItsRelay) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  pid_t relay = fork();
  if (relay == 0) {
    ModuleCache modules;
    SymbolReader* reader = modules.ReaderOf(process_);
    pid_t pid = reader == nullptr ? -1 : reader->pid();
    if (write(ends[1], &pid, sizeof(pid)) != sizeof(pid)) _exit(1);
    pause();
  }
  pid_t reader = -1;
  ASSERT_EQ(read(ends[0], &reader, sizeof(reader)),
            static_cast<ssize_t>(sizeof(reader)));
  ASSERT_GT(reader, 0);
  ASSERT_EQ(kill(relay, SIGKILL), 0);
  waitpid(relay, nullptr, 0);
  auto gone = [&] {
    std::string stat = ReadAll(absl::StrCat("/proc/", reader, "/stat"));
    return stat.empty() || stat.find(") Z ") != std::string::npos;
  };
  for (int i = 0; i < 500 && !gone(); ++i) usleep(20'000);
  EXPECT_TRUE(gone());
}

TEST_F(SymbolReaderTest, TellsWhatItCosts) {
  EXPECT_EQ(Resolve(Good()), Outcome::kKnown);
  uint64_t alive = modules_.CpuNs();
  EXPECT_GT(alive, 0u);
  EXPECT_EQ(Resolve(Evil("evil.so", "abort")), Outcome::kUnread);
  EXPECT_GE(modules_.CpuNs(), alive / 2);  // of what has died, too, in coarser steps
}

}  // namespace
}  // namespace lull::relay
