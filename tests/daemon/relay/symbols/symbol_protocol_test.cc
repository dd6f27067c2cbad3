#include "daemon/relay/symbols/symbol_protocol.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace lull::relay {
namespace {

SymbolAnswer SomeAnswer() {
  SymbolAnswer answer;
  answer.number = 7;
  answer.module = 3;
  answer.is_elf = true;
  answer.address = 0x1234;
  answer.frames = {
      {"inlined", "a.h", 12}, {"", "", 0}, {"outer(int)", "a.cc", 2147483647}};
  return answer;
}

TEST(SymbolProtocol, CarriesAnAnswer) {
  SymbolAnswer got;
  ASSERT_TRUE(DecodeSymbolAnswer(EncodeSymbolAnswer(SomeAnswer()), &got));
  EXPECT_EQ(got.number, 7u);
  EXPECT_EQ(got.module, 3u);
  EXPECT_TRUE(got.is_elf);
  EXPECT_EQ(got.address, 0x1234u);
  ASSERT_EQ(got.frames.size(), 3u);
  EXPECT_EQ(got.frames[0].function, "inlined");
  EXPECT_EQ(got.frames[2].file, "a.cc");
  EXPECT_EQ(got.frames[2].line, 2147483647);
}

TEST(SymbolProtocol, TakesNothingThatIsCutOffOrTooLong) {
  std::string bytes = EncodeSymbolAnswer(SomeAnswer());
  SymbolAnswer got;
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeSymbolAnswer(bytes.substr(0, size), &got)) << size;
  }
  EXPECT_FALSE(DecodeSymbolAnswer(bytes + "x", &got));
  EXPECT_FALSE(DecodeSymbolAnswer(std::string(kMaxSymbolAnswer + 1, '\0'), &got));
}

TEST(SymbolProtocol, CutsWhatATargetMadeTooLong) {
  SymbolAnswer answer;
  for (int i = 0; i < 1000; ++i) {
    answer.frames.push_back({std::string(100'000, 'f'), std::string(100'000, 'p'), -1});
  }
  std::string bytes = EncodeSymbolAnswer(answer);
  EXPECT_LE(bytes.size(), kMaxSymbolAnswer);
  SymbolAnswer got;
  ASSERT_TRUE(DecodeSymbolAnswer(bytes, &got));
  ASSERT_GE(got.frames.size(), 8u);
  EXPECT_EQ(got.frames[0].function.size(), kMaxSymbolText);
  EXPECT_EQ(got.frames[0].line, 0);
  answer.frames.assign(1000, {"f", "p", 1});
  ASSERT_TRUE(DecodeSymbolAnswer(EncodeSymbolAnswer(answer), &got));
  EXPECT_EQ(got.frames.size(), kMaxSymbolFrames);
}

TEST(SymbolProtocol, CarriesARequestWithItsFile) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  UniqueFd relay(ends[0]);
  UniqueFd reader(ends[1]);
  SymbolRequest request;
  request.kind = SymbolRequest::Kind::kPrepare;
  request.module = 5;
  request.offset = 99;
  ASSERT_EQ(SendSymbolRequest(relay.get(), request, STDERR_FILENO), SymbolIo::kDone);
  ASSERT_EQ(SendSymbolRequest(relay.get(), SymbolRequest(), -1, "/job/a.py"),
            SymbolIo::kDone);
  SymbolRequest got;
  UniqueFd file;
  std::string path;
  ASSERT_EQ(ReceiveSymbolRequest(reader.get(), &got, &file, &path), SymbolIo::kDone);
  EXPECT_EQ(path, "");
  EXPECT_EQ(got.kind, SymbolRequest::Kind::kPrepare);
  EXPECT_EQ(got.module, 5u);
  EXPECT_EQ(got.offset, 99u);
  struct stat sent = {};
  struct stat received = {};
  ASSERT_EQ(fstat(STDERR_FILENO, &sent), 0);
  ASSERT_EQ(fstat(file.get(), &received), 0);
  EXPECT_EQ(sent.st_ino, received.st_ino);
  ASSERT_EQ(ReceiveSymbolRequest(reader.get(), &got, &file, &path), SymbolIo::kDone);
  EXPECT_FALSE(file);
  EXPECT_EQ(path, "/job/a.py");
  relay.reset();
  EXPECT_EQ(ReceiveSymbolRequest(reader.get(), &got, &file, &path), SymbolIo::kClosed);
  EXPECT_EQ(SendSymbolRequest(reader.get(), request, -1), SymbolIo::kClosed);
}

}  // namespace
}  // namespace lull::relay
