#include "daemon/fleet/row_binary.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "daemon/fleet/column_types.h"
#include "daemon/fleet/tables.h"

namespace lull::fleet {
namespace {

struct Example {
  Day day{20'000};
  std::string text = "ab";
  std::vector<std::string> texts = {"c", ""};
  uint8_t flag = 1;
  int32_t negative = -2;
  uint32_t middle = 0x01020304;
  uint64_t large = 0x0102030405060708;
  std::optional<int32_t> there = 3;
  std::optional<int32_t> absent;

  template <typename Visitor>
  static void Columns(Visitor&& column) {
    column("day", &Example::day);
    column("text", &Example::text);
    column("texts", &Example::texts);
    column("flag", &Example::flag);
    column("negative", &Example::negative);
    column("middle", &Example::middle);
    column("large", &Example::large);
    column("there", &Example::there);
    column("absent", &Example::absent);
  }
};

TEST(RowBinary, IsWhatClickHouseReads) {
  std::string bytes;
  PutRow(Example(), &bytes);
  const std::string expected(
      "\x20\x4e"
      "\x02"
      "ab"
      "\x02\x01"
      "c\x00"
      "\x01"
      "\xfe\xff\xff\xff"
      "\x04\x03\x02\x01"
      "\x08\x07\x06\x05\x04\x03\x02\x01"
      "\x00\x03\x00\x00\x00"
      "\x01",
      2 + 3 + 4 + 1 + 4 + 4 + 8 + 5 + 1);
  EXPECT_EQ(bytes, expected);
}

TEST(RowBinary, KnowsTheTypesOfColumns) {
  const auto columns = ColumnTypes<Example>();
  ASSERT_EQ(columns.size(), 9U);
  EXPECT_EQ(columns[0], (ColumnType{"day", "Date"}));
  EXPECT_EQ(columns[2], (ColumnType{"texts", "Array(String)"}));
  EXPECT_EQ(columns[8], (ColumnType{"absent", "Nullable(Int32)"}));
}

TEST(RowBinary, RowsBeginWithTheirKey) {
  Editions().ForEachTable([]<typename Row>(const std::vector<Row>&) {
    const auto columns = ColumnTypes<Row>();
    ASSERT_GT(columns.size(), 4U);
    EXPECT_EQ(columns[0], (ColumnType{"day", "Date"}));
    EXPECT_EQ(columns[1], (ColumnType{"job", "String"}));
    EXPECT_EQ(columns[2], (ColumnType{"slot", "UInt64"}));
    EXPECT_EQ(columns[3], (ColumnType{"version", "UInt64"}));
  });
}

TEST(RowBinary, TakesBackWhatItPut) {
  const std::string longer(300, 'x');
  std::string bytes;
  Put(longer, &bytes);
  Put(std::numeric_limits<uint64_t>::max(), &bytes);
  std::string_view data = bytes;
  std::string text;
  uint64_t number = 0;
  EXPECT_TRUE(Take(&data, &text));
  EXPECT_TRUE(Take(&data, &number));
  EXPECT_EQ(text, longer);
  EXPECT_EQ(number, std::numeric_limits<uint64_t>::max());
  EXPECT_TRUE(data.empty());
}

TEST(RowBinary, EndsWithinAValueAreSeen) {
  std::string bytes;
  Put(std::string(300, 'x'), &bytes);
  for (size_t size = 0; size < bytes.size(); ++size) {
    std::string_view data(bytes.data(), size);
    std::string text;
    EXPECT_FALSE(Take(&data, &text)) << size;
  }
  std::string_view data("\x01\x02\x03");
  uint32_t number = 0;
  EXPECT_FALSE(Take(&data, &number));
  const std::string endless(20, '\xff');
  std::string_view all = endless;
  std::string text;
  EXPECT_FALSE(Take(&all, &text));
}

TEST(Take, RefusesArraysOfMoreThanAnybodyHas) {
  std::vector<std::string> texts(kMostElements, "");
  std::string bytes;
  Put(texts, &bytes);
  std::string_view data = bytes;
  std::vector<std::string> taken;
  ASSERT_TRUE(Take(&data, &taken));
  EXPECT_EQ(taken, texts);
  EXPECT_TRUE(data.empty());
  texts.emplace_back();
  bytes.clear();
  Put(texts, &bytes);
  data = bytes;
  EXPECT_FALSE(Take(&data, &taken));
  data = std::string_view("\x02\x01", 2);  // ends within the first
  EXPECT_FALSE(Take(&data, &taken));
}

}  // namespace
}  // namespace lull::fleet
