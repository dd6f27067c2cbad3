// Random programs of eight ranks on two hosts, of which groups share tensors and others
// gradients. What a late one costs is told by running the program once more without it.

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "daemon/ranks/by_ends.h"
#include "daemon/ranks/ranks.h"
#include "tests/trials.h"

namespace lull::ranks {
namespace {

constexpr size_t kDevices = 8;
constexpr int kSteps = 120;
constexpr uint64_t kUs = 1'000;
constexpr uint64_t kDeviceErrorNs = 5 * kUs;
constexpr uint64_t kHourNs = uint64_t{3'600'000'000'000};

struct Straggler {
  size_t rank = 0;
  uint32_t cause = 0;
  uint64_t late_ns = 0;
  size_t phase = 0;
  int period = 0;
  int times = 0;
};

// Times of each rank, by a clock that nobody has.
struct Traced {
  uint64_t start_ns = 0, end_ns = 0;
  size_t rank = 0;
  Stretch what;  // all but its times
};

struct Run {
  std::vector<Traced> waits, spent, steps;
  std::vector<uint64_t> waited_ns = std::vector<uint64_t>(kDevices);
};

class GroupsProgram {
 public:
  // `jitter`: of the work, at most.
  GroupsProgram(uint64_t seed, size_t stragglers, double jitter) : random_(seed) {
    tensor_ = Draw(0, 1) == 0 ? 2 : 4;
    const size_t tensors = Draw(1, 3), gradients = Draw(1, 2);
    phases_ = tensors + gradients;
    tensors_ = tensors;
    transfer_ns_ = Draw(20 * kUs, 500 * kUs);
    std::vector<uint64_t> work;
    for (size_t p = 0; p < phases_; ++p) {
      work.push_back(Draw(2'000 * kUs, 15'000 * kUs));
    }
    for (int i = 0; i < kSteps; ++i) {
      for (size_t p = 0; p < phases_; ++p) {
        const auto most = static_cast<uint64_t>(jitter * static_cast<double>(work[p]));
        for (size_t r = 0; r < kDevices; ++r) {
          work_ns_.push_back(work[p] + Draw(0, most));
        }
      }
    }
    for (size_t i = 0; i < stragglers; ++i) {
      stragglers_.push_back({Draw(0, kDevices - 1), static_cast<uint32_t>(100 + i),
                             Draw(10'000 * kUs, 80'000 * kUs), Draw(0, phases_ - 1),
                             static_cast<int>(Draw(5, 20))});
    }
    // What one of them did is over before the next one is late.
    acts_.resize(kSteps);
    for (int i = 2; i < kSteps - 1; ++i) {
      for (size_t s = 0; s < stragglers_.size() && !acts_[i] && !acts_[i - 1]; ++s) {
        if (i % stragglers_[s].period != stragglers_[s].period - 1) continue;
        acts_[i] = s;
        ++stragglers_[s].times;
      }
    }
  }

  const std::vector<Straggler>& stragglers() const { return stragglers_; }

  Run Simulate(std::optional<size_t> without) const {
    Run run;
    std::vector<uint64_t> now(kDevices, kHourNs);
    size_t work = 0;
    for (int i = 0; i < kSteps; ++i) {
      for (size_t r = 0; r < kDevices; ++r) {
        run.steps.push_back({now[r], now[r], r, {}});
      }
      for (size_t p = 0; p < phases_; ++p) {
        for (size_t r = 0; r < kDevices; ++r) {
          if (acts_[i] && acts_[i] != without) {
            const Straggler& late = stragglers_[*acts_[i]];
            if (late.rank == r && late.phase == p) {
              Spend(r, late.late_ns, late.cause, now, run);
            }
          }
          Spend(r, work_ns_[work++], static_cast<uint32_t>(1 + p), now, run);
        }
        Meet(i, p, now, run);
      }
    }
    return run;
  }

  // What others than the straggler wait for it.
  uint64_t CostOf(size_t straggler) const {
    const Run with = Simulate({}), without = Simulate(straggler);
    int64_t cost = 0;
    for (size_t r = 0; r < kDevices; ++r) {
      if (r == stragglers_[straggler].rank) continue;
      cost += static_cast<int64_t>(with.waited_ns[r]) -
              static_cast<int64_t>(without.waited_ns[r]);
    }
    return static_cast<uint64_t>(std::max<int64_t>(cost, 0));
  }

