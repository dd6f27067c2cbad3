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
};

// Both sides have a run at least. All runs have been asked about as run.h says.
Comparison Compare(const Runs& a, const Runs& b, const Question& question);

}  // namespace lull::compare
