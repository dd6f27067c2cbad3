// The library that is taken into victims: counts its calls, and uses everything that
// a function may use, so that what is not restored shows in the victim.
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int64_t calls;

#ifdef PROBE_2  // so that no function is where it was
void probe_new(const void* argument, size_t size, int64_t* result) {
  (void)argument;
  for (size_t i = 0; i < size; ++i) *result ^= (int64_t)i;
}
#endif

static void __attribute__((noinline)) SpoilVectorRegisters(void) {
#ifdef __x86_64__
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) {
    __asm__ volatile(
        "vpternlogd $0xff, %%zmm0, %%zmm0, %%zmm0\n vmovdqa64 %%zmm0, %%zmm1\n"
        "vmovdqa64 %%zmm0, %%zmm7\n vmovdqa64 %%zmm0, %%zmm15\n"
        "vmovdqa64 %%zmm0, %%zmm31\n kxnorw %%k1, %%k1, %%k1" ::
            : "xmm0", "xmm1", "xmm7", "xmm15");
  } else {
    __asm__ volatile("pcmpeqd %%xmm0, %%xmm0\n movdqa %%xmm0, %%xmm15" ::
                         : "xmm0", "xmm15");
  }
  __asm__ volatile("fninit\n fldpi\n fldl2e\n fstp %%st(0)\n fstp %%st(0)" ::
                       : "memory");
#elif defined(__aarch64__)
  __asm__ volatile(
      "movi v0.16b, #0xff\n movi v7.16b, #0xff\n movi v15.16b, #0xff\n"
      "movi v31.16b, #0xff" ::
          : "v0", "v7", "v15", "v31");
#endif
}

// The arguments' sum, the number of the call in the upper half.
void probe(const void* argument, size_t size, int64_t* result) {
  char on_stack[100 << 10] __attribute__((aligned(64)));
  memset(on_stack, 0x5a, sizeof(on_stack));
  __asm__ volatile("" ::"r"(on_stack) : "memory");
  char* on_heap = malloc(10000);
  memset(on_heap, 1, 10000);
  free(on_heap);
  SpoilVectorRegisters();
  fesetround(FE_UPWARD);
  fesetround(FE_TONEAREST);
  close(open("/nowhere/at/all", O_RDONLY));
  errno = E2BIG;
  int64_t sum = 0;
  for (size_t i = 0; i < size; ++i) sum += ((const unsigned char*)argument)[i];
  *result = ++calls << 32 | sum;
}

// While a signal to the thread waits for the end of the call.
void probe_signalled(const void* argument, size_t size, int64_t* result) {
  (void)argument;
  (void)size;
  *result = raise(SIGUSR1);
}

void probe_silent(const void* argument, size_t size, int64_t* result) {
  (void)argument;
  (void)size;
  (void)result;
}

void probe_crash(const void* argument, size_t size, int64_t* result) {
  (void)argument;
  (void)size;
  int64_t* volatile nowhere = (int64_t*)8;
  *nowhere = *result;
}

// As many system calls as the argument has bytes, to see what each costs.
void probe_calls(const void* argument, size_t size, int64_t* result) {
  (void)argument;
  for (size_t i = 0; i < size; ++i) madvise(0, 0, MADV_NORMAL);
  *result = ++calls;
}
