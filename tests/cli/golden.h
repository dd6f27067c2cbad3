// Compares text with tests/golden/NAME.txt. With LULL_UPDATE_GOLDEN=1 in the
// environment the files are written instead, and the test fails to say so.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace lull::testing {

inline void ExpectGolden(const std::string& name, const std::string& text) {
  std::string path = std::string(LULL_GOLDEN_FOLDER) + "/" + name + ".txt";
  if (std::getenv("LULL_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << text;
    ADD_FAILURE() << "wrote " << path << "; look at it, then run again without "
                  << "LULL_UPDATE_GOLDEN";
    return;
  }
  std::ifstream file(path);
  ASSERT_TRUE(file.good()) << "no golden file " << path;
  std::string expected(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(text, expected) << "differs from " << path;
}

}  // namespace lull::testing