  // As it is recorded: by the clocks of two hosts, read now and then.
  std::vector<Rank> Record(std::vector<HostClock>& clocks) {
    const Run run = Simulate({});
    std::vector<int64_t> offsets;
    uint64_t last_ns = 0;
    for (const Traced& wait : run.waits) last_ns = std::max(last_ns, wait.end_ns);
    for (int host = 0; host < 2; ++host) {
      offsets.push_back(static_cast<int64_t>(Draw(0, kHourNs / 2)));
      std::vector<ClockBound> readings;
      for (uint64_t t = kHourNs; t < last_ns + 1'000'000 * kUs; t += 500'000 * kUs) {
        const auto below = static_cast<int64_t>(Draw(5 * kUs, 60 * kUs));
        const auto above = static_cast<int64_t>(Draw(5 * kUs, 60 * kUs));
        readings.push_back({t - static_cast<uint64_t>(offsets.back()),
                            offsets.back() - below, offsets.back() + above});
      }
      clocks.push_back(HostClock::From(readings).value());
    }
    std::vector<Rank> ranks = Told(run, [&](size_t rank, uint64_t time_ns,
                                            uint64_t error_ns) {
      const uint64_t host_ns = time_ns - static_cast<uint64_t>(offsets[HostOf(rank)]);
      return clocks[HostOf(rank)].ToCommon(host_ns - error_ns + Draw(0, 2 * error_ns));
    });
    for (size_t r = 0; r < kDevices; ++r) ranks[r].clock = &clocks[HostOf(r)];
    return ranks;
  }

  // On one host, where nobody tells which kernels are of one collective: all have one
  // name, and on each device tensors have one stream and gradients another.
  std::vector<Rank> RecordByEnds() {
    std::vector<Rank> ranks =
        Told(Simulate({}), [&](size_t, uint64_t time_ns, uint64_t error_ns) {
          return time_ns - error_ns + Draw(0, 2 * error_ns);
        });
    std::vector<std::vector<Ended>> kernels;
    for (const Rank& rank : ranks) {
      std::vector<Ended>& of_rank = kernels.emplace_back();
      for (const Stretch& wait : rank.waits) {
        of_rank.push_back({wait.start_ns, wait.end_ns, 1, wait.group > 10 ? 2U : 1U});
      }
    }
    const Together together = ByEnds(kernels, 20 * kUs);
    for (size_t r = 0; r < kDevices; ++r) {
      std::vector<Stretch> waits;
      for (size_t i = 0; i < kernels[r].size(); ++i) {
        const Identity& found = together.ranks[r][i];
        Stretch wait{ranks[r].waits[i].start_ns, ranks[r].waits[i].end_ns, 1};
        wait.collective = found.collective;
        wait.members = found.members;
        wait.group = found.group;
        if (found.collective != 0) {
          waits.push_back(wait);
        } else {
          wait.what = 0;
          ranks[r].spent.push_back(wait);
        }
      }
      ranks[r].waits = std::move(waits);
      ranks[r].times_error_ns = std::max(kDeviceErrorNs, (together.spread_ns + 1) / 2);
      std::stable_sort(
          ranks[r].spent.begin(), ranks[r].spent.end(),
          [](const Stretch& a, const Stretch& b) { return a.start_ns < b.start_ns; });
    }
    return ranks;
  }

 private:
  template <typename Clock>
  static std::vector<Rank> Told(const Run& run, Clock seen) {
    std::vector<Rank> ranks(kDevices);
    for (Rank& rank : ranks) rank.times_error_ns = kDeviceErrorNs;
    for (const Traced& step : run.steps) {
      ranks[step.rank].steps.push_back(seen(step.rank, step.start_ns, 0));
    }
    auto add = [&](const Traced& one, std::vector<Stretch>& to) {
      Stretch stretch = one.what;
      stretch.start_ns = seen(one.rank, one.start_ns, kDeviceErrorNs);
      stretch.end_ns = seen(one.rank, one.end_ns, kDeviceErrorNs);
      to.push_back(stretch);
    };
    for (const Traced& wait : run.waits) add(wait, ranks[wait.rank].waits);
    for (const Traced& spent : run.spent) add(spent, ranks[spent.rank].spent);
    return ranks;
  }

  static size_t HostOf(size_t rank) { return rank / (kDevices / 2); }

  uint64_t Draw(uint64_t low, uint64_t high) {
    return std::uniform_int_distribution<uint64_t>(low, high)(random_);
  }

  static void Spend(size_t rank, uint64_t ns, uint32_t what, std::vector<uint64_t>& now,
                    Run& run) {
    // Between kernels the device is idle for a little.
    run.spent.push_back(
        {now[rank] + 20 * kUs, now[rank] + ns - 20 * kUs, rank, {0, 0, what}});
    now[rank] += ns;
  }

  void Meet(int step, size_t phase, std::vector<uint64_t>& now, Run& run) const {
    const bool tensors = phase < tensors_;
    std::map<uint32_t, std::vector<size_t>> groups;
    for (size_t r = 0; r < kDevices; ++r) {
      const size_t group = tensors ? r / tensor_ : 10 + r % tensor_;
      groups[static_cast<uint32_t>(1 + group)].push_back(r);
    }
    for (const auto& [group, members] : groups) {
      uint64_t all_ns = 0;
      for (const size_t r : members) all_ns = std::max(all_ns, now[r]);
      for (const size_t r : members) {
        // All of a group that share tensors are alike; buckets of gradients differ.
        Stretch what{0, 0,
                     1000 + 10 * group + (tensors ? 0 : static_cast<uint32_t>(phase))};
        what.collective =
            (uint64_t{group} << 32) + static_cast<uint64_t>(step) * phases_ + phase;
        what.members = static_cast<uint32_t>(members.size());
        what.group = group;
        run.waits.push_back({now[r], all_ns + transfer_ns_, r, what});
        run.waited_ns[r] += all_ns - now[r];
        now[r] = all_ns + transfer_ns_;
      }
    }
  }

