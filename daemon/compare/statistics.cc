#include "daemon/compare/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace lull::compare {
namespace {

constexpr double kConfidence = 0.95;
constexpr double kPower = 0.95;
constexpr int kMostRuns = 1000;
// Runs that agree to the last nanosecond (an imported trace, twice) prove nothing below
// this: a relative standard error.
constexpr double kFinestError = 1e-5;

// The continued fraction of the incomplete beta function, by Lentz's method.
double BetaFraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  auto far_from_zero = [](double value) {
    return std::abs(value) < kTiny ? kTiny : value;
  };
  double c = 1;
  double d = 1 / far_from_zero(1 - (a + b) * x / (a + 1));
  double result = d;
  for (int m = 1; m <= 500; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / far_from_zero(1 + even * d);
    c = far_from_zero(1 + even / c);
    result *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / far_from_zero(1 + odd * d);
    c = far_from_zero(1 + odd / c);
    const double factor = d * c;
    result *= factor;
    if (std::abs(factor - 1) < 1e-14) break;
  }
  return result;
}

// I_x(a, b) of the beta distribution.
double IncompleteBeta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  // The fraction converges quickly on one side of the mean alone.
  return x < (a + 1) / (a + b + 2) ? front * BetaFraction(a, b, x) / a
                                   : 1 - front * BetaFraction(b, a, 1 - x) / b;
}

double StudentTail(double t, double degrees) {
  return 0.5 * IncompleteBeta(degrees / 2, 0.5, degrees / (degrees + t * t));
}

std::vector<double> Logarithms(const std::vector<double>& values) {
  std::vector<double> result;
  for (double value : values) result.push_back(std::log(value));
  return result;
}

double PercentOf(double logarithm) { return 100 * std::expm1(logarithm); }

}  // namespace

double Mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  double sum = 0;
  for (double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double GeometricMean(const std::vector<double>& values) {
  return values.empty() ? 0 : std::exp(Mean(Logarithms(values)));
}

double Variance(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double mean = Mean(values);
  double sum = 0;
  for (double value : values) sum += (value - mean) * (value - mean);
  return sum / static_cast<double>(values.size() - 1);
}

double StudentQuantile(double probability, double degrees) {
  double low = 0, high = 1;
  while (StudentTail(high, degrees) > 1 - probability && high < 1e12) high *= 2;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (StudentTail(middle, degrees) > 1 - probability ? low : high) = middle;
  }
  return high;
}

Welch WelchOf(const std::vector<double>& a, const std::vector<double>& b) {
  const auto n_a = static_cast<double>(a.size()), n_b = static_cast<double>(b.size());
  const double of_a = Variance(a) / n_a, of_b = Variance(b) / n_b;
  Welch welch{Mean(b) - Mean(a), std::sqrt(of_a + of_b), n_a + n_b - 2};
  if (of_a + of_b > 0) {
    welch.degrees = (of_a + of_b) * (of_a + of_b) /
                    (of_a * of_a / (n_a - 1) + of_b * of_b / (n_b - 1));
  }
  return welch;
}

bool IsShown(const Welch& welch, double alpha) {
  return std::abs(welch.difference) >
         StudentQuantile(1 - alpha / 2, welch.degrees) * welch.error;
}

Change ChangeOf(const std::vector<double>& a, const std::vector<double>& b) {
  Welch welch = WelchOf(Logarithms(a), Logarithms(b));
  welch.error = std::max(welch.error, kFinestError);
  const double t = StudentQuantile((1 + kConfidence) / 2, welch.degrees);
  const double power = StudentQuantile(kPower, welch.degrees);
  return {PercentOf(welch.difference), PercentOf(welch.difference - t * welch.error),
          PercentOf(welch.difference + t * welch.error),
          PercentOf((t + power) * welch.error)};
}

std::optional<double> SpreadOf(const std::vector<double>& a,
                               const std::vector<double>& b) {
  double sum = 0, degrees = 0;
  for (const std::vector<double>* side : {&a, &b}) {
    if (side->size() < 2) continue;
    const double own = static_cast<double>(side->size() - 1);
    sum += own * Variance(Logarithms(*side));
    degrees += own;
  }
  if (degrees == 0) return std::nullopt;
  return std::sqrt(sum / degrees);
}

std::optional<int> RunsNeeded(double spread, double percent) {
  const double wanted = std::log1p(percent / 100);
  for (int runs = 2; runs <= kMostRuns; ++runs) {
    const double degrees = 2.0 * runs - 2;
    const double sum = StudentQuantile((1 + kConfidence) / 2, degrees) +
                       StudentQuantile(kPower, degrees);
    if (sum * std::max(spread, kFinestError) * std::sqrt(2.0 / runs) <= wanted) {
      return runs;
    }
  }
  return std::nullopt;
}

}  // namespace lull::compare
