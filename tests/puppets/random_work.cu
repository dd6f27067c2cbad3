// Random work for the simulated device: random_work LOG FIRST_SEED SEEDS.
//
// Each seed is a short program of its own: one to three threads with streams of their
// own and one shared, which launch kernels, copy, wait for events of each other, replay
// graphs, synchronise, allocate, sleep and compute, in an order that the seed decides.
// Between two seeds the device is idle for a while.
//
// LOG gets what the ground-truth log of the device cannot know, a line each:
//   call TID LINE BEFORE AFTER     the thread's next call came from this line; the
//                                  thread's clock around it, CLOCK_MONOTONIC in ns
//   sleep TID START END LINE BEFORE AFTER     the thread slept, from libc's START to END;
//                                  its clock around that
//   lock TID START END LINE BEFORE AFTER      it waited at a semaphore
//   late TID START END         somewhere in there it had to wait for a processor, or
//                              for the kernel's word on that
//   delays TID NS              so long in all, since the last such line
// Every call of the CUDA API is logged, when it has been made.
#include <dlfcn.h>
#include <fcntl.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/puppets/cuda.h"
#include "tests/puppets/true_waits.h"

namespace {

constexpr size_t kBytes = 1 << 20;
constexpr int kMaxThreads = 3;

using NextKernel = void (*)(int64_t);
NextKernel g_next_kernel;

int64_t now_ns() {
  timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return int64_t{ts.tv_sec} * 1'000'000'000 + ts.tv_nsec;
}

struct Thread {
  long tid = syscall(SYS_gettid);
  std::string log;

  // A call that has just returned.
  void called(int line, int64_t before_ns) {
    int64_t after_ns = now_ns();
    write("call", line, before_ns, " " + std::to_string(after_ns));
  }
  void waited(const char* how, int line, int64_t before_ns) {
    int64_t after_ns = now_ns();
    TrueWait wait = last_true_wait();
    write(how, wait.start_ns, wait.end_ns,
          " " + std::to_string(line) + " " + std::to_string(before_ns) + " " +
              std::to_string(after_ns));
    int64_t delay = look();
    delays_ns += delay - delay_ns;
    delay_ns = delay;  // that of waking up belongs to the wait
  }
  // Since the last look.
  void look_for_delays() {
    int64_t delay = look(), now = now_ns();
    if (delay - delay_ns > kLongDelayNs) write("late", looked_ns, now, "");
    delays_ns += delay - delay_ns;
    delay_ns = delay;
    looked_ns = now;
  }
  void write(const char* what, int64_t first, int64_t second, const std::string& rest) {
    log += what + (" " + std::to_string(tid)) + " " + std::to_string(first) + " " +
           std::to_string(second) + rest + "\n";
  }
  const std::string& finished() {
    return log +=
           "delays " + std::to_string(tid) + " " + std::to_string(delays_ns) + "\n";
  }
  // What run_delay() says. One that takes long is a wait in lull's eyes.
  int64_t look() {
    int64_t start = now_ns(), delay = run_delay(), end = now_ns();
    if (end - start > kLongLookNs) write("late", start, end, "");
    return delay;
  }
  // Of this thread, in ns: the second number of its schedstat.
  static int64_t run_delay() {
    char text[96] = {};
    int file = open("/proc/thread-self/schedstat", O_RDONLY);
    ssize_t size = read(file, text, sizeof text - 1);
    close(file);
    char* second = nullptr;
    if (size > 0) std::strtoll(text, &second, 10);
    return second != nullptr ? std::strtoll(second, nullptr, 10) : 0;
  }

  static constexpr int64_t kLongDelayNs = 5'000;
  static constexpr int64_t kLongLookNs = 40'000;
  int64_t delay_ns = run_delay();
  int64_t looked_ns = now_ns();
  int64_t delays_ns = 0;
};

// The call and its log keep one line.
#define RUN(thread, call)                 \
  do {                                    \
    int64_t before_ns = now_ns();         \
    CHECK(call);                          \
    (thread).called(__LINE__, before_ns); \
  } while (false)
#define RUN_KERNEL(thread, name, stream, data) \
  do {                                         \
    int64_t before_ns = now_ns();              \
    LAUNCH(name, 8, 64, stream, data);         \
    (thread).called(__LINE__, before_ns);      \
  } while (false)

KERNEL(short_kernel, {})
KERNEL(long_kernel, {})

struct Shared {
  float* device = nullptr;
  float* pinned = nullptr;
  cudaStream_t stream;
  cudaEvent_t event;
  cudaGraphExec_t graph;
};

struct Own {
  std::vector<char> pageable = std::vector<char>(kBytes);
  float* device = nullptr;
  float* pinned = nullptr;
  cudaStream_t stream;
  cudaEvent_t event;
  void* extra = nullptr;
};

class Worker {
 public:
  Worker(uint64_t seed, Thread& thread, Shared& shared, Own& own)
      : random_(seed), thread_(thread), shared_(shared), own_(own) {
    sem_init(&nobody_, 0, 0);
  }

