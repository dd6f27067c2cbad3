// A thread that makes CUDA calls, interrupted all the time by a handler that makes one,
// too, on a stack for signals that lies above the thread's own. Prints how many calls
// were made.
//
//   interrupted SECONDS
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

int cudaFree(void* pointer);  // from guest_cudart.cc

#define STACK (1 << 20)

static char* memory;
static time_t end;
static long calls, calls_of_handler;
static atomic_int done;

static void on_signal(int number) {
  (void)number;
  cudaFree(NULL);
  ++calls_of_handler;
}

static void* work(void* unused) {
  stack_t stack = {.ss_sp = memory + 2 * STACK, .ss_size = STACK};
  sigaltstack(&stack, NULL);
  while (time(NULL) < end) {
    for (int i = 0; i < 1000; ++i) cudaFree(NULL);
    calls += 1000;
  }
  atomic_store(&done, 1);
  return unused;
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  end = time(NULL) + atol(arguments[1]);
  memory =
      mmap(NULL, 3 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, NULL);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, memory + STACK, STACK);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, work, NULL) != 0) return 1;
  while (!atomic_load(&done)) {
    pthread_kill(thread, SIGUSR1);
    for (volatile int i = 0; i < 500; ++i) {
    }
  }
  pthread_join(thread, NULL);
  printf("%ld\n", calls + calls_of_handler);
  return 0;
}
