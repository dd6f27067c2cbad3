// Jumps out of hooked calls and then makes 1,000 CUDA calls, all of them from frames
// that are deeper than the one that was jumped out of, and beyond a room that nobody
// writes to.
//
//   jumps_out wait    out of poll(), in a signal handler
//   jumps_out above   out of a poll() that a signal handler made, on a stack for
//   signals jumps_out below   that lies above or below the thread's own; it is unmapped
//   then jumps_out cuda    out of a CUDA call
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// From guest_cudart.cc.
int cudaMemcpy(void* to, const void* from, unsigned long size, int kind);
int cudaStreamSynchronize(void* function);  // calls it

#define STACK (1 << 20)

static sigjmp_buf top;
static volatile sig_atomic_t waiting;

static void jump(int number) {
  (void)number;
  siglongjmp(top, 1);
}

static void jump_out(void) { siglongjmp(top, 1); }

static void wait_in_handler(int number) {
  (void)number;
  waiting = 1;
  poll(NULL, 0, -1);
}

static void on_signal(int number, void (*handler)(int)) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = SA_ONSTACK | SA_NODEFER;
  sigaction(number, &action, NULL);
}

// From here on the waits of a thread are measured: it gives the GPU work.
static void begin_to_train(void) { cudaMemcpy(NULL, NULL, 0, 3); }

__attribute__((noinline)) static void wait_for_ever(void) { poll(NULL, 0, -1); }

__attribute__((noinline)) static void train(volatile char* room) {
  for (int i = 0; i < 1000; ++i) cudaStreamSynchronize(NULL);
  room[0] = 0;
}

__attribute__((noinline)) static void train_from_deeper(void) {
  volatile char room[1 << 16];
  train(room);
}

static void jump_out_of_wait(void) {
  on_signal(SIGALRM, jump);
  if (sigsetjmp(top, 1) == 0) {
    ualarm(50 * 1000, 0);
    wait_for_ever();
  }
}

static void jump_out_of_cuda(void) {
  if (sigsetjmp(top, 1) == 0) cudaStreamSynchronize((void*)jump_out);
}

static void* wait_and_train(void* signal_stack) {
  stack_t stack = {.ss_sp = signal_stack, .ss_size = STACK};
  sigaltstack(&stack, NULL);
  begin_to_train();
  if (sigsetjmp(top, 1) == 0) {
    waiting = 1;
    wait_for_ever();
  }
  stack.ss_flags = SS_DISABLE;
  sigaltstack(&stack, NULL);
  munmap(signal_stack, STACK);
  train_from_deeper();
  return NULL;
}

static void interrupt_wait(pthread_t thread, int number) {
  while (!waiting) usleep(1000);
  usleep(50 * 1000);  // until it is in the call
  waiting = 0;
  pthread_kill(thread, number);
}

static void jump_out_of_signal_stack(int above) {
  char* memory =
      mmap(NULL, 3 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  on_signal(SIGUSR1, wait_in_handler);
  on_signal(SIGUSR2, jump);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, memory + STACK, STACK);
  pthread_t thread;
  pthread_create(&thread, &attributes, wait_and_train,
                 memory + (above ? 2 * STACK : 0));
  interrupt_wait(thread, SIGUSR1);
  interrupt_wait(thread, SIGUSR2);
  pthread_join(thread, NULL);
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const char* way = arguments[1];
  begin_to_train();
  if (strcmp(way, "above") == 0 || strcmp(way, "below") == 0) {
    jump_out_of_signal_stack(strcmp(way, "above") == 0);
  } else {
    strcmp(way, "wait") == 0 ? jump_out_of_wait() : jump_out_of_cuda();
    train_from_deeper();
  }
  puts("trained");
  return 0;
}
