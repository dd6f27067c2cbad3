// From a report to "what should I change first": findings that the numbers prove,
// each with a concrete change, the one that wins most first. Nothing is said without
// evidence in the reply. The rules are in advice/, their thresholds in
// advice/thresholds.h.
//
// With GPU truth all findings are about time of the GPU within traced time, because
// that is what a change wins. Without it they are about time of the host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "query.pb.h"

namespace lull {

// Against what a share of the host's time is taken: the life time of the processes
// that did GPU work or allocated tensors (of all processes, if none did). One process
// that works for a minute and eight ranks that work for a minute are both at 100 %
// when they do nothing but wait.
struct Shares {
  uint64_t working_ns = 0;
  uint32_t working_processes = 0;
  uint64_t blocked_ns = 0;    // in sync calls
  uint64_t data_wait_ns = 0;  // for the next batch of a DataLoader
  uint64_t gc_ns = 0;         // in CPython's cyclic garbage collector
};
Shares SharesOf(const v1::ReportReply& reply);

struct Advice {
  std::string rule;          // "data_wait": which rule found it, for programs
  std::string finding;       // "waiting for data takes 23.0 % of the time, at ..."
  std::string advice;        // "give the DataLoader more workers ..."
  uint64_t time_ns = 0;      // measured: what the finding concerns
  bool of_gpu_time = false;  // of traced time of the GPU; else of the host
  uint64_t rank_ns = 0;      // by which findings are ordered: what a change can win
};

std::vector<Advice> WhatToChangeFirst(const v1::ReportReply& reply);

}  // namespace lull
