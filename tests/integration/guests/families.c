// Processes that make a known number of CUDA calls each, in the ways in which processes
// come to be. Prints "CALLS PROCESSES".
//
//   families forks N CALLS   N children at once, forked while other threads call
//   families chain N CALLS   calls, then vfork()s and execs itself with N - 1, and so
//   on;
//                            waits for what it started
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int cudaFree(void* pointer);  // from guest_cudart.cc

static long calls;

static void call(void) {
  for (long i = 0; i < calls; ++i) cudaFree(NULL);
}

static void* calling(void* unused) {
  call();
  return unused;
}

static int forks(long children) {
  pthread_t beside;
  if (pthread_create(&beside, NULL, calling, NULL) != 0) return 1;
  int bad = 0;
  for (long i = 0; i < children; ++i) {
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
      call();
      _exit(7);
    }
  }
  int status;
  while (wait(&status) > 0) bad += !WIFEXITED(status) || WEXITSTATUS(status) != 7;
  pthread_join(beside, NULL);
  printf("%ld %ld\n", calls * (children + 1), children + 1);
  return bad != 0;
}

static int chain(char** argv, long left) {
  call();
  if (left <= 1) return 0;
  char fewer[24];
  snprintf(fewer, sizeof fewer, "%ld", left - 1);
  char* arguments[] = {argv[0], argv[1], fewer, argv[3], "inner", NULL};
  pid_t child = vfork();
  if (child == 0) {
    execv("/proc/self/exe", arguments);
    execv(argv[0], arguments);
    _exit(1);
  }
  int status = 0;
  return child < 0 || waitpid(child, &status, 0) != child || status != 0;
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  long count = atol(argv[2]);
  calls = atol(argv[3]);
  if (strcmp(argv[1], "forks") == 0) return forks(count);
  if (strcmp(argv[1], "chain") != 0) return 2;
  int bad = chain(argv, count);
  if (argc == 4) printf("%ld %ld\n", calls * count, count);
  return bad;
}
