// The test program is also the symbol reader that it starts; as such it does what a
// file tells it that begins with "lull-test: ", in place of what a defect would do.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <string_view>

#include "daemon/relay/symbols/symbol_reader_main.h"

namespace {

void Misbehave(std::string_view how) {
  if (how == "abort") abort();
  if (how == "spin") {
    while (true) asm volatile("");
  }
  if (how == "hang") pause();
  if (how == "dawdle") sleep(1);
  if (how == "eat") {  // until there is no more, which ends it
    for (size_t eaten = 0; eaten < (size_t{4} << 30); eaten += 64 << 20) {
      void* block = malloc(64 << 20);
      if (block == nullptr) abort();
      asm volatile("" ::"r"(block) : "memory");
    }
  }
  if (how == "fork" && fork() < 0) abort();
  if (how == "lie") {
    char nonsense[] = "nonsense that is longer than the head of an answer";
    if (write(lull::relay::kSymbolReaderFd, nonsense, sizeof(nonsense)) < 0) abort();
    sleep(60);
  }
}

std::shared_ptr<lull::relay::ElfModule> Open(lull::UniqueFd file) {
  constexpr std::string_view kOrder = "lull-test: ";
  char text[64] = {};
  ssize_t size = pread(file.get(), text, sizeof(text) - 1, 0);
  std::string_view order(text, size > 0 ? static_cast<size_t>(size) : 0);
  if (order.substr(0, kOrder.size()) == kOrder) {
    Misbehave(order.substr(kOrder.size()));
    return nullptr;
  }
  return lull::relay::ElfModule::Open(std::move(file));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == lull::relay::kSymbolReaderVerb) {
    return lull::relay::SymbolReaderMain(argc, argv, &Open);
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
