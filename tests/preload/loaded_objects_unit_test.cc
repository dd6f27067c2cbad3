#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <iterator>

#include "preload/support/loaded_object.h"
#include "preload/support/symbols.h"

namespace lull {
namespace {

TEST(NextSymbol, FindsWhatTheLoaderFinds) {
  NextSymbol symbols[] = {{"epoll_pwait", nullptr},
                          {"no_such_function_anywhere", nullptr},
                          {"pthread_cond_wait", nullptr},
                          {"__recvfrom_chk", nullptr}};
  find_next_symbols(symbols, 4);
  EXPECT_EQ(symbols[1].address, nullptr);
  for (int i : {0, 2, 3}) {
    EXPECT_EQ(symbols[i].address, dlsym(RTLD_NEXT, symbols[i].name)) << symbols[i].name;
  }
}

TEST(NextSymbol, TakesTheDefaultVersion) {
  // Functions that changed their meaning once, so that libc has each twice.
  NextSymbol symbols[] = {{"pthread_cond_wait", nullptr},
                          {"pthread_cond_signal", nullptr},
                          {"pthread_cond_destroy", nullptr},
                          {"regexec", nullptr},
                          {"posix_spawn", nullptr},
                          {"posix_spawnp", nullptr},
                          {"sched_setaffinity", nullptr},
                          {"nftw", nullptr},
                          {"fmemopen", nullptr},
                          {"realpath", nullptr}};
  find_next_symbols(symbols, std::size(symbols));
  for (const NextSymbol& symbol : symbols) {
    EXPECT_EQ(symbol.address, dlsym(RTLD_NEXT, symbol.name)) << symbol.name;
  }
}

TEST(NextSymbol, LeavesAloneWhatIsFound) {
  int anything = 0;
  NextSymbol symbol = {"read", &anything};
  find_next_symbols(&symbol, 1);
  EXPECT_EQ(symbol.address, &anything);
}

TEST(LoadedObject, KnowsTheLibraryOfAnAddress) {
  void* libc = dlopen("libc.so.6", RTLD_NOLOAD | RTLD_LAZY);
  void* address = dlsym(libc, "getsid");
  LoadedObject object = {};
  ASSERT_TRUE(find_object(address, &object));
  EXPECT_NE(std::strstr(object.path, "libc.so.6"), nullptr);
  EXPECT_GE(reinterpret_cast<uintptr_t>(address), object.text_begin);
  EXPECT_LT(reinterpret_cast<uintptr_t>(address), object.text_end);
  int local = 0;
  EXPECT_FALSE(find_object(&local, &object));
  dlclose(libc);
}

}  // namespace
}  // namespace lull
