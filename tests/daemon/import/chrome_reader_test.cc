#include "daemon/import/chrome_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lull::imports {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<Trace> Read(std::string text, const ReadLimits& limits = {}) {
  return ReadChromeTrace(*Input::OfBytes(std::move(text)), limits);
}

std::string Kernel(const std::string& more = "") {
  return R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1.5,"dur":2,)"
         R"("args":{"device":0,"stream":7,"correlation":3,"grid":[1,2,3],"x":{"device":9},)"
         R"("block":[4,5,6]}})" +
         more;
}

TEST(ChromeReader, ReadsFieldsInAnyOrder) {
  auto trace = Read(R"({"distributedInfo":{"rank":5},"traceEvents":[)" + Kernel() +
                    R"(],"baseTimeNanoseconds":1000,"other":[{"a":[1,{}]}]})");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->rank, 5);
  EXPECT_EQ(trace->base_ns, 1000u);
  ASSERT_EQ(trace->records.size(), 1u);
  EXPECT_EQ(trace->records[0].start_ns, 1500u);
  EXPECT_EQ(trace->records[0].end_ns, 3500u);
  EXPECT_EQ(trace->records[0].correlation, 3u);
  EXPECT_EQ(trace->kernels[0].grid_y(), 2u);
  EXPECT_EQ(trace->kernels[0].block_z(), 6u);
  EXPECT_EQ(trace->streams[0].device, 0u);
}

TEST(ChromeReader, ReadsAnArrayAlone) {
  auto trace = Read(" [" + Kernel() + "," + Kernel() + "] ");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->records.size(), 2u);
}

TEST(ChromeReader, CountsWhatItDoesNotUse) {
  auto trace =
      Read("[" + Kernel() +
           R"(,{"ph":"s","name":"a"},{"ph":"X","cat":"overhead","ts":1,"dur":1},)"
           R"({"ph":"X","cat":"kernel","ts":-1,"dur":1},{}])");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->events, 5u);
  EXPECT_EQ(trace->ignored["flow arrows"], 1u);
  EXPECT_EQ(trace->ignored["category overhead"], 1u);
  EXPECT_EQ(trace->ignored["without a time that can be"], 1u);
}

TEST(ChromeReader, TakesNothingBehindAnArray) {
  EXPECT_FALSE(Read("[" + Kernel() + "]garbage").ok());
}

// Most are parsed in memory; one that lies across two windows of the file, or has bytes
// that are no JSON, is not. Vector code would read blocks of 16 bytes.
TEST(ChromeReader, ReadsEventsAlikeWhereverAWindowEnds) {
  for (size_t shift = 0; shift < 64; ++shift) {
    std::string text = "[" + std::string(shift, ' ');
    std::vector<std::string> names;
    while (text.size() < (256 << 10) + 2000) {
      const size_t number = names.size();
      names.push_back("k" + std::to_string(number));
      std::string name = names.back();
      if (number % 3 == 0) {
        names.back() += "and some words";
        name +=
            std::string("and") + static_cast<char>(number / 3 % 0x20) + "some words";
      }
      if (number > 0) text += ",";
      text += R"({"ph":"X","args":{"n":")" + std::string(900 + number % 17, 'n') +
              R"("},"cat":"kernel","name":")" + name + R"(","tid":7,"ts":1.5,"dur":2})";
    }
    auto trace = Read(text + "]");
    ASSERT_TRUE(trace.ok()) << trace.status();
    ASSERT_EQ(trace->records.size(), names.size());
    for (size_t i = 0; i < names.size(); ++i) {
      ASSERT_EQ(trace->kernels[trace->records[i].extra].name(), names[i]);
    }
  }
}

// All would be at one address, and none would ever be freed.
TEST(ChromeReader, LeavesOutMemoryWithoutAnAddress) {
  auto event = [](const std::string& address) {
    return R"({"ph":"i","name":"[memory]","tid":7,"ts":1,"args":{"Device Type":1,)" +
           address + R"("Device Id":0,"Bytes":512}})";
  };
  auto trace = Read("[" + event("") + "," + event(R"("Addr":4096,)") + "]");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->ignored["memory events without an address"], 1u);
  ASSERT_EQ(trace->records.size(), 1u);
  EXPECT_EQ(trace->records[0].address, 4096u);
}

TEST(ChromeReader, SaysWhereATextEndsEarly) {
  const std::string whole = R"({"traceEvents":[)" + Kernel() + "]}";
  ASSERT_TRUE(Read(whole).ok());
  for (size_t length = 1; length < whole.size(); ++length) {
    EXPECT_FALSE(Read(whole.substr(0, length)).ok()) << length;
  }
}

TEST(ChromeReader, HasLimits) {
  EXPECT_EQ(Read("[" + Kernel() + "," + Kernel() + "]", {.records = 1}).status().code(),
            absl::StatusCode::kResourceExhausted);
  ReadLimits small;
  small.value_bytes = 100;
  EXPECT_THAT(std::string(Read("[" + Kernel() + "]", small).status().message()),
              HasSubstr("more than 100 bytes"));
  std::string deep = "[";
  for (int i = 0; i < 100'000; ++i) deep += R"({"args":)";
  EXPECT_FALSE(Read(deep).ok());
}

}  // namespace
}  // namespace lull::imports
