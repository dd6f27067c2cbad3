#include "daemon/base/runtime_directory.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace lull {
namespace {

class RuntimeDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/lull-base-test-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    root_ = path;
  }
  void TearDown() override { ASSERT_TRUE(RemoveTree(root_).ok()); }
  std::string root_;
};

TEST_F(RuntimeDirectoryTest, MakesEveryMissingLevelForThisUserAlone) {
  ASSERT_TRUE(MakePrivateDirectory(root_ + "/a/b/c").ok());
  for (const char* level : {"/a", "/a/b", "/a/b/c"}) {
    struct stat info;
    ASSERT_EQ(stat((root_ + level).c_str(), &info), 0) << level;
    EXPECT_EQ(info.st_mode & 0777, 0700u) << level;
  }
  EXPECT_TRUE(MakePrivateDirectory(root_ + "/a/b/c").ok()) << "a second time";
}

TEST_F(RuntimeDirectoryTest, RefusesADirectoryThatOthersCanWriteTo) {
  ASSERT_EQ(mkdir((root_ + "/open").c_str(), 0700), 0);
  ASSERT_EQ(chmod((root_ + "/open").c_str(), 0777), 0);
  EXPECT_EQ(MakePrivateDirectory(root_ + "/open").code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(RuntimeDirectoryTest, RefusesALinkThatSomebodyPutInItsPlace) {
  ASSERT_EQ(symlink("/", (root_ + "/link").c_str()), 0);
  EXPECT_EQ(MakePrivateDirectory(root_ + "/link").code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(RuntimeDirectoryTest, RemovingWhatIsNotThereIsFine) {
  EXPECT_TRUE(RemoveTree(root_ + "/nothing").ok());
}

TEST(RuntimeDirectory, FollowsTheEnvironment) {
  setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
  unsetenv("LULL_RUNTIME_DIR");
  EXPECT_EQ(RuntimeDirectory(), "/run/user/7/lull");
  setenv("LULL_RUNTIME_DIR", "/srv/lull", 1);
  EXPECT_EQ(RuntimeDirectory(), "/srv/lull");
  unsetenv("LULL_RUNTIME_DIR");
  unsetenv("XDG_RUNTIME_DIR");
  EXPECT_EQ(RuntimeDirectory(), "/tmp/lull-" + std::to_string(getuid()));
}

}  // namespace
}  // namespace lull
