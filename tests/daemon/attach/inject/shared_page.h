// What a victim tells the test about itself while it runs, in a file that both map.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

struct SharedPage {
  std::atomic<int> ready;
  std::atomic<int> stop;      // set by the test: end with status 0
  std::atomic<long> rounds;   // of checks that were made
  std::atomic<long> errors;   // of checks that failed
  std::atomic<long> detail;   // of the last failure
  std::atomic<long> longest;  // the longest that a round or wait took, in ns
  std::atomic<long> shortest;
};

inline SharedPage* MapSharedPage(const char* path) {
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, 4096) != 0) return nullptr;
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return page == MAP_FAILED ? nullptr : static_cast<SharedPage*>(page);
}
