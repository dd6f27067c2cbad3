// Looking symbols up in the loaded objects by ourselves: without libdl (which a process
// on glibc < 2.34 may not have), without malloc, past everyone who intercepts dlsym,
// and without the loader's lock.
//
// dlsym, dlopen and dladdr wait for that lock, and who has it runs constructors
// meanwhile: a thread that asks them stands still behind a slow import, and for ever
// behind a constructor that waits for this very thread. dl_iterate_phdr, which is all
// that is used here, takes a lock that nobody holds for longer than it takes to add an
// object to a list.
//
// One pass over the loaded objects serves a whole table: 26 names in a process of five
// objects take about 10 us. Cold.
#pragma once

#include <cstddef>

namespace lull {

struct NextSymbol {
  const char* name;
  void* address;  // nullptr until found; entries already found are left alone
};

// The next definitions after ours (any but ours, if we were loaded late): what
// dlsym(RTLD_NEXT) answers. Functions, in the version that a program linked today gets.
void find_next_symbols(NextSymbol* symbols, size_t count);

// Functions and objects as dlsym(RTLD_DEFAULT) finds them, of a library that defines
// `landmark`: in the objects up to the first that does. False if none does.
bool find_symbols_with(const char* landmark, NextSymbol* symbols, size_t count);

// What comes after us for one function; `version` nullptr: the default one.
struct NextFunction {
  void* address;  // nullptr: none
  bool sure;      // false: only the loader knows in which order several are searched
};
NextFunction find_next_function(const char* name, const char* version);

// Its address. Asks the loader if that alone is sure.
void* next_function(const char* name, const char* version);

// `name`, a function or a variable, in the object that holds `address`; or nullptr.
void* symbol_beside(const void* address, const char* name);

// Once, when the library is loaded: whatever is there by now was loaded with the
// program, and is searched before all else.
void note_objects_of_the_program();

}  // namespace lull
