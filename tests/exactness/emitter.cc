// Emits a known number of hooked calls from many threads of several ranks and
// keeps its own tally of them in a shared file, so that the tally survives
// SIGKILL. Every sixteenth call is a synchronisation, the others are launches.
//
//   emitter TALLY_FILE RANKS THREADS CALLS_PER_THREAD CALLS_PER_MS
//
// TALLY_FILE: uint64 tally[RANKS][THREADS], grows by one after each call. Ranks
// are forked before any call. Prints one line per rank, in order, and exits 0.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <thread>
#include <vector>

struct Dim3 {
  unsigned x, y, z;
};
extern "C" int cudaLaunchKernel(const void*, Dim3, Dim3, void**, size_t, void*);
extern "C" int cudaStreamSynchronize(void*);

namespace {

// Past libc, so that pacing does not show up as host waits.
void pause_one_millisecond() {
  timespec duration{0, 1'000'000};
  syscall(SYS_nanosleep, &duration, nullptr);
}

void emit(std::atomic<uint64_t>* tally, uint64_t calls, uint64_t calls_per_ms) {
  for (uint64_t i = 0; i < calls; ++i) {
    if (i % 16 == 15) {
      cudaStreamSynchronize(nullptr);
    } else {
      cudaLaunchKernel(nullptr, Dim3{1, 1, 1}, Dim3{1, 1, 1}, nullptr, 0, nullptr);
    }
    tally->fetch_add(1, std::memory_order_relaxed);
    if (calls_per_ms != 0 && i % calls_per_ms == calls_per_ms - 1)
      pause_one_millisecond();
  }
}

void run_rank(std::atomic<uint64_t>* tallies, int threads, uint64_t calls,
              uint64_t calls_per_ms) {
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back(emit, &tallies[i], calls, calls_per_ms);
  }
  for (std::thread& worker : workers) worker.join();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr,
                 "usage: emitter TALLY_FILE RANKS THREADS CALLS CALLS_PER_MS\n");
    return 2;
  }
  int ranks = std::atoi(argv[2]);
  int threads = std::atoi(argv[3]);
  uint64_t calls = std::strtoull(argv[4], nullptr, 10);
  uint64_t calls_per_ms = std::strtoull(argv[5], nullptr, 10);

  size_t bytes = sizeof(uint64_t) * ranks * threads;
  int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, bytes) != 0) return 2;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return 2;
  auto* tallies = static_cast<std::atomic<uint64_t>*>(memory);

  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    pid_t child = fork();
    if (child == 0) {
      run_rank(tallies + rank * threads, threads, calls, calls_per_ms);
      _exit(rank);
    }
    children.push_back(child);
  }
  for (int rank = 0; rank < ranks; ++rank) {
    int status = 0;
    waitpid(children[rank], &status, 0);
    if (WIFSIGNALED(status)) {
      std::printf("rank %d: signal %d\n", rank, WTERMSIG(status));
    } else {
      std::printf("rank %d: exit %d\n", rank, WEXITSTATUS(status));
    }
  }
  return 0;
}
