// What `lull top` shows, and what keys do to it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/top/details.h"
#include "cli/top/feed.h"
#include "cli/top/state.h"
#include "cli/top/tables.h"
#include "cli/top/view.h"
#include "tests/cli/fixed_replies.h"
#include "tests/cli/golden.h"

namespace lull::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr size_t kRows = 24;
constexpr uint64_t kMs = 1'000'000;

// A job of two ranks with its details, as a collector answers TopRequest.
v1::ReportReply Live() {
  v1::ReportReply reply = FixedGpuReport();
  reply.mutable_job()->set_ended(false);
  *reply.add_details() = FixedHot();
  v1::Timeline& timeline = *reply.add_details()->mutable_timeline();
  timeline.set_end_ns(64 * kMs);
  timeline.set_bin_ns(4 * kMs);
  for (const v1::ProcessRow& row : reply.processes()) {
    v1::TimelineBand& band = *timeline.add_bands();
    band.set_pid(row.pid());
    v1::StepBand& steps = *timeline.add_steps();
    steps.set_pid(row.pid());
    steps.set_count(3);
    for (uint64_t i = 0; i < 3; ++i) {
      steps.add_duration_ns((100 + 10 * i + static_cast<uint64_t>(row.rank())) * kMs);
    }
    for (uint64_t i = 0; i < 16; ++i) {
      band.add_traced_ns(i == 3 ? 0 : 4 * kMs);
      band.add_busy_ns(i == 3 ? 0 : i * 4 * kMs / 15);
    }
  }
  return reply;
}

std::string Text(const std::vector<TopLine>& screen) {
  std::string text;
  for (const TopLine& line : screen) absl::StrAppend(&text, line.text, "\n");
  return text;
}

std::string Shown(const v1::ReportReply& reply, const TopState& state = {}) {
  return Text(TopScreen(reply, state, kRows, 80, 0));
}

TEST(Top, ShowsRanksAndIdleTimeByLine) { ExpectGolden("top", Shown(Live())); }

TEST(Top, ShowsWhatIsChosen) {
  TopState state;
  for (char key : std::string("2345")) {
    Press(key, &state);
    EXPECT_THAT(Shown(Live(), state),
                HasSubstr(absl::StrCat("[", std::string(1, key))));
  }
  Press('2', &state);
  EXPECT_THAT(Shown(Live(), state), HasSubstr("wasted"));
  Press('\t', &state);
  EXPECT_EQ(state.table, TopTable::kHost);
  Press('5', &state);
  Press('\t', &state);
  EXPECT_EQ(state.table, TopTable::kGaps);
}

// The line is what the reader came for.
TEST(Top, LinesOfLongPathsHaveRoomIn80Columns) {
  v1::ReportReply reply = Live();
  v1::Site site;
  site.set_file("/home/ada/projects/vision/experiments/resnet50/train.py");
  site.set_line(1234);
  site.set_function("Trainer.training_step_with_a_long_name");
  *reply.mutable_syncs()->mutable_sync_points(0)->mutable_site() = site;
  *reply.mutable_kernels()->mutable_kernels(1)->mutable_site() = site;
  v1::GapRow& gap = *reply.mutable_gaps()->mutable_gaps(1);
  *gap.mutable_culprit() = site;
  ASSERT_FALSE(gap.culprit_api().empty());
  TopState state;
  for (char key : std::string("125")) {
    SCOPED_TRACE(key);
    Press(key, &state);
    bool seen = false;
    for (const TopLine& line : TopScreen(reply, state, kRows, 80, 0)) {
      seen |=
          line.text.substr(0, 80).find("resnet50/train.py:1234") != std::string::npos;
    }
    EXPECT_TRUE(seen) << Shown(reply, state);
  }
  EXPECT_THAT(Shown(reply, state),
              HasSubstr("  vectorized_elementwise_kernel<4, CUDA"));
}

