// Loads a library late, calls a function of it that lull intercepts, unloads it,
// and again; then asks for a symbol that is gone.
#include <dlfcn.h>
#include <stdio.h>

enum { kRounds = 100 };

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  int good = 0;
  for (int round = 0; round < kRounds; ++round) {
    void* library = dlopen(argv[1], RTLD_NOW | (round % 2 ? RTLD_GLOBAL : RTLD_LOCAL));
    if (library == NULL) break;
    int (*free_memory)(void*) = (int (*)(void*))dlsym(library, "cudaFree");
    good += free_memory != NULL && free_memory(NULL) == 0;
    good += dlclose(library) == 0;
  }
  void* missing = dlsym(RTLD_DEFAULT, "no_such_function_anywhere");
  const char* message = dlerror();
  printf("%d of %d, missing %d, message %d\n", good, 2 * kRounds, missing == NULL,
         message != NULL);
  return good == 2 * kRounds ? 0 : 1;
}
