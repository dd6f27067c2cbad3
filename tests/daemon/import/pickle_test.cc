#include "daemon/import/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/daemon/import/pickle_writer.h"

namespace lull::imports {
namespace {

using absl::StatusCode;
using pickled::Whole;
using testing::HasSubstr;
using Type = Pickle::Type;

class PickleTest : public testing::Test {
 protected:
  absl::StatusOr<Pickle> Read(const std::string& bytes, Pickle::Limits limits = {}) {
    texts_ = StringTable();
    return Pickle::Read(*Input::OfBytes(bytes), limits, &texts_);
  }
  void ExpectRefused(const std::string& bytes, StatusCode code, const char* says) {
    auto read = Read(bytes);
    EXPECT_EQ(read.status().code(), code) << read.status();
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(says));
  }
  int64_t NumberOf(const std::string& opcodes) {
    auto read = Read(Whole(opcodes));
    if (!read.ok() || read->root().type() != Type::kNumber) {
      ADD_FAILURE() << read.status();
      return 0;
    }
    return read->root().payload();
  }

  StringTable texts_;
};

TEST_F(PickleTest, ReadsNumbersOfAllForms) {
  EXPECT_EQ(NumberOf(std::string("K\xff", 2)), 255);
  EXPECT_EQ(NumberOf(std::string("M\x01\x02", 3)), 513);
  EXPECT_EQ(NumberOf("J\xfe\xff\xff\xff"), -2);
  EXPECT_EQ(NumberOf("\x8a\x01\x80"), -128);
  EXPECT_EQ(NumberOf(std::string("\x8a\x00", 2)), 0);
  EXPECT_EQ(NumberOf(std::string("\x8a\x06\x00\x00\x00\x00\x62\x7f", 8)),
            0x7f6200000000);
  EXPECT_EQ(NumberOf("\x88"), 1);
  EXPECT_EQ(NumberOf("\x89"), 0);
}

TEST_F(PickleTest, WhatIsOfNoUseIsAValueAllTheSame) {
  for (const std::string& opcodes :
       {std::string("N"), std::string("G\x3f\xf0\x00\x00\x00\x00\x00\x00", 9),
        std::string("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00", 11),
        std::string("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f", 10)}) {
    auto read = Read(Whole(opcodes));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->root().type(), Type::kOther);
  }
}

