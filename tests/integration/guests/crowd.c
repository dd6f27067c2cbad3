// Threads that make a known number of CUDA calls each, in the ways in which threads
// come and go. Prints "CALLS THREADS": what was called, by how many threads.
//
//   crowd together THREADS CALLS   all begin at one moment, and stay until all are done
//   crowd sequence THREADS CALLS   one after the other
//   crowd paced THREADS CALLS      all at once, a millisecond between two calls
//   crowd closing THREADS CALLS    the same; halfway the program closes all descriptors
//                                  above the standard streams, like a daemon
//   crowd keys THREADS             each makes its last call in a thread-specific
//                                  destructor, at its very end
//   crowd constructor LIBRARY N    after N calls loads a library whose constructor
//                                  makes a call on a thread of its own, and waits for
//                                  it
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int cudaFree(void* pointer);  // from guest_cudart.cc

static long calls_of_each;
static pthread_barrier_t begin, end;
static pthread_key_t key;

static void call(long count) {
  for (long i = 0; i < count; ++i) cudaFree(NULL);
}

static void* together(void* unused) {
  (void)unused;
  pthread_barrier_wait(&begin);
  call(calls_of_each);
  pthread_barrier_wait(&end);
  return NULL;
}

static int closes;

static void* paced(void* number) {
  struct timespec pause = {0, 1000000};
  for (long i = 0; i < calls_of_each; ++i) {
    call(1);
    nanosleep(&pause, NULL);
    if (closes && number == NULL && i == calls_of_each / 2) {
      syscall(SYS_close_range, 3u, ~0u, 0u);
    }
  }
  return NULL;
}

static void* alone(void* unused) {
  (void)unused;
  call(calls_of_each);
  return NULL;
}

static void last_call(void* unused) {
  (void)unused;
  call(1);
}

static void* with_key(void* unused) {
  (void)unused;
  call(1);
  pthread_setspecific(key, &key);
  return NULL;
}

static int run(long threads, void* (*work)(void*), int at_once) {
  pthread_t* all = calloc((size_t)threads, sizeof *all);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 128 << 10);
  for (long i = 0; i < threads; ++i) {
    if (pthread_create(&all[i], &small, work, (void*)i) != 0) return 1;
    if (!at_once) pthread_join(all[i], NULL);
  }
  for (long i = 0; i < threads && at_once; ++i) pthread_join(all[i], NULL);
  free(all);
  return 0;
}

// The library's constructor calls back, holding the loader's lock.
static pthread_t caller;
void constructor_waits_for_a_call(void);
static void* make_a_call(void* unused) {
  call(1);
  return unused;
}
void constructor_waits_for_a_call(void) {
  if (pthread_create(&caller, NULL, make_a_call, NULL) == 0) pthread_join(caller, NULL);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const char* manner = argv[1];
  long threads = atol(argv[2]);
  calls_of_each = argc > 3 ? atol(argv[3]) : 1;
  long calls = threads * calls_of_each;
  if (strcmp(manner, "together") == 0) {
    pthread_barrier_init(&begin, NULL, (unsigned)threads);
    pthread_barrier_init(&end, NULL, (unsigned)threads);
    if (run(threads, together, 1) != 0) return 1;
  } else if (strcmp(manner, "sequence") == 0) {
    if (run(threads, alone, 0) != 0) return 1;
  } else if (strcmp(manner, "paced") == 0 || strcmp(manner, "closing") == 0) {
    closes = manner[0] == 'c';
    if (run(threads, paced, 1) != 0) return 1;
  } else if (strcmp(manner, "keys") == 0) {
    pthread_key_create(&key, last_call);
    if (run(threads, with_key, 0) != 0) return 1;
    calls = 2 * threads;
  } else if (strcmp(manner, "constructor") == 0) {
    call(calls_of_each);
    if (dlopen(argv[2], RTLD_NOW) == NULL) return 1;
    calls = calls_of_each + 1;
    threads = calls_of_each > 0 ? 2 : 1;
  } else {
    return 2;
  }
  printf("%ld %ld\n", calls, threads);
  return 0;
}
