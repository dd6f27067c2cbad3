#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "preload/entry/process_kind.h"

namespace lull {
namespace {

ProcessKind classify(const std::vector<std::string>& words) {
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  argv.push_back(nullptr);
  return classify_process(static_cast<int>(words.size()), argv.data());
}

struct Case {
  std::vector<std::string> words;
  ProcessKind kind;
};

class ProcessKindTable : public testing::TestWithParam<Case> {};

TEST_P(ProcessKindTable, IsReadFromTheCommandLine) {
  EXPECT_EQ(classify(GetParam().words), GetParam().kind);
}

constexpr auto kOrdinary = ProcessKind::kOrdinary;
constexpr auto kLauncher = ProcessKind::kLauncher;
constexpr auto kHelper = ProcessKind::kHelper;

INSTANTIATE_TEST_SUITE_P(
    CommandLines, ProcessKindTable,
    testing::Values(
        Case{{"python", "train.py"}, kOrdinary}, Case{{"python"}, kOrdinary},
        Case{{"python", "-"}, kOrdinary}, Case{{"python", "-c", "print(1)"}, kOrdinary},
        Case{{"python", "-m", "pytest", "torchrun"}, kOrdinary},
        Case{{"python", "train.py", "-m", "torch.distributed.run"}, kOrdinary},
        Case{{"python", "/opt/bin/torchrun", "--nproc-per-node", "8", "t.py"},
             kLauncher},
        Case{{"python", "torchrun"}, kLauncher},
        Case{{"python", "torchrun.py"}, kOrdinary},
        Case{{"python", "-m", "torch.distributed.run", "t.py"}, kLauncher},
        Case{{"python", "-mtorch.distributed.run", "t.py"}, kLauncher},
        Case{{"python", "-u", "-m", "torch.distributed.launch", "t.py"}, kLauncher},
        Case{{"python", "-um", "torch.distributed.launch", "t.py"}, kLauncher},
        Case{{"python", "-X", "dev", "-W", "ignore", "-m", "torch.distributed.run"},
             kLauncher},
        Case{{"python", "-Xdev", "-Wignore", "-m", "torch.distributed.run"}, kLauncher},
        Case{{"python", "-X", "-m", "torch.distributed.run"}, kOrdinary},
        Case{{"python", "--check-hash-based-pycs", "never", "torchrun"}, kLauncher},
        Case{{"python", "--", "torchrun"}, kLauncher},
        Case{{"python", "--"}, kOrdinary}, Case{{"python", "-m"}, kOrdinary},
        Case{{"python", "-m", "torch.distributed.run_tests"}, kOrdinary},
        Case{{"python", "/usr/bin/accelerate", "launch", "t.py"}, kLauncher},
        Case{{"python", "-c",
              "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, "
              "pipe_handle=7)",
              "--multiprocessing-fork"},
             kHelper},
        Case{{"python", "-B", "-c",
              "from multiprocessing.resource_tracker import main;main(6)"},
             kHelper},
        Case{
            {"python", "-c", "from multiprocessing.forkserver import main; main(5, 6)"},
            kHelper},
        Case{{"python", "-cfrom multiprocessing.semaphore_tracker import main;main(6)"},
             kHelper},
        Case{{"python", "/site/torch/_inductor/compile_worker/__main__.py",
              "--workers=8"},
             kHelper}));

TEST(ProcessKind, TakesAMissingCommandLineForOrdinary) {
  EXPECT_EQ(classify_process(0, nullptr), ProcessKind::kOrdinary);
  const char* nothing[] = {nullptr};
  EXPECT_EQ(classify_process(0, nothing), ProcessKind::kOrdinary);
  EXPECT_EQ(classify_process(1, nothing), ProcessKind::kOrdinary);
}

}  // namespace
}  // namespace lull
