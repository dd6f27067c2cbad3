// Children that libc's fork handlers never hear of: clone() with a stack of its
// own, the bare system call, and a child that shares its parent's memory.
#define _GNU_SOURCE
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int cudaFree(void* pointer);  // from guest_cudart.cc: from here on lull records

enum { kStack = 256 * 1024, kRounds = 50 };

static int child_main(void* unused) {
  (void)unused;
  int pipe_ends[2];
  char byte = 'x';
  cudaFree(NULL);
  if (pipe(pipe_ends) != 0 || write(pipe_ends[1], &byte, 1) != 1 ||
      read(pipe_ends[0], &byte, 1) != 1 || byte != 'x') {
    _exit(1);
  }
  poll(NULL, 0, 1);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  _exit(5);
}

static int ended_well(pid_t child) {
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 5;
}

int main(void) {
  cudaFree(NULL);
  char* stack = malloc(kStack);
  int good = 0;
  for (int round = 0; round < kRounds; ++round) {
    good += ended_well(clone(child_main, stack + kStack, SIGCHLD, NULL));
    good += ended_well(
        clone(child_main, stack + kStack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) child_main(NULL);
    good += ended_well(child);
  }
  free(stack);
  printf("%d of %d children ended well\n", good, 3 * kRounds);
  return good == 3 * kRounds ? 0 : 1;
}
