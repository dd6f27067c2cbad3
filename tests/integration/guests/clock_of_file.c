// To be preloaded: the wall clock is off by the number of seconds in the file that
// $CLOCK_OF_FILE names, which may change at any time. What a clock that is set back
// does.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset(void) {
  const char* path = getenv("CLOCK_OF_FILE");
  char text[24] = "";
  int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (fd >= 0) {
    ssize_t size = read(fd, text, sizeof text - 1);
    text[size > 0 ? size : 0] = 0;
    close(fd);
  }
  return atol(text);
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock,
                                                         struct timespec* out) {
  int result = (int)syscall(SYS_clock_gettime, clock, out);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    out->tv_sec += offset();
  }
  return result;
}

__attribute__((visibility("default"))) int gettimeofday(struct timeval* out,
                                                        void* zone) {
  (void)zone;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return 0;
}

__attribute__((visibility("default"))) time_t time(time_t* out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != NULL) *out = now.tv_sec;
  return now.tv_sec;
}
