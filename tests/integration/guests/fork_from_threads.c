// Eight threads fork at the same time, again and again; every child uses calls
// that lull intercepts, takes a lock, and leaves.
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int cudaFree(void* pointer);  // from guest_cudart.cc: from here on lull records

enum { kThreads = 8, kRounds = 25 };
static int failures;

static void* fork_often(void* unused) {
  (void)unused;
  for (int round = 0; round < kRounds; ++round) {
    pid_t child = fork();
    if (child == 0) {
      pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
      pthread_mutex_lock(&lock);
      if (round % 3 == 0) cudaFree(NULL);
      poll(NULL, 0, 1);
      pthread_mutex_unlock(&lock);
      if (round % 2 == 0) exit(3);
      _exit(3);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (child < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 3) {
      __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
    }
  }
  return NULL;
}

int main(void) {
  cudaFree(NULL);
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, fork_often, NULL);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  printf("%d children, %d failures\n", kThreads * kRounds, failures);
  return failures == 0 ? 0 : 1;
}
