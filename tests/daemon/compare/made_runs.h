// Runs as the report engine would answer about them, made of numbers.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "daemon/compare/compare.h"

namespace lull::testing {

struct MadeSync {
  std::string file = "/job/train.py";
  int line = 10;
  std::string function = "step";
  std::string api = "cudaStreamSynchronize";
  int every = 1;           // step; 0: never
  int calls = 1;           // in such a step
  uint64_t since = 0;      // not in steps of lower numbers
  int rank = -1;           // in this process alone; -1: in each
  std::string text = {};   // of its line; "": not kept
  std::string above = {};  // of the line before it
};

struct MadeRun {
  std::string name = "made";
  size_t steps = 400;
  double step_ms = 50;
  double step_spread = 0.05;  // standard deviation of one step
  double likeness = 0.5;      // correlation of one step with the next
  double run_spread = 0;      // of runs of one program
  std::vector<MadeSync> syncs;
  size_t processes = 1;
  uint64_t start_realtime_ns = 1;
  bool traced = false;
  bool gpu = true;  // each process made GPU calls
  int exit_status = 0;
  std::map<size_t, double> slower = {};  // processes whose steps take so many times
};

// Numbers that are the same with every standard library.
class Normal {
 public:
  explicit Normal(uint64_t seed) : random_(seed) {}
  double operator()();

 private:
  std::mt19937_64 random_;
};

// What the overview says.
compare::Run MakeWhole(const MadeRun& made, Normal& normal);
// What the questions about processes are answered, when their steps have been chosen.
void Answer(const MadeRun& made, compare::Run* run);

// Both, and the comparison.
compare::Comparison CompareMade(const std::vector<MadeRun>& a,
                                const std::vector<MadeRun>& b, uint64_t seed = 1,
                                double difference_percent = 2, bool own_steps = false);

// One side by itself.
compare::Comparison MeasureMade(const std::vector<MadeRun>& made, uint64_t seed = 1);

}  // namespace lull::testing
