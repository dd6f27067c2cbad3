// In an executable with a libc of its own: in place of libc's dlopen(), which would
// load the image's libraries, made for another libc, for whoever asks: elfutils wants
// libdebuginfod, OpenSSL its engines. To all of them nothing is installed.
#include <dlfcn.h>

extern "C" void* dlopen(const char*, int) { return nullptr; }