TEST(Top, TheNewestOfBusyOverTimeAndMemoryAreIn80Columns) {
  v1::ReportReply reply = Live();
  constexpr uint32_t kPid = 1'234'567;  // hosts with many processors have such
  v1::ProcessRow& process = *reply.mutable_processes(0);
  v1::Timeline& timeline =
      *reply.mutable_details(reply.details_size() - 1)->mutable_timeline();
  ASSERT_EQ(timeline.bands(0).pid(), process.pid());
  process.set_pid(kPid);
  process.set_rank(-1);
  timeline.mutable_bands(0)->set_pid(kPid);
  timeline.mutable_steps(0)->set_pid(kPid);
  v1::MemoryRow& row = *reply.mutable_memory()->add_rows();
  row.set_pid(kPid);
  row.set_allocator("torch_cuda");
  row.set_live_bytes(int64_t{65} << 20);
  row.set_peak_bytes(int64_t{66} << 20);
  const std::vector<std::string> lines = RanksTable(reply, TopOrder::kSlowestStep);
  const std::string shown = lines[1].find("pid ") != std::string::npos
                                ? lines[1].substr(0, 80)
                                : lines[2].substr(0, 80);
  EXPECT_THAT(shown, HasSubstr("pid 1234567"));
  EXPECT_THAT(shown, HasSubstr("#  65.0 MiB"));
  // The peak is there whole, or not at all.
  EXPECT_THAT(lines[0], HasSubstr("peak"));
  for (const std::string& line : RanksTable(reply, TopOrder::kSlowestStep, 80)) {
    EXPECT_LE(line.size(), 80) << line;
    EXPECT_THAT(line, Not(HasSubstr("peak")));
    EXPECT_THAT(line, Not(HasSubstr("66")));
  }
}

TEST(Top, WithoutGpuTruthSaysWhy) {
  v1::ReportReply reply = FixedReport();
  EXPECT_THAT(Shown(reply), HasSubstr("No GPU truth"));
  // An older collector has sent no details.
  EXPECT_THAT(Shown(reply), Not(HasSubstr("#")));
}

TEST(Top, SortsRanks) {
  v1::ReportReply reply = Live();
  auto first = [&](TopOrder order) { return RanksTable(reply, order)[1]; };
  EXPECT_THAT(first(TopOrder::kRank), HasSubstr("110 ms"));
  EXPECT_THAT(first(TopOrder::kSlowestStep), HasSubstr("111 ms"));
  reply.mutable_processes(1)->set_traced_ns(100);
  reply.mutable_processes(1)->set_busy_ns(1);
  EXPECT_THAT(first(TopOrder::kLeastBusy), HasSubstr("1.00 %"));
  // What is not known comes last.
  reply.mutable_processes(1)->set_traced_ns(0);
  EXPECT_THAT(first(TopOrder::kLeastBusy), HasSubstr("110 ms"));
}

// The memory of a rank is that of one allocator: blocks of one lie in those of another.
TEST(Top, MemoryIsThatOfTheAllocatorThatSaysMost) {
  v1::ReportReply reply = Live();
  v1::Memory& memory = *reply.mutable_memory();
  memory.Clear();
  auto add = [&](int process, const char* allocator, int64_t live_mib,
                 int64_t peak_mib) {
    v1::MemoryRow& row = *memory.add_rows();
    row.set_pid(reply.processes(process).pid());
    row.set_allocator(allocator);
    row.set_live_bytes(live_mib << 20);
    row.set_peak_bytes(peak_mib << 20);
  };
  auto lines = [&] { return RanksTable(reply, TopOrder::kRank); };
  EXPECT_THAT(lines()[1], Not(HasSubstr("iB")));  // of nobody anything is known
  // The least telling first, so that each takes the place of the one before.
  add(0, "pinned", 1, 1);
  EXPECT_THAT(lines()[1], Not(HasSubstr("iB")));
  add(0, "torch_cpu", 2, 3);
  EXPECT_THAT(lines()[1], HasSubstr("2.00 MiB  3.00 MiB"));
  add(0, "torch_other", 4, 5);
  EXPECT_THAT(lines()[1], HasSubstr("4.00 MiB  5.00 MiB"));
  add(0, "cuda", 6, 7);
  EXPECT_THAT(lines()[1], HasSubstr("6.00 MiB  7.00 MiB"));
  add(0, "torch_cuda", 0, 8);  // nothing is in use now: that is known, too
  EXPECT_THAT(lines()[1], HasSubstr("0 B  8.00 MiB"));
  add(0, "torch_cuda", 9, 9);  // of a second device
  EXPECT_THAT(lines()[1], HasSubstr("9.00 MiB  17.0 MiB"));
  // Another rank has its own.
  EXPECT_THAT(lines()[2], Not(HasSubstr("iB")));
  add(1, "cuda", 30, 40);
  EXPECT_THAT(lines()[2], HasSubstr("30.0 MiB  40.0 MiB"));
  EXPECT_THAT(RanksTable(reply, TopOrder::kMostMemory)[1], HasSubstr("30.0 MiB"));
}

