// A runtime that is in no global symbol scope: it comes with a library that was
// opened RTLD_LOCAL, so RTLD_DEFAULT and RTLD_NEXT do not find it.
// Usage: local_runtime LIBRARY FUNCTION
#include <dlfcn.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  auto part = library != nullptr ? reinterpret_cast<void (*)()>(dlsym(library, argv[2]))
                                 : nullptr;
  if (part == nullptr || dlsym(RTLD_DEFAULT, "cudaMalloc") != nullptr) {
    std::fprintf(stderr, "%s\n", library == nullptr ? dlerror() : "not what was meant");
    return 1;
  }
  part();
  return 0;
}
