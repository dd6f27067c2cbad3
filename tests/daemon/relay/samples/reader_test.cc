// Stacks that are read while they change: none that cannot be is taken for one that
// was.
#include "daemon/relay/samples/reader.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "daemon/base/clock.h"
#include "tests/daemon/relay/samples/puppet.h"
#include "tests/preload/interpreters.h"

namespace lull::relay {
namespace {

struct Named {
  std::string function;
  std::string file;
  int32_t line;
  bool begun = true;  // it has run an instruction
};
using Frames = std::vector<Named>;  // outermost first

// How quickly a program goes on depends on how long this machine takes to copy it: a
// rate that is asked of the reader must not be one of the machine.
struct Pace {
  double copies = 0;   // one call lasts as long as that many copies take
  double framed = 0;   // of the looks that nobody interrupted, so many find frames
  int looks_less = 1;  // so many times fewer looks than usual, as each takes long
};
// Several calls come and go while copies are taken.
constexpr Pace kQuick{0.5, 0.9};
constexpr Pace kSlow{30, 0.95};
constexpr Pace kDeep{.looks_less = 3};
// Looks that nobody interrupted say something of the reader if there are so many.
constexpr int kEnough = 300;
constexpr size_t kPiecesOfCopy = 20;  // of kQuick by 3.8 to 3.10

// Many more in the slow tier, and by hand: LULL_LOOKS=100000.
int Looks() {
  const char* wanted = getenv("LULL_LOOKS");
  return wanted != nullptr ? atoi(wanted) : 3000;
}

std::string Text(const Frames& frames) {
  std::string text;
  for (const Named& frame : frames) {
    text +=
        frame.function + " (" + frame.file + ":" + std::to_string(frame.line) + ") ";
  }
  return text;
}

// The line of the puppet that begins so.
int32_t LineOf(const std::string& text) {
  std::ifstream source(LULL_PUPPETS "/flutter.py");
  std::string line;
  for (int32_t number = 1; std::getline(source, line); ++number) {
    if (line.rfind(text, 0) == 0) return number;
  }
  ADD_FAILURE() << "no line begins with " << text;
  return 0;
}

uint64_t ThreadCpuNs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<uint64_t>(now.tv_nsec);
}

// What one copy takes at least, here and now.
double CopySeconds() {
  static char memory[kPiecesOfCopy * 4096];
  char copy[3 * kPiecesOfCopy * 128];
  std::vector<Piece> pieces;
  for (size_t i = 0; i < 3 * kPiecesOfCopy; ++i) {
    char* const at = memory + i % kPiecesOfCopy * 4096;
    *at = 1;
    pieces.push_back({reinterpret_cast<uint64_t>(at), 128});
  }
  TargetMemory self(getpid(), nullptr);
  uint64_t least_ns = UINT64_MAX;
  for (int i = 0; i < 200; ++i) {
    const uint64_t begin = MonotonicNs();
    self.Read(pieces, copy);
    least_ns = std::min(least_ns, MonotonicNs() - begin);
  }
  return static_cast<double>(least_ns) / 1e9 / 3;
}

// How often another thread had this one's processor, so far.
int64_t Interruptions() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw + usage.ru_nvcsw;
}

Frames NamesOf(const Look& look, CodeBook* codes) {
  Frames frames;
  for (auto seen = look.frames.rbegin(); seen != look.frames.rend(); ++seen) {
    const FrameName& name = codes->Name(codes->NameOf(seen->number));
    frames.push_back({name.function, name.file, codes->Line(seen->number, seen->lasti),
                      seen->lasti >= 0});
  }
  return frames;
}

