// fake_collector ADDRESS [TOKEN]: says "ready" and answers until it is ended. It
// takes lulld's place in tests, so that they also run where that is not built:
// fake_collector --private --listen ADDRESS ...
#include <cstdio>
#include <cstring>
#include <string>

#include "tests/cli/fake_collector.h"

int main(int argc, char** argv) {
  std::string address = argc > 1 ? argv[1] : "";
  std::string token = argc > 2 && address.rfind("--", 0) != 0 ? argv[2] : "";
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], "--listen") == 0) address = argv[i + 1];
  }
  lull::testing::FakeCollector collector(address, token);
  if (!collector.ok()) {
    std::fprintf(stderr, "fake_collector: cannot listen on '%s'\n", address.c_str());
    return 1;
  }
  std::puts("ready");
  std::fflush(stdout);
  collector.Wait();
}
