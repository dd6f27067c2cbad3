// A made-up job for tests: what a relay would say of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ingest.pb.h"

namespace lull::test {

// APIs that every test job announces.
inline constexpr uint32_t kApiSync = 1;       // cudaStreamSynchronize
inline constexpr uint32_t kApiMalloc = 2;     // cudaMalloc
inline constexpr uint32_t kApiFree = 3;       // cudaFree
inline constexpr uint32_t kApiTorch = 4;      // c10::reportMemoryUsageToProfiler
inline constexpr uint32_t kApiPoll = 5;       // poll
inline constexpr uint32_t kApiTimedWait = 6;  // pthread_cond_timedwait
inline constexpr uint32_t kApiLaunch = 7;     // cudaLaunchKernel
inline constexpr uint32_t kApiCount = 7;

inline constexpr uint64_t kJobStartNs = 1'000'000'000'000;

struct TestEvent {
  uint32_t type = 0;
  uint32_t flags = 0;
  uint32_t api = 0;
  uint32_t python = 0;  // ref of a stack of MakeStacks
  uint32_t native = 0;
  uint64_t start_ns = kJobStartNs;
  uint64_t duration_ns = 0;
  uint64_t arg0 = 0;
  uint64_t arg1 = 0;
  uint32_t arg2 = 0;
  uint32_t tid = 1000;
};

// Of the test stacks: refs 1..kPythonStacks are Python, the next ones native. Stack
// `ref` has its site at line 10 + ref % 3 of /home/u/train.py in function f<ref % 2>,
// so that several stacks share a line and several lines a function; the stack
// kDataStack comes from the data loader.
inline constexpr uint32_t kPythonStacks = 8;
inline constexpr uint32_t kNativeStacks = 3;
inline constexpr uint32_t kDataStack = 5;
std::vector<lull::v1::StackDef> MakeStacks();

lull::v1::Hello MakeHello(const std::string& job_id, const std::string& name = "");
std::string MakeJobId(uint32_t number);

lull::v1::ProcessInfo MakeProcess(uint64_t key, uint32_t pid, int32_t rank);

// A run of events of one ring.
void AddRun(lull::v1::Batch& batch, uint64_t process_key, uint32_t ring,
            uint64_t first_position, const std::vector<TestEvent>& events);

void AddStacks(lull::v1::Batch& batch, uint64_t process_key);

// Counters of a process that works, with one ring.
void AddCounters(lull::v1::Batch& batch, uint64_t process_key, uint32_t ring,
                 uint64_t committed, uint64_t as_of_ns);

}  // namespace lull::test
