// What lulld makes of a command line.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "daemon/collector/serve/options.h"

namespace lull::test {

inline collector::Options Parsed(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "lulld");
  collector::Options options;
  int exit_status = 0;
  EXPECT_TRUE(collector::ParseOptions(static_cast<int>(arguments.size()),
                                      const_cast<char**>(arguments.data()), "", options,
                                      exit_status));
  return options;
}

}  // namespace lull::test
