// Writes down everything that a process inherits, for comparing a job under lull
// with the same job without. Written in C: no runtime opens descriptors before.
#define _GNU_SOURCE
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

extern char** environ;

static void Signals(void) {
  sigset_t mask;
  sigprocmask(SIG_BLOCK, NULL, &mask);
  for (int signal = 1; signal <= 64; ++signal) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    int known = sigaction(signal, NULL, &action) == 0;
    printf("signal %d blocked %d ignored %d handled %d flags %x\n", signal,
           sigismember(&mask, signal), known && action.sa_handler == SIG_IGN,
           known && action.sa_handler != SIG_IGN && action.sa_handler != SIG_DFL,
           known ? action.sa_flags : 0);
  }
  sigset_t pending;
  sigpending(&pending);
  printf("pending %d\n", sigisemptyset(&pending));
  int death_signal = 0;
  prctl(PR_GET_PDEATHSIG, &death_signal);
  printf("parent death signal %d\n", death_signal);
}

static void Limits(void) {
  for (int resource = 0; resource < RLIM_NLIMITS; ++resource) {
    struct rlimit limit;
    getrlimit(resource, &limit);
    printf("limit %d %llu %llu\n", resource, (unsigned long long)limit.rlim_cur,
           (unsigned long long)limit.rlim_max);
  }
}

static void Descriptors(void) {
  for (int fd = 0; fd < 1024; ++fd) {
    char path[64];
    char target[4096] = {0};
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(path, target, sizeof target - 1);
    // Two runs have two different pipes for their output.
    if (size > 0)
      printf("fd %d %s\n", fd, strncmp(target, "pipe:", 5) == 0 ? "pipe" : target);
  }
}

static void Environment(void) {
  for (char** variable = environ; *variable != NULL; ++variable) {
    if (strncmp(*variable, "LD_PRELOAD=", 11) == 0) continue;
    if (strncmp(*variable, "LULL_SOCKET=", 12) == 0) continue;
    if (strncmp(*variable, "NVTX_INJECTION64_PATH=", 22) == 0) continue;
    printf("env %s\n", *variable);
  }
}

int main(int argc, char** argv) {
  for (int i = 0; i < argc; ++i) printf("argument %s\n", argv[i]);
  Environment();
  Signals();
  Limits();
  Descriptors();
  char folder[4096];
  printf("folder %s\n", getcwd(folder, sizeof folder));
  mode_t mask = umask(0);
  printf("umask %o\n", mask);
  printf("nice %d\n", getpriority(PRIO_PROCESS, 0));
  printf("session %d\n", getsid(0));
  printf("terminal %d\n", tcgetpgrp(0));
  printf("ids %d %d %d %d\n", getuid(), geteuid(), getgid(), getegid());
  return 0;
}
