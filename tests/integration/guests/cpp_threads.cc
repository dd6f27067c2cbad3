// A C++ program that makes a known number of CUDA calls: from threads, from destructors
// of thread_local objects, around exceptions, and from a static destructor at exit.
// Prints "CALLS THREADS".
//
//   cpp_threads THREADS CALLS
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

extern "C" int cudaFree(void* pointer);  // from guest_cudart.cc

namespace {

struct Last {
  ~Last() { cudaFree(nullptr); }
};

Last at_exit;

void Work(long calls) {
  thread_local Last last;
  (void)&last;
  for (long i = 0; i < calls; ++i) {
    try {
      cudaFree(nullptr);
      if (i % 2 == 0) throw std::runtime_error("as usual");
    } catch (const std::runtime_error&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  long threads = std::atol(argv[1]), calls = std::atol(argv[2]);
  std::vector<std::thread> all;
  for (long i = 0; i < threads; ++i) all.emplace_back(Work, calls);
  for (std::thread& thread : all) thread.join();
  std::printf("%ld %ld\n", threads * (calls + 1) + 1, threads + 1);
}
