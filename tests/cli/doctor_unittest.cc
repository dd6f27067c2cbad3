// What `lull doctor` finds of CUPTI in folders made for the purpose.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cli/doctor/check.h"
#include "cli/doctor/cupti.h"

namespace lull {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class DoctorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "lull-doctor-" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

TEST_F(DoctorTest, FindsNoCuptiInAFolderThatHasNoneOrIsNotThere) {
  std::ofstream(folder_ + "/libcuda.so.1") << "x";
  std::ofstream(folder_ + "/libcupti.so") << "for the linker";
  EXPECT_THAT(FindCuptiIn({folder_, folder_ + "/none"}, true), IsEmpty());
}

TEST_F(DoctorTest, SaysWhyACopyOfCuptiCannotBeLoaded) {
  std::ofstream(folder_ + "/libcupti.so.12") << "no library";
  std::vector<CuptiCopy> copies = FindCuptiIn({folder_}, true);
  ASSERT_THAT(copies, SizeIs(1));
  EXPECT_EQ(copies[0].version, 0u);
  EXPECT_THAT(copies[0].error, Not(IsEmpty()));
}

TEST_F(DoctorTest, CallsNothingOfCuptiWithoutADriver) {
  std::ofstream(folder_ + "/libcupti.so.13") << "no library";
  std::vector<CuptiCopy> copies = FindCuptiIn({folder_}, false);
  ASSERT_THAT(copies, SizeIs(1));
  EXPECT_EQ(copies[0].version, 0u);
  EXPECT_THAT(copies[0].error, IsEmpty());
}

TEST_F(DoctorTest, ReadsTheVersionThatCuptiTells) {
  std::vector<CuptiCopy> copies = FindCuptiIn({LULL_SIM_LIBRARIES}, true);
  ASSERT_THAT(copies, Not(IsEmpty()));
  for (const CuptiCopy& copy : copies) {
    EXPECT_GE(copy.version, kOldestCupti) << copy.path << ": " << copy.error;
  }
}

TEST_F(DoctorTest, NamesAFileOnceHoweverManyNamesItHas) {
  std::ofstream(folder_ + "/libcupti.so.12.4.127") << "no library";
  std::filesystem::create_symlink(folder_ + "/libcupti.so.12.4.127",
                                  folder_ + "/libcupti.so.12");
  EXPECT_THAT(FindCuptiIn({folder_, folder_}, true), SizeIs(1));
}

TEST_F(DoctorTest, NeverCallsAMachineUnfitForWantOfAGpu) {
  std::vector<Check> checks = CheckGpu();
  bool schedule = false;
  for (const Check& check : checks) {
    EXPECT_NE(check.status, Check::Status::kError) << check.name;
    schedule = schedule || check.name == "GPU windows";
  }
  EXPECT_TRUE(schedule);
}

}  // namespace
}  // namespace lull
