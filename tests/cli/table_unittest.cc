#include "cli/render/table.h"

#include <gtest/gtest.h>

namespace lull {
namespace {

TEST(Table, AlignsCellsAndLeavesNoTrailingSpace) {
  Table table({">n", "where"});
  table.AddRow({"1", "b"});
  table.AddNote("note");
  table.AddRow({"100",
                "\xC3\xA4"
                "bc"});
  EXPECT_EQ(table.Text(),
            "    n  where\n"
            "    1  b\n"
            "      note\n"
            "  100  \xC3\xA4"
            "bc\n");
}

}  // namespace
}  // namespace lull
