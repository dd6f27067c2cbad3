// CUDA calls, and the end: after one call, or with an argument once its input ends.
#include <poll.h>
#include <stdio.h>

int cudaFree(void* block);

int main(int argc, char** argv) {
  (void)argv;
  struct pollfd input = {0, POLLIN, 0};
  if (argc > 1) {
    puts("working");
    fflush(stdout);
    while (poll(&input, 1, 1) == 0) cudaFree(0);
  }
  return cudaFree(0);
}
