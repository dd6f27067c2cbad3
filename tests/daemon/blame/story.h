// A story: all that happened in a process, and what an engine made of it.
#pragma once

#include <cstdint>
#include <map>
#include <ostream>
#include <random>
#include <tuple>
#include <vector>

#include "daemon/blame/blame.h"

namespace lull::blame {

struct Span {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
};

struct Mark {
  uint64_t time_ns = 0;
  bool on = false;
};

struct Story {
  Options options;
  std::vector<Operation> operations;
  std::vector<ApiCall> calls;
  std::vector<StreamWait> waits;
  std::vector<HostEvent> host;
  std::vector<RunDelay> delays;
  std::vector<Mark> marks;
  std::vector<Span> lost;

  uint64_t End() const;  // of all times
};

// Several threads that launch, copy, synchronize, collect garbage, allocate and wait;
// streams on one or two devices; graphs, events between streams, run delays, losses,
// windows. Times are small numbers, so that many of them coincide.
Story RandomStory(uint64_t seed);

// Sums of one device in one unit of coverage: traced, busy, with kernels.
struct Covered {
  uint64_t traced_ns = 0;
  uint64_t busy_ns = 0;
  uint64_t kernel_ns = 0;
  bool operator==(const Covered&) const = default;
};

// What was told, in an order that does not depend on when.
struct Telling {
  std::vector<Idle> idle;  // touching parts with the same verdict are one
  std::vector<SyncCost> syncs;
  std::vector<Submission> submissions;
  std::map<std::pair<DeviceId, uint64_t>, Covered> coverage;  // by device and unit
};

// Brings the parts into that order.
void Normalize(Telling* telling);

class Recorder : public Sink {
 public:
  explicit Recorder(uint64_t unit_ns) : unit_ns_(unit_ns) {}
  void OnIdle(const Idle& idle) override;
  void OnSync(const SyncCost& cost) override { telling_.syncs.push_back(cost); }
  void OnSubmission(const Submission& submission) override;
  void OnCoverage(const Coverage& coverage) override;

  // Call it after each Advance: notes what is out of step.
  void EndOfAdvance();
  int out_of_step() const { return out_of_step_; }
  Telling Take();

 private:
  uint64_t unit_ns_;
  Telling telling_;
  std::map<DeviceId, uint64_t> covered_;               // device -> told up to
  std::map<DeviceId, uint64_t> was_covered_;           // before this Advance
  std::vector<std::pair<DeviceId, uint64_t>> starts_;  // device, start of what was told
  int out_of_step_ = 0;
};

// Adds all of the story and finishes.
Telling TellAtOnce(const Story& story, Counters* counters);
// Adds it in random order, as late as the marks allow, with many an Advance between.
Telling TellInPieces(const Story& story, uint64_t seed, Counters* counters,
                     int* out_of_step);

// By the rules, instant by instant and without any cleverness.
Telling JudgeByTheRules(const Story& story);

bool operator==(const Operation& a, const Operation& b);
bool operator==(const Idle& a, const Idle& b);
bool operator==(const SyncCost& a, const SyncCost& b);
bool operator==(const Submission& a, const Submission& b);
std::ostream& operator<<(std::ostream& out, const Idle& idle);
std::ostream& operator<<(std::ostream& out, const SyncCost& cost);
std::ostream& operator<<(std::ostream& out, const Submission& submission);

}  // namespace lull::blame
