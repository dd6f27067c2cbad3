#include "cli/render/command_name.h"

#include <gtest/gtest.h>

namespace lull {
namespace {

TEST(ShortCommand, LeavesOutFoldersAndTheOptionsOfAnInterpreter) {
  EXPECT_EQ(ShortCommand("/home/u/venv/bin/python -W ignore::UserWarning train.py "
                         "--workers 1",
                         60),
            "python train.py --workers 1");
  EXPECT_EQ(ShortCommand("/usr/bin/python3.11 -u -Wignore -X dev -OO train.py", 60),
            "python3.11 train.py");
  EXPECT_EQ(ShortCommand("python -uW ignore train.py -W x", 60),
            "python train.py -W x");
  EXPECT_EQ(ShortCommand("/opt/bin/train --data /mnt/data", 60),
            "train --data /mnt/data");
}

TEST(ShortCommand, KeepsWhatAnInterpreterRuns) {
  EXPECT_EQ(ShortCommand("/usr/bin/python3 -u -m torch.distributed.run train.py", 60),
            "python3 -m torch.distributed.run train.py");
  EXPECT_EQ(ShortCommand("python3 -c 'import gc; gc.collect()'", 60),
            "python3 -c 'import gc; gc.collect()'");
  EXPECT_EQ(ShortCommand("python3 -", 60), "python3 -");
  EXPECT_EQ(ShortCommand("/usr/bin/python3", 60), "python3");
  EXPECT_EQ(ShortCommand("/usr/bin/python3 -W ignore", 60), "python3 -W ignore");
}

TEST(ShortCommand, NamesALongScriptByItsBaseName) {
  EXPECT_EQ(ShortCommand("python tools/demo_job/train.py", 60),
            "python tools/demo_job/train.py");
  EXPECT_EQ(ShortCommand("python tools/demo_job/train.py --workers 1", 30),
            "python train.py --workers 1");
  EXPECT_EQ(ShortCommand("/opt/bin/python /opt/bin/torchrun train.py", 60),
            "python torchrun train.py");
  EXPECT_EQ(ShortCommand("python '/home/a b/it/train.py' --workers 1", 30),
            "python train.py --workers 1");
}

TEST(ShortCommand, CutsTheEnd) {
  EXPECT_EQ(ShortCommand("/bin/train --alpha 1 --beta 2", 20), "train --alpha 1 -...");
  EXPECT_EQ(ShortCommand("train '\x1b[1m'", 20), "train '?[1m'");
}

TEST(ShortCommand, TakesWhateverAJobIsCalled) {
  EXPECT_EQ(ShortCommand("", 60), "");
  EXPECT_EQ(ShortCommand("  ", 60), "");
  EXPECT_EQ(ShortCommand("/", 60), "/");
  EXPECT_EQ(ShortCommand("'/my tools/train it' --x", 60), "'train it' --x");
  EXPECT_EQ(ShortCommand("python 'unfinished", 60), "python 'unfinished");
  EXPECT_EQ(ShortCommand("python x\\", 60), "python x\\");
}

}  // namespace
}  // namespace lull