// Takes many looks at the scenario in each interpreter. `impossible` says why a stack
// cannot be, or "". Returns how many looks of each quality there were.
void LookMany(const std::string& scenario,
              const std::function<std::string(const Frames&, bool truncated, bool cut)>&
                  impossible,
              std::set<std::string>* seen = nullptr, Pace pace = {}) {
  ASSERT_FALSE(lull::testing::interpreters().empty());
  const int looks = Looks() / pace.looks_less;
  for (const auto& python : lull::testing::interpreters()) {
    SCOPED_TRACE(python.version);
    const double seconds = pace.copies * CopySeconds();
    Puppet puppet(python.path, scenario, seconds);
    ASSERT_TRUE(puppet.started());
    TargetMemory memory(puppet.pid(), nullptr);
    CodeBook codes(puppet.layout());
    StackReader reader(puppet.layout(), puppet.state(), puppet.thread());
    usleep(50'000);
    std::map<v1::HostSampleQuality, int> count;
    uint64_t spent_ns = 0;
    int wrong = 0;
    int repeated = 0, framed = 0;
    int undisturbed = 0, undisturbed_framed = 0;
    for (int i = 0; i < looks; ++i) {
      const int64_t interruptions = Interruptions();
      const uint64_t begin = ThreadCpuNs();
      Look look = reader.Take(&memory, &codes);
      spent_ns += ThreadCpuNs() - begin;
      ++count[look.quality];
      if (look.repeated > 0) ++repeated;
      const bool quiet = Interruptions() == interruptions;
      Frames frames = NamesOf(look, &codes);
      if (!frames.empty()) ++framed;
      if (quiet) ++undisturbed;
      if (quiet && !frames.empty()) ++undisturbed_framed;
      if (seen != nullptr && !frames.empty()) seen->insert(frames.back().function);
      if (!frames.empty() || look.quality == v1::HOST_SAMPLE_QUALITY_EXACT) {
        std::string why = impossible(frames, look.truncated,
                                     look.quality == v1::HOST_SAMPLE_QUALITY_CUT);
        if (!why.empty() && ++wrong <= 3) ADD_FAILURE() << why << ": " << Text(frames);
      }
      usleep(static_cast<useconds_t>(rand() % 300));
    }
    EXPECT_EQ(wrong, 0);
    const int told =
        count[v1::HOST_SAMPLE_QUALITY_EXACT] + count[v1::HOST_SAMPLE_QUALITY_CUT];
    EXPECT_EQ(count[v1::HOST_SAMPLE_QUALITY_FAILED], 0);
    EXPECT_EQ(count[v1::HOST_SAMPLE_QUALITY_NO_STATE], 0) << "it runs Python";
    EXPECT_GT(told, looks * 9 / 10);
    if (undisturbed >= kEnough) {
      EXPECT_GE(undisturbed_framed, undisturbed * pace.framed);
    }
    printf(
        "%-5s %-14s calls of %.1f us, with frames %d, undisturbed %d of %d, "
        "exact %d cut %d no state %d failed %d again %d, %.1f us each\n",
        python.version.c_str(), scenario.c_str(), seconds * 1e6, framed,
        undisturbed_framed, undisturbed, count[v1::HOST_SAMPLE_QUALITY_EXACT],
        count[v1::HOST_SAMPLE_QUALITY_CUT], count[v1::HOST_SAMPLE_QUALITY_NO_STATE],
        count[v1::HOST_SAMPLE_QUALITY_FAILED], repeated,
        static_cast<double>(spent_ns) / 1e3 / looks);
  }
}

// Chains a0 ... a13 and b0 ... b13: one of them, without a hole, each frame in its
// file, callers at their call.
std::string Chain(const Frames& frames, bool, bool) {
  size_t at = 0;
  while (at < frames.size() && frames[at].file != "a.py" && frames[at].file != "b.py") {
    ++at;
  }
  const size_t first = at;
  for (; at < frames.size(); ++at) {
    const Named& frame = frames[at];
    if (frame.file.find("flutter.py") != std::string::npos) {
      // The leaf, which only the last function of a chain calls.
      if (at - first != 14 && frame.function != "spin") return "a leaf too early";
      continue;
    }
    const std::string letter = frames[first].file.substr(0, 1);
    const size_t number = at - first;
    if (frame.function != letter + std::to_string(number)) return "mixed chains";
    const int32_t call = static_cast<int32_t>(10 * number + 2);
    const bool leaf = at + 1 == frames.size();
    if (frame.line != call && !(leaf && frame.line == call - 1)) return "a wrong line";
  }
  return "";
}

TEST(StackReader, MixesNoQuickChains) { LookMany("flutter_quick", Chain); }

TEST(StackReader, MixesNoSlowChains) { LookMany("flutter_slow", Chain); }

// Below one of two names there is none of the other.
std::function<std::string(const Frames&, bool, bool)> NotBoth(
    const std::string& one, const std::string& other) {
  return [=](const Frames& frames, bool, bool) -> std::string {
    bool has_one = false, has_other = false;
    for (const Named& frame : frames) {
      has_one = has_one || frame.function == one;
      has_other = has_other || frame.function == other;
    }
    return has_one && has_other ? "both at once" : "";
  };
}

TEST(StackReader, MixesNoGenerators) {
  LookMany("generators", NotBoth("gen_a", "gen_b"));
}

// first() and second() are called at a line of their own each, from link_a() and
// link_b().
std::string Linked(const Frames& frames, bool, bool) {
  std::string why = NotBoth("link_a", "link_b")(frames, false, false);
  if (why.empty()) why = NotBoth("first", "second")(frames, false, false);
  for (size_t i = 0; why.empty() && i + 1 < frames.size(); ++i) {
    const std::string& caller = frames[i].function;
    const std::string& callee = frames[i + 1].function;
    if (caller != "link_a" && caller != "link_b") continue;
    const int32_t away = frames[i].line - LineOf("def " + caller);
    const bool first = (caller == "link_a") == (away == 1);
    if (callee != "first" && callee != "second" && callee != "kept") why = "a stranger";
    if (callee == (first ? "second" : "first")) why = "a caller at another call";
  }
  return why;
}

// What leads to frames lies all over the C stack, and somewhere else with each call.
TEST(StackReader, KeepsUpWithQuickCallsFromC) {
  LookMany("linked_quick", Linked, nullptr, kQuick);
}

// Each generator lies where none has been, and each call has two.
TEST(StackReader, KeepsUpWithGeneratorsAtNewPlaces) {
  LookMany("linked_slow", Linked, nullptr, kSlow);
}

TEST(StackReader, MixesNoCoroutines) {
  LookMany("coroutines", NotBoth("co_a", "co_b"));
}

TEST(StackReader, MixesNoDeepRecursions) {
  LookMany(
      "deep",
      [](const Frames& frames, bool truncated, bool cut) -> std::string {
        if (!truncated && !cut && !frames.empty() && frames[0].function != "<module>") {
          return "no beginning";
        }
        return NotBoth("rec_a", "rec_b")(frames, truncated, cut);
      },
      nullptr, kDeep);
}

TEST(StackReader, IsNotFooledByCodeAtAReusedAddress) {
  LookMany("exec_made", [](const Frames& frames, bool, bool) -> std::string {
    std::string file;
    for (const Named& frame : frames) {
      if (frame.file.rfind("file", 0) != 0) continue;
      const std::string number = frame.file.substr(4);
      if (!file.empty() && frame.file != file) return "two files at once";
      file = frame.file;
      const int n = atoi(number.c_str());
      if (frame.function != "<module>" && frame.function != "made" + number) {
        return "a function of another file";
      }
      // A module begins with line 1, whatever its first statement is at, and that is
      // told of a frame that has run nothing yet.
      if (!frame.begun && frame.function == "<module>" && frame.line == 1) continue;
      // Its own lines only; 0 is an instruction without one.
      if (frame.line != 0 && (frame.line < n + 1 || frame.line > n + 3)) {
        return "a line of another file";
      }
    }
    return "";
  });
}

TEST(StackReader, KeepsUpWithExceptions) {
  LookMany("exceptions", [](const Frames& frames, bool, bool cut) -> std::string {
    return !cut && frames[0].function != "<module>" ? "no beginning" : "";
  });
}

TEST(StackReader, NamesThePlaceOfABlockedThread) {
  std::set<std::string> seen;
  LookMany(
      "sleeper",
      [](const Frames& frames, bool, bool cut) -> std::string {
        return cut                                   ? "it does not change"
               : frames.back().function == "sleeper" ? ""
                                                     : "somewhere else";
      },
      &seen);
  EXPECT_EQ(seen, std::set<std::string>({"sleeper"}));
}

// While one thread is made and ended after the other, a state that is told for one of
// them is never taken for another's.
TEST(StackReader, SeesThatAThreadStateIsNotTheThreads) {
  for (const auto& python : lull::testing::interpreters()) {
    Puppet puppet(python.path, "threads");
    ASSERT_TRUE(puppet.started());
    TargetMemory memory(puppet.pid(), nullptr);
    CodeBook codes(puppet.layout());
    StackReader other(puppet.layout(), puppet.state(), puppet.thread() + 4096);
    StackReader nowhere(puppet.layout(), 0x10000, puppet.thread());
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ(other.Take(&memory, &codes).quality, v1::HOST_SAMPLE_QUALITY_NO_STATE);
      EXPECT_EQ(nowhere.Take(&memory, &codes).quality, v1::HOST_SAMPLE_QUALITY_FAILED);
    }
  }
}

TEST(StackReader, FailsOnceTheProcessIsGone) {
  const auto& python = lull::testing::interpreters().front();
  Puppet puppet(python.path, "flutter_slow");
  ASSERT_TRUE(puppet.started());
  TargetMemory memory(puppet.pid(), nullptr);
  CodeBook codes(puppet.layout());
  StackReader reader(puppet.layout(), puppet.state(), puppet.thread());
  EXPECT_NE(reader.Take(&memory, &codes).quality, v1::HOST_SAMPLE_QUALITY_FAILED);
  kill(puppet.pid(), SIGKILL);
  siginfo_t info;
  waitid(P_PID, static_cast<id_t>(puppet.pid()), &info, WEXITED | WNOWAIT);
  EXPECT_EQ(reader.Take(&memory, &codes).quality, v1::HOST_SAMPLE_QUALITY_FAILED);
}

}  // namespace
}  // namespace lull::relay
