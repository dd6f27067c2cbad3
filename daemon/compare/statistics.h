// What a few runs of two programs can show: means, intervals, and how many runs a
// difference would take. Pure.
#pragma once

#include <optional>
#include <vector>

#include "daemon/base/median.h"

namespace lull::compare {

double Mean(const std::vector<double>& values);
// 0 of none.
double GeometricMean(const std::vector<double>& values);
// Of a sample (n - 1); 0 of less than two.
double Variance(const std::vector<double>& values);

// Below which Student's t with so many degrees of freedom lies with `probability`,
// which is at least 0.5 and less than 1.
double StudentQuantile(double probability, double degrees);

// Difference of two means (b - a) without the assumption that both sides vary alike.
struct Welch {
  double difference = 0;
  double error = 0;    // standard error
  double degrees = 1;  // of freedom
};
// Each side has at least two values.
Welch WelchOf(const std::vector<double>& a, const std::vector<double>& b);
// Whether it is not 0, at a probability of error of `alpha`.
bool IsShown(const Welch& welch, double alpha);

// What B takes against A.
struct Change {
  double percent = 0;  // > 0: B takes longer
  double low_percent = 0;
  double high_percent = 0;
  // So large must a change be that such a comparison shows it in 95 of 100 cases.
  double detectable_percent = 0;
};
// By the logarithms of positive values, one of each run: what runs differ by is in it,
// and so is what resembles each other within a run. Each side has at least two values.
Change ChangeOf(const std::vector<double>& a, const std::vector<double>& b);

// By how much runs of one side differ: the standard deviation of logarithms, pooled.
// nullopt if no side has two runs.
std::optional<double> SpreadOf(const std::vector<double>& a,
                               const std::vector<double>& b);

// How many runs a side show a change of so many percent in 95 of 100 cases. nullopt:
// more than a thousand.
std::optional<int> RunsNeeded(double spread, double percent);

}  // namespace lull::compare