  std::mt19937_64 random_;
  size_t tensor_ = 0;  // ranks that share tensors
  size_t tensors_ = 0, phases_ = 0;
  uint64_t transfer_ns_ = 0;
  std::vector<uint64_t> work_ns_;  // by step, phase and rank
  std::vector<Straggler> stragglers_;
  std::vector<std::optional<size_t>> acts_;  // by step
};

constexpr uint64_t kPrograms = Trials<uint64_t>(1000, 30);
constexpr uint64_t kByEnds = Trials<uint64_t>(400, 20);

TEST(RandomGroups, NamesEachLateRankItsCauseAndItsCost) {
  uint64_t planted = 0, named = 0, right = 0, all_ns = 0, invented_ns = 0;
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    GroupsProgram program(seed, 1 + seed % 3, 0.02);
    std::vector<HostClock> clocks;
    const Story story = WhoWaitedForWhom(program.Record(clocks));
    EXPECT_EQ(story.unmatched_ns, 0u);
    std::map<std::pair<size_t, uint32_t>, uint64_t> told;
    for (size_t r = 0; r < kDevices; ++r) {
      for (const Cause& cause : story.ranks[r].causes) {
        told[{r, cause.recorded ? cause.what : 0}] += cause.cost_ns;
      }
    }
    for (size_t i = 0; i < program.stragglers().size(); ++i) {
      const Straggler& late = program.stragglers()[i];
      const auto one = told.find({late.rank, late.cause});
      const uint64_t told_ns = one == told.end() ? 0 : one->second;
      if (one != told.end()) told.erase(one);
      if (late.times < 3) continue;
      const uint64_t cost_ns = program.CostOf(i);
      ++planted;
      named += told_ns > 0 ? 1 : 0;
      const uint64_t apart = told_ns > cost_ns ? told_ns - cost_ns : cost_ns - told_ns;
      right += apart <= cost_ns / 50 ? 1 : 0;
      all_ns += cost_ns;
    }
    for (const auto& [key, cost_ns] : told) invented_ns += cost_ns;
  }
  std::cout << named << " of " << planted << " named, " << right
            << " with their cost within 2 %; "
            << 100.0 * static_cast<double>(invented_ns) / static_cast<double>(all_ns)
            << " % invented\n";
  if (kSanitized) return;
  EXPECT_GE(planted, 1500u);
  EXPECT_GE(100 * named, 99 * planted);
  EXPECT_GE(100 * right, 99 * planted);
  EXPECT_LE(invented_ns, all_ns / 1000);
}

TEST(RandomGroups, NamesNobodyWhereNobodyIsLate) {
  uint64_t accused = 0;
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    GroupsProgram program(seed, 0, seed % 2 == 0 ? 0.02 : 0.15);
    std::vector<HostClock> clocks;
    const Story story = WhoWaitedForWhom(program.Record(clocks));
    accused += std::any_of(story.ranks.begin(), story.ranks.end(),
                           [](const RankStory& rank) { return !rank.causes.empty(); })
                   ? 1
                   : 0;
  }
  std::cout << accused << " of " << kPrograms << " programs accuse somebody\n";
  EXPECT_LE(accused, 10u);
}

// By their ends alone less is known, and nobody else may be accused for that.
TEST(RandomGroups, ByTheirEndsNameNobodyWhoIsNotLate) {
  uint64_t planted = 0, named = 0, told_ns = 0, invented_ns = 0, accused = 0;
  for (uint64_t seed = 0; seed < kByEnds; ++seed) {
    GroupsProgram program(seed, seed % 2 == 0 ? 0 : 1 + seed % 3, 0.02);
    const Story story = WhoWaitedForWhom(program.RecordByEnds());
    for (size_t r = 0; r < kDevices; ++r) {
      for (const Cause& cause : story.ranks[r].causes) {
        const bool is_planted = std::any_of(
            program.stragglers().begin(), program.stragglers().end(),
            [&](const Straggler& late) {
              return late.rank == r && late.cause == (cause.recorded ? cause.what : 0);
            });
        told_ns += cause.cost_ns;
        if (is_planted) {
          ++named;
        } else {
          invented_ns += cause.cost_ns;
          ++accused;
        }
      }
    }
    for (const Straggler& late : program.stragglers()) planted += late.times >= 3;
  }
  std::cout << named << " of " << planted << " named by ends, " << accused
            << " others accused, of "
            << 100.0 * static_cast<double>(invented_ns) / static_cast<double>(told_ns)
            << " % of the cost\n";
  if (kSanitized) return;
  EXPECT_GE(planted, 300u);
  EXPECT_GE(10 * named, 9 * planted);
  EXPECT_LE(accused, 4u);
  EXPECT_LE(invented_ns, told_ns / 100);
}

}  // namespace
}  // namespace lull::ranks
