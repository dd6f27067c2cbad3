#include "daemon/base/tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <vector>

#include "tests/daemon/storage/temporary_directory.h"

namespace lull {
namespace {

using ::testing::HasSubstr;

class TokensTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& text, mode_t mode = 0600) {
    std::string path = directory_ / "tokens";
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
    return path;
  }

  test::TemporaryDirectory directory_;
};

TEST_F(TokensTest, HasALineForEachRight) {
  auto tokens = ReadTokenFile(Write("# mine\nread r  # for the team\n\n  write\tw\n"));
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(tokens->For(Right::kWrite), "w");
  EXPECT_EQ(tokens->For(Right::kRead), "r");
  EXPECT_EQ(tokens->For(Right::kControl), "");
}

TEST_F(TokensTest, TakesOneWordForEveryRight) {
  auto tokens = ReadTokenFile(Write("  secret\n"));
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  for (Right right : {Right::kWrite, Right::kRead, Right::kControl}) {
    EXPECT_EQ(tokens->For(right), "secret");
  }
}

TEST_F(TokensTest, RefusesWhatIsNoTokenFile) {
  for (const std::string& text :
       {std::string(), std::string("\n# read x\n"), std::string("read a b\n"),
        std::string("reed a\n"), std::string("read a\nread b\n"),
        std::string("read a\nsecret\n"), std::string("one\ntwo\n"),
        std::string("read \xff\n"), std::string(1 << 20, 'a')}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(ReadTokenFile(Write(text)).status()))
        << text.substr(0, 40);
  }
}

TEST_F(TokensTest, RefusesAFileThatOthersCanReadOrThatIsNone) {
  for (mode_t mode : {0640u, 0604u, 0644u, 0620u}) {
    EXPECT_THAT(ReadTokenFile(Write("read secret\n", mode)).status().message(),
                HasSubstr("chmod 600"));
  }
  EXPECT_TRUE(absl::IsPermissionDenied(ReadTokenFile(directory_.path()).status()));
  EXPECT_TRUE(absl::IsNotFound(ReadTokenFile(directory_ / "none").status()));
}

TEST_F(TokensTest, RefusesAFileOfAnotherUser) {
  if (getuid() != 0) GTEST_SKIP() << "needs root, to give a file away";
  std::string path = Write("read secret\n");
  ASSERT_EQ(chown(path.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(ReadTokenFile(path).status()));
}

TEST_F(TokensTest, AreMadeOnceAndKept) {
  std::string path = directory_ / "new/lull.db.tokens";
  auto made = ReadOrMakeTokenFile(path);
  ASSERT_TRUE(made.ok()) << made.status();
  std::set<std::string> different = {made->write, made->read, made->control};
  EXPECT_EQ(different.size(), 3u);
  for (const std::string& token : different) EXPECT_EQ(token.size(), 64u);
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  auto again = ReadOrMakeTokenFile(path);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->control, made->control);
}

TEST_F(TokensTest, AreTheSameForAllWhoMakeThemAtOnce) {
  std::string path = directory_ / "tokens";
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    pid_t child = fork();
    if (child == 0) _exit(ReadOrMakeTokenFile(path).ok() ? 0 : 1);
    children.push_back(child);
  }
  std::string read = ReadOrMakeTokenFile(path)->read;
  for (pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(ReadTokenFile(path)->read, read);
}

TEST_F(TokensTest, DoesNotReplaceWhatIsBroken) {
  std::string path = Write("read secret\n", 0644);
  EXPECT_FALSE(ReadOrMakeTokenFile(path).ok());
  std::ifstream file(path);
  std::string word;
  EXPECT_TRUE(file >> word && word == "read");
}

TEST(SameSecret, ComparesAllOfIt) {
  EXPECT_TRUE(SameSecret("abc", "abc"));
  EXPECT_FALSE(SameSecret("abc", "abd"));
  EXPECT_FALSE(SameSecret("abc", "ab"));
  EXPECT_FALSE(SameSecret("", "a"));
}

}  // namespace
}  // namespace lull
