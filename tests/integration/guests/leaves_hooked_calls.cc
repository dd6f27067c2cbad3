// Leaves intercepted calls by every way but return: a C++ exception thrown by the
// library behind the hook, the cancellation of a thread inside read(), a
// siglongjmp() out of poll(). Calls after each of them must still work.
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <stdexcept>

namespace {

extern "C" int cudaDeviceSynchronize();  // from guest_cudart.cc: throws

int pipe_ends[2];
int cleaned_up = 0;
sigjmp_buf before_poll;

struct CountsItsEnd {
  ~CountsItsEnd() { ++cleaned_up; }
};

void* read_for_ever(void*) {
  CountsItsEnd end;
  char byte;
  while (read(pipe_ends[0], &byte, 1) >= 0) {
  }
  return nullptr;
}

int count_exceptions(int rounds) {
  int caught = 0;
  for (int i = 0; i < rounds; ++i) {
    try {
      CountsItsEnd end;
      cudaDeviceSynchronize();
    } catch (const std::runtime_error&) {
      ++caught;
    }
  }
  return caught;
}

bool cancel_a_reader() {
  pthread_t reader;
  pthread_create(&reader, nullptr, read_for_ever, nullptr);
  usleep(20'000);
  pthread_cancel(reader);
  void* result = nullptr;
  pthread_join(reader, &result);
  return result == PTHREAD_CANCELED;
}

bool jump_out_of_poll() {
  struct sigaction action {};
  action.sa_handler = [](int) { siglongjmp(before_poll, 1); };
  sigaction(SIGALRM, &action, nullptr);
  if (sigsetjmp(before_poll, 1) == 0) {
    ualarm(20'000, 0);
    poll(nullptr, 0, 5'000);
    return false;
  }
  return true;
}

bool errno_survives() {
  errno = 0;
  char byte;
  return read(-1, &byte, 1) == -1 && errno == EBADF && poll(nullptr, 0, 1) == 0 &&
         errno == EBADF;
}

}  // namespace

int main() {
  if (pipe(pipe_ends) != 0) return 2;
  std::printf("caught %d\n", count_exceptions(100));
  std::printf("cancelled %d\n", cancel_a_reader());
  std::printf("jumped %d\n", jump_out_of_poll());
  std::printf("caught again %d\n", count_exceptions(100));
  std::printf("destructors %d\n", cleaned_up);
  std::printf("errno kept %d\n", errno_survives());
}
