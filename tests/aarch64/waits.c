// A C guest: it synchronises, copies and waits a number of times that the test knows.
#include <poll.h>
#include <stdio.h>

int cudaStreamSynchronize(void* stream);
int cudaMemcpy(void* to, const void* from, unsigned long size, int kind);

__attribute__((noinline)) static void step(void) {
  char from[64] = "x";
  char to[64];
  poll(0, 0, 5);
  cudaMemcpy(to, from, sizeof(to), 2);
  cudaStreamSynchronize(0);
}

int main(void) {
  for (int i = 0; i < 20; ++i) step();
  puts("20 steps");
  return 3;
}
