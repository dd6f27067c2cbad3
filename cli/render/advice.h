// From a report to "what should I change first": findings that the numbers prove,
// the costliest first. Nothing is said without evidence in the reply.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "query.pb.h"

namespace lull {

// Against what a share is taken: the life time of the processes that did GPU work
// or allocated tensors (of all processes, if none did). One process that works
// for a minute and eight ranks that work for a minute are both at 100 % when they
// do nothing but wait.
struct Shares {
  uint64_t working_ns = 0;
  uint32_t working_processes = 0;
  uint64_t blocked_ns = 0;    // in sync calls
  uint64_t data_wait_ns = 0;  // for the next batch of a DataLoader
  uint64_t gc_ns = 0;         // in CPython's cyclic garbage collector
};
Shares SharesOf(const v1::ReportReply& reply);

struct Advice {
  std::string finding;   // "waiting for data took 23.0 % of the time, at train.py:12"
  std::string advice;    // "give the DataLoader more workers ..."
  uint64_t time_ns = 0;  // what the finding concerns
};

// Thresholds, in percent of Shares::working_ns.
inline constexpr double kDataWaitPercent = 5;
inline constexpr double kOldGcPercent = 1;
inline constexpr double kDeviceMemoryPercent = 1;
inline constexpr double kPageableCopyPercent = 1;
inline constexpr double kSyncPercent = 5;
// Fewer calls than this at one site are set-up, not a loop.
inline constexpr uint64_t kLoopCalls = 16;
// Likewise, of full garbage collections.
inline constexpr uint64_t kOftenCollected = 3;
// A copy of at most this many bytes on average reads a value back.
inline constexpr uint64_t kReadBackBytes = 4096;

std::vector<Advice> WhatToChangeFirst(const v1::ReportReply& reply);

}  // namespace lull
