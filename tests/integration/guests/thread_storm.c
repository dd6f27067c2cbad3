// More threads at once than lull has rings for, each waiting a little, in waves.
#include <poll.h>
#include <pthread.h>
#include <stdio.h>

int cudaFree(void* pointer);  // from guest_cudart.cc: from here on lull records

enum { kThreads = 200, kWaves = 5 };
static int finished;

static void* wait_a_little(void* unused) {
  (void)unused;
  cudaFree(NULL);
  poll(NULL, 0, 2);
  __atomic_fetch_add(&finished, 1, __ATOMIC_RELAXED);
  return NULL;
}

int main(void) {
  cudaFree(NULL);
  pthread_t threads[kThreads];
  for (int wave = 0; wave < kWaves; ++wave) {
    for (int i = 0; i < kThreads; ++i) {
      if (pthread_create(&threads[i], NULL, wait_a_little, NULL) != 0) return 1;
    }
    for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  }
  printf("%d threads\n", finished);
  return 0;
}