TEST(Top, SaysWhereStepsAreThinned) {
  v1::ReportReply reply = Live();
  reply.mutable_details(kTopTimeline)
      ->mutable_timeline()
      ->mutable_steps(0)
      ->set_count(9);
  EXPECT_THAT(RanksTable(reply, TopOrder::kRank)[1], HasSubstr("~110 ms"));
}

TEST(Top, HasRoomOnAnyScreen) {
  v1::ReportReply reply = Live();
  const v1::ProcessRow one = reply.processes(0);
  for (int i = 0; i < 300; ++i) *reply.add_processes() = one;
  for (TopTable table : {TopTable::kGaps, TopTable::kSyncs, TopTable::kHost}) {
    for (size_t rows = 0; rows < 60; ++rows) {
      TopState state;
      state.table = table;
      state.first_row = rows * rows;
      const auto screen = TopScreen(reply, state, rows, 80, 0);
      ASSERT_EQ(screen.size(), rows) << "the keys are on the last line";
      state.help = true;
      ASSERT_LE(TopScreen(reply, state, rows, 80, 0).size(), rows);
    }
  }
  EXPECT_THAT(Shown(reply), HasSubstr(" more"));
  EXPECT_EQ(TopScreen({}, {}, kRows, 80, 0).size(), kRows) << "an empty answer";
}

