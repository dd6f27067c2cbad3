// A library that no loader can take in: it needs a function that nobody has.
#include <stddef.h>
#include <stdint.h>

void nobody_has_this_function(void);

void probe(const void* argument, size_t size, int64_t* result) {
  (void)argument;
  (void)size;
  nobody_has_this_function();
  *result = 0;
}
