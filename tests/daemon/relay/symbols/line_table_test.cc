#include "daemon/relay/symbols/line_table.h"

#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/escaping.h"

namespace lull::relay {
namespace {

std::string Bytes(std::initializer_list<int> values) {
  std::string bytes;
  for (int value : values) bytes.push_back(static_cast<char>(value));
  return bytes;
}

TEST(LineOfInstruction, ReadsLnotab) {
  // Bytes 0-5 line 10, 6-13 line 12, from 14 line 11 (a step back).
  std::string table = Bytes({6, 2, 8, 255});
  EXPECT_EQ(LineOfInstruction(8, 10, table, 0), 10);
  EXPECT_EQ(LineOfInstruction(8, 10, table, 4), 10);
  EXPECT_EQ(LineOfInstruction(8, 10, table, 6), 12);
  EXPECT_EQ(LineOfInstruction(9, 10, table, 13), 12);
  EXPECT_EQ(LineOfInstruction(9, 10, table, 14), 11);
}

TEST(LineOfInstruction, ReadsPep626WithItsInstructionsWithoutALine) {
  std::string table = Bytes({4, 1, 6, 128, 2, 3});
  EXPECT_EQ(LineOfInstruction(10, 5, table, 2), 6);
  EXPECT_EQ(LineOfInstruction(10, 5, table, 4), kNoLine);
  EXPECT_EQ(LineOfInstruction(10, 5, table, 10), 9);
  EXPECT_EQ(LineOfInstruction(10, 5, table, 12), kNoLine) << "beyond the table";
}

TEST(LineOfInstruction, AFrameThatHasNotBegunIsAtItsFirstLine) {
  for (int minor : {8, 10, 11, 13}) {
    EXPECT_EQ(LineOfInstruction(minor, 77, "", -1), 77);
  }
}

TEST(LineOfInstruction, KnowsNoLineWithoutATable) {
  EXPECT_EQ(LineOfInstruction(11, 77, "", 0), kNoLine);
  for (int minor : {8, 9, 10, 11}) {
    EXPECT_EQ(LineOfInstruction(minor, 77, std::nullopt, 0), kNoLine);
  }
}

// co_lnotab of a lambda.
TEST(LineOfInstruction, CodeOnOneLineNeedsNoTableUpTo39) {
  EXPECT_EQ(LineOfInstruction(8, 77, "", 0), 77);
  EXPECT_EQ(LineOfInstruction(9, 77, "", 1000), 77);
}

TEST(LineOfInstruction, EndsOnAnyBytes) {
  for (int minor : {8, 10, 11}) {
    for (int fill : {0x00, 0x7f, 0x80, 0xff, 0xf7}) {
      std::string table(1001, static_cast<char>(fill));
      int32_t line = LineOfInstruction(minor, 2147483647, table, 2147483647);
      EXPECT_GE(line, 0);
    }
  }
}

// Prints, for every code object of a few large modules: first line, line table,
// and what the interpreter itself says of each instruction.
constexpr char kScript[] = R"(
import ctypes, sys, types, argparse, typing, inspect, decimal, asyncio.base_events
addr2line = ctypes.pythonapi.PyCode_Addr2Line
addr2line.argtypes = [ctypes.py_object, ctypes.c_int]
def walk(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from walk(constant)
def multiline(a, b):
    for i in range(a):
        try:
            b = (a +
                 b *
                 i)
        finally:
            b = [x
                 for x in range(3)]
    with open(__file__) as f:
        return b
roots = [multiline.__code__]
for module in (argparse, typing, inspect, asyncio.base_events):
    with open(module.__file__) as source:
        roots.append(compile(source.read(), module.__file__, 'exec'))
for root in roots:
    for code in walk(root):
        if sys.version_info >= (3, 10):
            table = code.co_linetable
        else:
            table = code.co_lnotab
        lines = [addr2line(code, i) for i in range(0, len(code.co_code), 2)]
        print(sys.version_info[1], code.co_firstlineno, table.hex() or '-',
              ','.join(map(str, lines)))
)";

class AgainstTheInterpreter : public ::testing::TestWithParam<int> {};

TEST_P(AgainstTheInterpreter, TellsTheLineOfEveryInstruction) {
  char path[] = "/tmp/lull-line-table-XXXXXX";
  int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  close(fd);
  std::ofstream(path) << kScript;
  // A version manager's shim answers for the series that it is asked for.
  std::string series = "3." + std::to_string(GetParam());
  std::string command =
      "PYENV_VERSION=" + series + " python" + series + " " + path + " 2>/dev/null";
  FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output;
  char buffer[65536];
  size_t got;
  while ((got = fread(buffer, 1, sizeof(buffer), pipe)) > 0) output.append(buffer, got);
  int status = pclose(pipe);
  unlink(path);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
    GTEST_SKIP() << "no python3." << GetParam() << " on PATH";
  }
  ASSERT_EQ(status, 0);

  std::istringstream lines(output);
  int minor;
  int first_line;
  std::string table;
  std::string expected;
  size_t instructions = 0;
  while (lines >> minor >> first_line >> table >> expected) {
    ASSERT_EQ(minor, GetParam());
    std::string bytes = table == "-" ? "" : absl::HexStringToBytes(table);
    std::istringstream values(expected);
    std::string value;
    for (int lasti = 0; std::getline(values, value, ','); lasti += 2, ++instructions) {
      int line = std::stoi(value);
      ASSERT_EQ(LineOfInstruction(minor, first_line, bytes, lasti),
                line < 0 ? kNoLine : line)
          << "instruction " << lasti << " of the code at line " << first_line;
    }
  }
  EXPECT_GT(instructions, 10'000u);
}

INSTANTIATE_TEST_SUITE_P(Versions, AgainstTheInterpreter,
                         ::testing::Values(8, 9, 10, 11, 12, 13), [](const auto& info) {
                           return "Python3_" + std::to_string(info.param);
                         });

}  // namespace
}  // namespace lull::relay