  void launches() {
    uint64_t count = 1 + pick(8);
    for (uint64_t i = 0; i < count; ++i) {
      kernel_of(microseconds(2, 60));
      switch (pick(3)) {
        case 0:
          RUN_KERNEL(thread_, short_kernel, stream(), own_.device);
          break;
        case 1:
          RUN_KERNEL(thread_, short_kernel, own_.stream, own_.device);
          break;
        default:
          RUN_KERNEL(thread_, long_kernel, own_.stream, own_.device);
      }
    }
  }

  void act() {
    switch (pick(16)) {
      case 0:
      case 1:
      case 2:
        return launches();
      case 3:
        kernel_of(microseconds(50, 2000));
        RUN_KERNEL(thread_, long_kernel, stream(), own_.device);
        return;
      case 4:
        return copies();
      case 5:
        RUN(thread_, cudaMemsetAsync(own_.device, 0, kBytes, own_.stream));
        return;
      case 6:
        RUN(thread_, cudaStreamSynchronize(own_.stream));
        return;
      case 7:
        RUN(thread_, cudaDeviceSynchronize());
        return;
      case 8:
        RUN(thread_, cudaEventRecord(own_.event, own_.stream));
        if (pick(2) == 0) compute(microseconds(1, 200));
        RUN(thread_, cudaEventSynchronize(own_.event));
        return;
      case 9:
        return cross();
      case 10:
        RUN(thread_, cudaGraphLaunch(shared_.graph, own_.stream));
        return;
      case 11:
        return memory();
      case 12:
        return nap();
      case 13:
        return wait_for_nobody();
      default:
        return compute(microseconds(1, 600));
    }
  }

 private:
  uint64_t pick(uint64_t n) { return random_() % n; }
  int64_t microseconds(int64_t low, int64_t high) {
    return 1000 * (low + static_cast<int64_t>(pick(static_cast<uint64_t>(high - low))));
  }
  cudaStream_t stream() { return pick(4) == 0 ? shared_.stream : own_.stream; }
  void kernel_of(int64_t ns) { g_next_kernel(ns); }

  void copies() {
    constexpr auto kUp = cudaMemcpyHostToDevice, kDown = cudaMemcpyDeviceToHost;
    size_t n = 4 << pick(18);
    Own& o = own_;
    switch (pick(4)) {
      case 0:
        RUN(thread_, cudaMemcpyAsync(o.device, o.pinned, n, kUp, o.stream));
        break;
      case 1:
        RUN(thread_, cudaMemcpyAsync(o.pinned, o.device, n, kDown, o.stream));
        break;
      case 2:
        RUN(thread_, cudaMemcpyAsync(o.device, o.pageable.data(), n, kUp, o.stream));
        break;
      default:
        RUN(thread_, cudaMemcpyAsync(o.pageable.data(), o.device, n, kDown, o.stream));
        RUN(thread_, cudaStreamSynchronize(o.stream));
    }
  }

  void cross() {
    kernel_of(microseconds(20, 400));
    RUN_KERNEL(thread_, long_kernel, own_.stream, own_.device);
    RUN(thread_, cudaEventRecord(own_.event, own_.stream));
    RUN(thread_, cudaStreamWaitEvent(shared_.stream, own_.event, 0));
    kernel_of(microseconds(5, 100));
    RUN_KERNEL(thread_, short_kernel, shared_.stream, own_.device);
  }

  void memory() {
    if (own_.extra == nullptr) {
      RUN(thread_, cudaMalloc(&own_.extra, kBytes));
    } else {
      RUN(thread_, cudaFree(own_.extra));
      own_.extra = nullptr;
    }
  }

  // Well above the threshold from which waits are events (50 us).
  void nap() {
    timespec time{0, microseconds(150, 3000)};
    int64_t before_ns = now_ns();
    int line = __LINE__ + 1;
    nanosleep(&time, nullptr);
    thread_.waited("sleep", line, before_ns);
  }

