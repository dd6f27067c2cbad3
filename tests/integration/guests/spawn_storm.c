// vfork and posix_spawn from several threads at once.
#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int cudaFree(void* pointer);  // from guest_cudart.cc: from here on lull records

extern char** environ;
enum { kThreads = 4, kRounds = 40 };
static int failures;

static void expect_success(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (child <= 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
  }
}

static void* spawn_often(void* unused) {
  (void)unused;
  char* arguments[] = {"true", NULL};
  for (int round = 0; round < kRounds; ++round) {
    pid_t child = vfork();
    if (child == 0) {
      execv("/bin/true", arguments);
      _exit(127);
    }
    expect_success(child);
    child = -1;
    posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ);
    expect_success(child);
  }
  return NULL;
}

int main(void) {
  cudaFree(NULL);
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, spawn_often, NULL);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  printf("%d children, %d failures\n", kThreads * kRounds * 2, failures);
  return failures == 0 ? 0 : 1;
}
