/* Included ahead of each source of libunwind (build): what glibc moved or renamed since
 * 2.28 is asked for by its oldest name, so that the library loads wherever liblull.so
 * does. */
#pragma once
#ifdef __ASSEMBLER__
/* calls nothing of libc */
#else
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define LULL_OLDEST "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define LULL_OLDEST "GLIBC_2.17"
#endif

/* 2.34 moved them from libpthread into libc, under new versions. */
__asm__(".symver pthread_once,pthread_once@" LULL_OLDEST);
__asm__(".symver pthread_key_create,pthread_key_create@" LULL_OLDEST);
__asm__(".symver pthread_setspecific,pthread_setspecific@" LULL_OLDEST);

/* 2.33 made them functions. The kernel's struct stat is glibc's on both machines. */
int stat(const char* path, struct stat* of) __asm__("lull_stat");
int fstat(int fd, struct stat* of) __asm__("lull_fstat");
__attribute__((weak, visibility("hidden"))) int stat(const char* path,
                                                     struct stat* of) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, of, 0);
}
__attribute__((weak, visibility("hidden"))) int fstat(int fd, struct stat* of) {
  return (int)syscall(SYS_fstat, fd, of);
}
#endif
