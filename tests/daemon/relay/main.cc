// The test program is also the relay worker that its keepers start.
#include <gtest/gtest.h>

#include <string_view>

#include "daemon/relay/process/keeper.h"
#include "daemon/relay/process/worker_main.h"
#include "daemon/relay/symbols/symbol_reader_main.h"

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == lull::relay::kWorkerVerb) {
    return lull::relay::RelayWorkerMain();
  }
  if (argc > 1 && std::string_view(argv[1]) == lull::relay::kSymbolReaderVerb) {
    return lull::relay::SymbolReaderMain(argc, argv);
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