  // Likewise, for another thread that never comes.
  void wait_for_nobody() {
    timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += microseconds(150, 3000);
    if (until.tv_nsec >= 1'000'000'000) {
      until.tv_nsec -= 1'000'000'000;
      ++until.tv_sec;
    }
    int64_t before_ns = now_ns();
    int line = __LINE__ + 1;
    sem_timedwait(&nobody_, &until);
    thread_.waited("lock", line, before_ns);
  }

  void compute(int64_t ns) {
    int64_t end = now_ns() + ns;
    while (now_ns() < end) {
    }
  }

  std::mt19937_64 random_;
  Thread& thread_;
  Shared& shared_;
  Own& own_;
  sem_t nobody_;
};

void prepare(Thread& thread, Shared& shared, std::vector<Own>& owns) {
  RUN(thread, cudaMalloc(&shared.device, kBytes));
  RUN(thread, cudaMallocHost(&shared.pinned, kBytes));
  RUN(thread, cudaStreamCreate(&shared.stream));
  RUN(thread, cudaEventCreate(&shared.event));
  for (Own& own : owns) {
    RUN(thread, cudaMalloc(&own.device, kBytes));
    RUN(thread, cudaMallocHost(&own.pinned, kBytes));
    RUN(thread, cudaStreamCreate(&own.stream));
    RUN(thread, cudaEventCreate(&own.event));
  }
  RUN(thread, cudaStreamBeginCapture(shared.stream, cudaStreamCaptureModeGlobal));
  RUN_KERNEL(thread, short_kernel, shared.stream, shared.device);
  RUN_KERNEL(thread, long_kernel, shared.stream, shared.device);
  RUN(thread, cudaMemcpyAsync(shared.pinned, shared.device, 65536,
                              cudaMemcpyDeviceToHost, shared.stream));
  cudaGraph_t graph;
  RUN(thread, cudaStreamEndCapture(shared.stream, &graph));
  RUN(thread, cudaGraphInstantiateWithFlags(&shared.graph, graph, 0));
}

void pause_ms(int64_t ms) {
  int64_t end = now_ns() + ms * 1'000'000;
  while (now_ns() < end) usleep(1000);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  g_next_kernel =
      reinterpret_cast<NextKernel>(dlsym(RTLD_DEFAULT, "lull_sim_next_kernel_ns"));
  Thread main_thread;
  Shared shared;
  std::vector<Own> owns(kMaxThreads);
  prepare(main_thread, shared, owns);
  if (g_next_kernel == nullptr) {
    g_next_kernel =
        reinterpret_cast<NextKernel>(dlsym(RTLD_DEFAULT, "lull_sim_next_kernel_ns"));
  }
  if (g_next_kernel == nullptr) {
    void* driver = dlopen("libcuda.so.1", RTLD_LAZY);
    g_next_kernel =
        reinterpret_cast<NextKernel>(dlsym(driver, "lull_sim_next_kernel_ns"));
  }
  if (g_next_kernel == nullptr) return 3;
  // The first operation, then a gap in which a report may begin.
  RUN_KERNEL(main_thread, short_kernel, shared.stream, shared.device);
  pause_ms(30);

  std::string log;
  uint64_t first = std::strtoull(argv[2], nullptr, 10);
  uint64_t seeds = std::strtoull(argv[3], nullptr, 10);
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    int count = 1 + static_cast<int>(seed % kMaxThreads);
    std::vector<Thread> logs(static_cast<size_t>(count));
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        Thread& own_log = logs[static_cast<size_t>(i)];
        own_log = Thread();
        Worker worker(seed * 1000 + static_cast<uint64_t>(i), own_log, shared,
                      owns[static_cast<size_t>(i)]);
        worker.launches();  // from here on its waits are of interest
        for (int action = 0; action < 40; ++action) {
          worker.act();
          own_log.look_for_delays();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (Thread& thread : logs) log += thread.finished();
    RUN(main_thread, cudaDeviceSynchronize());
    pause_ms(3);
    main_thread.look_for_delays();
  }
  // A last operation that is long enough for a report to end within it.
  g_next_kernel(40'000'000);
  RUN_KERNEL(main_thread, long_kernel, shared.stream, shared.device);
  RUN(main_thread, cudaDeviceSynchronize());
  main_thread.look_for_delays();
  log += main_thread.finished();
  FILE* file = std::fopen(argv[1], "w");
  if (file == nullptr) return 4;
  std::fwrite(log.data(), 1, log.size(), file);
  return std::fclose(file) == 0 ? 0 : 5;
}
