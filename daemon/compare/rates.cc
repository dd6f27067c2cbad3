#include "daemon/compare/rates.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "daemon/compare/per_step.h"
#include "daemon/compare/site_match.h"
#include "daemon/compare/statistics.h"
#include "daemon/words/format.h"

namespace lull::compare {
namespace {

constexpr double kAlphaOfRates = 0.05;

// Values of a run by name; what has no name there is 0.
template <typename Key>
using Values = std::map<Key, double>;

Quantity QuantityOf(const std::vector<double>& a, const std::vector<double>& b) {
  Quantity quantity{Mean(a), Mean(b), std::nullopt, std::nullopt};
  if (a.size() < 2 || b.size() < 2) return quantity;
  const Welch welch = WelchOf(a, b);
  const double half =
      StudentQuantile(1 - kAlphaOfRates / 2, welch.degrees) * welch.error;
  quantity.low = welch.difference - half;
  quantity.high = welch.difference + half;
  return quantity;
}

template <typename Key>
std::map<Key, Quantity> Quantities(
    const Runs& a, const Runs& b,
    absl::FunctionRef<Values<Key>(const Run&)> values_of) {
  std::map<Key, std::pair<std::vector<double>, std::vector<double>>> table;
  auto gather = [&](const Runs& runs, auto side) {
    for (size_t r = 0; r < runs.size(); ++r) {
      for (const auto& [key, value] : values_of(runs[r])) {
        auto& row = table[key];
        row.first.resize(a.size());
        row.second.resize(b.size());
        (row.*side)[r] = value;
      }
    }
  };
  using Row = std::pair<std::vector<double>, std::vector<double>>;
  gather(a, &Row::first);
  gather(b, &Row::second);
  std::map<Key, Quantity> result;
  for (const auto& [key, row] : table) {
    result[key] = QuantityOf(row.first, row.second);
  }
  return result;
}

template <typename Row>
void SortByDifference(std::vector<Row>* rows) {
  std::stable_sort(rows->begin(), rows->end(), [](const Row& one, const Row& other) {
    return std::abs(one.ms.b - one.ms.a) > std::abs(other.ms.b - other.ms.a);
  });
}

bool AllTraced(const Runs& a, const Runs& b) {
  auto traced = [](const Run& run) { return PerStep(run).traced(); };
  return std::all_of(a.begin(), a.end(), traced) &&
         std::all_of(b.begin(), b.end(), traced);
}

std::string FunctionKey(const v1::Site& site) {
  return absl::StrCat(PathTail(site.file()), "\n", site.function());
}

const v1::Hot* HotOf(const ProcessReplies& replies) {
  return replies.all.details().empty() ? nullptr : &replies.all.details(0).hot();
}

bool AllSampled(const Runs& runs) {
  return std::all_of(runs.begin(), runs.end(), [](const Run& run) {
    return std::any_of(run.replies.begin(), run.replies.end(),
                       [](const ProcessReplies& replies) {
                         const v1::Hot* hot = HotOf(replies);
                         return hot != nullptr && !hot->lines().empty();
                       });
  });
}

}  // namespace

std::vector<CauseChange> CompareCauses(const Runs& a, const Runs& b) {
  if (!AllTraced(a, b)) return {};
  std::vector<CauseChange> rows;
  for (const auto& [cause, ms] : Quantities<int>(a, b, [](const Run& run) {
         const PerStep per_step(run);
         Values<int> values;
         for (const ProcessReplies& replies : run.replies) {
           for (const v1::CauseRow& row : replies.all.gaps().causes()) {
             values[row.cause()] += per_step.Device(row.total_ns());
           }
         }
         return values;
       })) {
    rows.push_back({static_cast<v1::GapCause>(cause), ms});
  }
  SortByDifference(&rows);
  return rows;
}

std::vector<KernelChange> CompareKernels(const Runs& a, const Runs& b) {
  if (!AllTraced(a, b)) return {};
  auto values_by_name = [](bool of_time) {
    return [of_time](const Run& run) {
      const PerStep per_step(run);
      Values<std::string> values;
      for (const ProcessReplies& replies : run.replies) {
        for (const v1::KernelRow& row : replies.all.kernels().kernels()) {
          values[row.name()] += of_time ? per_step.Device(row.total_ns())
                                        : per_step.DeviceCount(row.calls());
        }
      }
      return values;
    };
  };
  auto times = Quantities<std::string>(a, b, values_by_name(true));
  auto calls = Quantities<std::string>(a, b, values_by_name(false));
  std::vector<KernelChange> rows;
  for (const auto& [name, ms] : times) rows.push_back({name, ms, calls[name]});
  SortByDifference(&rows);
  return rows;
}

std::vector<HostChange> CompareHost(const Runs& a, const Runs& b) {
  std::vector<HostChange> rows;
  for (const auto& [what, ms] : Quantities<std::string>(a, b, [](const Run& run) {
         const PerStep per_step(run);
         Values<std::string> values;
         for (const ProcessReplies& replies : run.replies) {
           const v1::ReportReply& all = replies.all;
           for (const v1::HostWait& wait : all.waits().host_waits()) {
             values[wait.kind()] += per_step.Host(wait.total_ns());
           }
           values["sync"] += per_step.Host(all.syncs().total_blocked_ns());
           values["gc"] += per_step.Host(all.gc().total_ns());
         }
         return values;
       })) {
    if (ms.a != 0 || ms.b != 0) rows.push_back({what, ms});
  }
  SortByDifference(&rows);
  return rows;
}

std::vector<FunctionChange> CompareFunctions(const Runs& a, const Runs& b) {
  if (!AllSampled(a) || !AllSampled(b)) return {};
  std::map<std::string, std::pair<v1::Site, uint64_t>> lines;  // of most time
  auto quantities = Quantities<std::string>(a, b, [&lines](const Run& run) {
    const PerStep per_step(run);
    Values<std::string> values;
    for (const ProcessReplies& replies : run.replies) {
      const v1::Hot* hot = HotOf(replies);
      if (hot == nullptr) continue;
      for (const v1::HotLine& line : hot->lines()) {
        if (line.role() != v1::HOST_SAMPLE_ROLE_MAIN || line.self_ns() == 0) continue;
        const std::string key = FunctionKey(line.site());
        values[key] += per_step.Host(line.self_ns());
        auto& most = lines[key];
        if (line.self_ns() > most.second) most = {line.site(), line.self_ns()};
      }
    }
    return values;
  });
  std::vector<FunctionChange> rows;
  for (const auto& [key, ms] : quantities) rows.push_back({lines[key].first, ms});
  SortByDifference(&rows);
  return rows;
}

std::vector<MemoryChange> CompareMemory(const Runs& a, const Runs& b) {
  auto most = [](int64_t (v1::MemoryRow::*bytes)() const) {
    return [bytes](const Run& run) {
      Values<std::string> values;
      for (const v1::MemoryRow& row : run.whole.memory().rows()) {
        double& value = values[row.allocator()];
        value = std::max(value, static_cast<double>((row.*bytes)()));
      }
      return values;
    };
  };
  auto peaks = Quantities<std::string>(a, b, most(&v1::MemoryRow::peak_bytes));
  auto reserved =
      Quantities<std::string>(a, b, most(&v1::MemoryRow::reserved_peak_bytes));
  std::vector<MemoryChange> rows;
  for (const auto& [allocator, peak] : peaks) {
    rows.push_back({allocator, peak, reserved[allocator]});
  }
  return rows;
}

}  // namespace lull::compare