TEST_F(PickleTest, ReadsListsTuplesAndDicts) {
  auto read =
      Read(Whole("](K\x01\x8c\x01"
                 "ae(K\x02K\x03t"
                 "0"));
  EXPECT_FALSE(read.ok());  // POP is not one that a snapshot has
  read =
      Read(Whole("](K\x01K\x02K\x03\x86\x8c\x01"
                 "ae"));
  ASSERT_TRUE(read.ok()) << read.status();
  const auto& list = read->items(read->root());
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(read->items(list[1])[1].payload(), 3);
  EXPECT_EQ(texts_[list[2].index()], "a");
  read =
      Read(Whole("}\x8c\x01"
                 "aK\x05s"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->items(read->root())[1].payload(), 5);
}

TEST_F(PickleTest, TheMemoGivesTheSameListAgainAlsoWithinItself) {
  // a = []; a.append(a)
  auto read =
      Read(Whole(std::string("]\x94h\x00"
                             "a",
                             5)));
  ASSERT_TRUE(read.ok()) << read.status();
  const auto root = read->root();
  ASSERT_EQ(read->items(root).size(), 1u);
  EXPECT_EQ(read->items(root)[0].index(), root.index());
}

TEST_F(PickleTest, TextIsMadeValid) {
  auto read =
      Read(Whole("\x8c\x03"
                 "a\xff"
                 "b"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(texts_[read->root().index()],
            "a\xef\xbf\xbd"
            "b");
}

TEST_F(PickleTest, RefusesWhatWouldCallOrLoadAnything) {
  // What Python writes for an object whose __reduce__ returns (os.system, ("...",)).
  ExpectRefused(
      "\x80\x04\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x04true\x94\x85"
      "\x94R\x94.",
      StatusCode::kInvalidArgument, "STACK_GLOBAL");
  ExpectRefused(
      "\x80\x02"
      "cos\nsystem\n(X\x04\x00\x00\x00trueo.",
      StatusCode::kInvalidArgument, "GLOBAL");
  for (const auto& [opcode, name] : {std::pair<const char*, const char*>{"c", "GLOBAL"},
                                     {"R", "REDUCE"},
                                     {"i", "INST"},
                                     {"o", "OBJ"},
                                     {"\x81", "NEWOBJ"},
                                     {"\x92", "NEWOBJ_EX"},
                                     {"b", "BUILD"},
                                     {"P", "PERSID"},
                                     {"Q", "BINPERSID"},
                                     {"\x82", "EXT1"},
                                     {"\x83", "EXT2"},
                                     {"\x84", "EXT4"},
                                     {"\x97", "NEXT_BUFFER"}}) {
    ExpectRefused(Whole(std::string("NN") + opcode), StatusCode::kInvalidArgument,
                  name);
  }
}

TEST_F(PickleTest, EveryOtherOpcodeIsKnownOrRefused) {
  for (int opcode = 0; opcode < 256; ++opcode) {
    auto read = Read(Whole(std::string(1, static_cast<char>(opcode))));
    EXPECT_EQ(read.ok(), std::string("N])}\x88\x89").find(static_cast<char>(opcode)) !=
                             std::string::npos)
        << opcode;
  }
}

TEST_F(PickleTest, OneThatIsCutShortAnywhereSaysSo) {
  const std::string whole = Whole(pickled::Snapshot(
      {pickled::Segment(4096, {pickled::Block(4096, 512, "active_allocated", 400)})},
      {pickled::Entry("alloc", 4096, 400, 1'000'000)}));
  ASSERT_TRUE(Read(whole).ok());
  for (size_t size = 2; size < whole.size(); ++size) {
    auto read = Read(whole.substr(0, size));
    EXPECT_EQ(read.status().code(), StatusCode::kDataLoss) << size << read.status();
    EXPECT_THAT(std::string(read.status().message()), HasSubstr("cut short"));
  }
  ExpectRefused(whole + "N", StatusCode::kDataLoss, "follows its end");
}

TEST_F(PickleTest, RefusesWhatMakesNoSense) {
  ExpectRefused("{}", StatusCode::kInvalidArgument, "no pickle");
  ExpectRefused("\x80\x06N.", StatusCode::kInvalidArgument, "protocol 6");
  ExpectRefused(Whole("NN"), StatusCode::kDataLoss, "more or less than one value");
  ExpectRefused(Whole(""), StatusCode::kDataLoss, "more or less than one value");
  ExpectRefused(Whole("N("), StatusCode::kDataLoss, "more or less than one value");
  ExpectRefused(Whole("Na"), StatusCode::kDataLoss, "a value is missing");
  ExpectRefused(Whole("](Na"), StatusCode::kDataLoss, "a value is missing");
  ExpectRefused(Whole("NNa"), StatusCode::kDataLoss, "no list or dict");
  ExpectRefused(Whole("}Na"), StatusCode::kDataLoss, "no list or dict");
  ExpectRefused(Whole("]e"), StatusCode::kDataLoss, "a mark is missing");
  ExpectRefused(Whole("}(Nu"), StatusCode::kDataLoss, "a key without a value");
  ExpectRefused(Whole("h\x01"), StatusCode::kDataLoss, "was not kept");
  ExpectRefused(Whole("\x94"), StatusCode::kDataLoss, "a value is missing");
}

TEST_F(PickleTest, NeitherLengthsNorPlacesInTheMemoMakeItTakeMemory) {
  const std::string all(8, '\xff');
  ExpectRefused(Whole("X" + all.substr(4) + "a"), StatusCode::kResourceExhausted,
                "a text of 4294967295 bytes");
  ExpectRefused(Whole("\x8d" + all + "a"), StatusCode::kResourceExhausted, "a text of");
  ExpectRefused(Whole("Nr" + all.substr(4)), StatusCode::kDataLoss, "out of order");
  ExpectRefused(Whole("\x8b" + all.substr(4)), StatusCode::kInvalidArgument, "0x8b");
}

TEST_F(PickleTest, DepthCostsMemoryAloneAndThatIsBounded) {
  std::string deep(300'000, ']');
  auto read = Read(Whole(deep + std::string(299'999, 'a')));
  EXPECT_TRUE(read.ok()) << read.status();
  Pickle::Limits limits;
  limits.bytes = 1 << 20;
  EXPECT_EQ(Read(Whole(deep), limits).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Read(Whole(std::string(300'000, '(')), limits).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(Read(Whole("N" + std::string(300'000, '\x94')), limits).status().code(),
            StatusCode::kResourceExhausted);
}

// A list that grows has room for twice as much as it holds.
TEST_F(PickleTest, WhatListsHaveRoomForCounts) {
  Pickle::Limits limits;
  limits.bytes = 1 << 20;
  std::string list = "]";
  for (int i = 0; i < 70; ++i) list += "(" + std::string(1000, 'N') + "e";
  auto read = Read(Whole(list), limits);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_GE(read->bytes(),
            read->items(read->root()).capacity() * sizeof(Pickle::Value));
}

}  // namespace
}  // namespace lull::imports
