// The next definition of a function after ours (any but ours, if we were loaded late):
// what dlsym(RTLD_NEXT) answers, but without libdl (which a process on glibc < 2.34 may
// not have), without malloc, and past everyone who intercepts dlsym. Takes the default
// version of a symbol, the one that a program linked today would get.
//
// One pass over the loaded objects serves a whole table: 26 names in a process of
// five objects take about 10 us. Cold: when the library is loaded, or at the first
// call of a hook that comes even before.
#pragma once

#include <cstddef>

namespace lull {

struct NextSymbol {
  const char* name;
  void* address;  // nullptr until found; entries already found are left alone
};

void find_next_symbols(NextSymbol* symbols, size_t count);

}  // namespace lull
