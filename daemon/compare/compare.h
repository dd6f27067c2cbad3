// Two programs, or two states of one, by the answers of the report engine about their
// runs. Pure: no clock, no collector. It measures nothing, and adds up what answers
// say.
#pragma once

#include "daemon/compare/comparison.h"
#include "daemon/compare/run.h"
#include "daemon/compare/steady_steps.h"

namespace lull::compare {

struct Question {
  double difference_percent = 2;  // how many runs would show such a change?
  ChosenSteps chosen;
  bool warn_of_few_runs = true;  // one a side proves nothing of times
  bool each_process = false;     // fill Comparison.each_process
  // For who asks about the runs: each in all of its own steady steps (ChooseOwnSteps).
  bool own_steps = false;
};

// What was measured of one side: a comparison with itself, without what is wrong with
// comparing.
Comparison MeasureAlone(const Runs& runs, const ChosenSteps& chosen);

// Both sides have a run at least. All runs have been asked about as run.h says.
Comparison Compare(const Runs& a, const Runs& b, const Question& question);

}  // namespace lull::compare