TEST(Top, WarnsOfWhatIsOldLostOrAsleep) {
  v1::ReportReply reply = Live();
  TopState state;
  EXPECT_THAT(Text(TopScreen(reply, state, kRows, 80, 30'000 * kMs)),
              HasSubstr("30.0 s old"));
  state.message = "no answer";
  EXPECT_THAT(Shown(reply, state), HasSubstr("no answer"));
  state.message.clear();
  reply.mutable_job()->set_since_step_ns(725'000 * kMs);
  reply.mutable_job()->set_step_ns(100 * kMs);
  EXPECT_THAT(
      Shown(reply, state),
      HasSubstr(
          "No step has ended for 12 min 05 s. Where its threads are: lull stacks"));
  reply.mutable_job()->clear_since_step_ns();
  reply.mutable_losses()->set_events_lost(7);
  EXPECT_EQ(TopScreen(reply, state, 10, 80, 0)[2].style, TopStyle::kWarning);
  reply.mutable_job()->set_asleep(true);
  EXPECT_THAT(Shown(reply, state), HasSubstr("a wakes it up"));
}

TEST(Top, NamesOfTheJobSteerNoTerminal) {
  v1::ReportReply reply = Live();
  const std::string evil = "\x1b[2J\x07\n\xff evil";
  reply.mutable_job()->set_name(evil);
  reply.mutable_job()->set_command(evil);
  reply.mutable_gpu()->set_missing(evil);
  for (auto& row : *reply.mutable_gaps()->mutable_gaps()) {
    row.mutable_culprit()->set_file(evil);
    row.set_culprit_api(evil);
  }
  for (auto& row : *reply.mutable_syncs()->mutable_sync_points()) row.set_api(evil);
  for (auto& row : *reply.mutable_kernels()->mutable_kernels()) row.set_name(evil);
  for (auto& row : *reply.mutable_advice()->mutable_findings()) row.set_finding(evil);
  for (int table = 0; table < kTopTables; ++table) {
    TopState state;
    state.table = static_cast<TopTable>(table);
    for (const TopLine& line : TopScreen(reply, state, kRows, 80, 0)) {
      for (char c : line.text) {
        ASSERT_GE(static_cast<unsigned char>(c), 0x20) << line.text;
      }
    }
  }
}

TEST(Top, KeysChangeWhatIsAskedFor) {
  TopState state;
  EXPECT_EQ(Press('q', &state), TopCommand::kQuit);
  EXPECT_EQ(Press('a', &state), TopCommand::kArm);
  EXPECT_EQ(Press('d', &state), TopCommand::kDisarm);
  EXPECT_EQ(Press('+', &state), TopCommand::kAsk);
  EXPECT_EQ(state.last_ns, 300'000 * kMs);
  for (int i = 0; i < 9; ++i) Press('+', &state);
  EXPECT_EQ(SpanText(state.last_ns), "whole job");
  for (int i = 0; i < 9; ++i) Press('-', &state);
  EXPECT_EQ(SpanText(state.last_ns), "last 10.0 s");
  state.last_ns = 7;  // as the command line said
  Press('-', &state);
  EXPECT_EQ(SpanText(state.last_ns), "last 60.0 s");
  EXPECT_EQ(Press('p', &state), TopCommand::kNone);
  EXPECT_TRUE(state.paused);
  EXPECT_EQ(Press(' ', &state), TopCommand::kAsk);
  EXPECT_FALSE(state.paused);
  Press('?', &state);
  EXPECT_TRUE(state.help);
  EXPECT_EQ(Press('a', &state), TopCommand::kNone) << "any key only leaves the help";
  EXPECT_FALSE(state.help);
  for (int key = -2; key < 1000; ++key) Press(key, &state);
}

TEST(TopFeed, TheFirstErrorIsToldAtOnce) {
  TopFeed feed([](uint64_t) { return absl::NotFoundError("no such job"); },
               absl::Seconds(1));
  EXPECT_EQ(feed.Start(0).message(), "no such job");
}

// Waits until `condition` holds; false: it never did.
template <typename Condition>
bool Eventually(Condition condition) {
  for (int i = 0; i < 3000; ++i) {
    if (condition()) return true;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return false;
}

TEST(TopFeed, AsksAgainAndTellsErrorsBesideWhatItHas) {
  std::atomic<int> asked{0};
  std::atomic<uint64_t> span{0};
  TopFeed feed(
      [&](uint64_t last_ns) -> absl::StatusOr<v1::ReportReply> {
        span = last_ns;
        if (++asked > 2) return absl::UnavailableError("it is gone");
        return FixedGpuReport();
      },
      absl::Milliseconds(5));
  ASSERT_TRUE(feed.Start(5).ok());
  const v1::ReportReply ended = FixedGpuReport();
  ASSERT_TRUE(ended.job().ended());
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(asked, 1) << "what is over is not asked for again";
  feed.SetSpan(77, false);
  EXPECT_TRUE(Eventually([&] { return asked == 2 && span == 77; }));
  feed.SetSpan(78, false);
  EXPECT_TRUE(Eventually([&] { return feed.Latest().message == "it is gone"; }));
  EXPECT_EQ(feed.Latest().reply->job().id(), kJobId);
}

TEST(TopFeed, APausedOneAsksNothingAndObeysCommands) {
  std::atomic<int> asked{0};
  TopFeed feed(
      [&](uint64_t) -> absl::StatusOr<v1::ReportReply> {
        ++asked;
        return Live();
      },
      absl::Milliseconds(2));
  ASSERT_TRUE(feed.Start(0).ok());
  EXPECT_TRUE(Eventually([&] { return asked > 5; }));
  feed.SetSpan(0, true);
  feed.Do([] { return std::string("armed"); });
  EXPECT_TRUE(Eventually([&] { return feed.Latest().message == "armed"; }));
  const int before = asked;
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(asked, before);
}

}  // namespace
}  // namespace lull::testing
