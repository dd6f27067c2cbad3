// Which numbers of a run become which series, and how many there may be.
#include "daemon/metrics/series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"

namespace lull::metrics {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

query::RankTotals Rank(int32_t number) {
  query::RankTotals rank;
  rank.rank = number;
  v1::Gpu* gpu = rank.reply.mutable_gpu();
  gpu->set_traced_ns(10'000'000'000);
  gpu->set_busy_ns(7'000'000'000);
  gpu->set_kernel_ns(6'000'000'000);
  gpu->set_kernels(42);
  gpu->set_cupti_dropped(3);
  auto* sync = rank.reply.mutable_gaps()->add_causes();
  sync->set_cause(v1::GAP_CAUSE_SYNC);
  sync->set_total_ns(2'000'000'000);
  auto* data = rank.reply.mutable_gaps()->add_causes();
  data->set_cause(v1::GAP_CAUSE_DATA_WAIT);
  data->set_total_ns(1'000'000'000);
  for (int i = 0; i < 2; ++i) {  // two processes of one rank
    auto* process = rank.reply.add_processes();
    process->set_duration_ns(20'000'000'000);
    process->set_blocked_ns(500'000'000);
    process->set_gc_ns(250'000'000);
    auto* row = rank.reply.mutable_memory()->add_rows();
    row->set_allocator("torch_cuda");
    row->set_device(1);
    row->set_live_bytes(100);
    row->set_peak_bytes(150);
    row->set_reserved_known(i == 0);
    row->set_reserved_bytes(i == 0 ? 400 : 0);
  }
  rank.reply.mutable_processes(1)->set_recorded_ns(5'000'000'000);
  rank.reply.mutable_processes(1)->set_rested_ns(4'000'000'000);
  for (int i = 0; i < 2; ++i) {  // of one host
    v1::HostUse& use = *rank.reply.mutable_processes(i)->mutable_host_use();
    rank.reply.mutable_processes(i)->set_pid(static_cast<uint32_t>(10 + i));
    use.set_process_start(77);
    use.set_user_ns(1'500'000'000);
    use.set_resident_bytes(1000);
    use.set_read_bytes(i == 0 ? 4096 : 0);
    use.set_received_bytes(i == 0 ? 70 : 80);
    use.set_memory_full_ns(i == 0 ? 250'000'000 : 500'000'000);
  }
  auto* host = rank.reply.mutable_memory()->add_rows();
  host->set_allocator("torch_cpu");
  host->set_device(-1);
  host->set_live_bytes(7);
  host->mutable_growth()->set_bytes_per_step(12.4);
  auto* device = rank.reply.add_devices();
  device->set_device(1);
  device->set_total_bytes(80'000'000'000);
  rank.reply.set_launches(9);
  rank.reply.mutable_overhead()->set_self_ns(10'000'000);
  rank.reply.mutable_overhead()->set_percent(0.25);
  rank.waits[aggregate::WaitKind::kComm].Add(4'000'000'000, 0, 0);
  rank.steps = {.count = 11, .timed = true, .total_ns = 5'500'000'000};
  return rank;
}

// execve() leaves a process what it is; its storage has that of children that ended.
TEST(Series, CountWhatAProcessUsedOnce) {
  query::RankTotals rank;
  auto add = [&rank](uint32_t pid, uint32_t parent, uint64_t start, uint64_t user_ns,
                     uint64_t written, uint64_t resident) {
    v1::ProcessRow& row = *rank.reply.add_processes();
    row.set_pid(pid);
    row.set_parent_pid(parent);
    v1::HostUse& use = *row.mutable_host_use();
    use.set_process_start(start);
    use.set_user_ns(user_ns * 1'000'000'000);
    use.set_written_bytes(written);
    use.set_resident_bytes(resident);
  };
  add(10, 1, 7, 3, 100, 0);    // what it was before
  add(10, 1, 7, 4, 160, 500);  // with the 50 of the next
  add(11, 10, 8, 2, 50, 0);    // a child that ended
  add(12, 10, 9, 1, 20, 40);   // and one that goes on: its parent will have it
  add(10, 1, 99, 8, 1000, 1);  // another one that got the number
  std::map<std::string, int64_t> told;
  for (const Sample& sample : SeriesOfRank("run", rank)) {
    if (sample.metric == Metric::kCpu) told["cpu"] += sample.value;
    if (sample.metric == Metric::kStorage) told["written"] += sample.value;
    if (sample.metric == Metric::kResident) told["resident"] += sample.value;
  }
  EXPECT_EQ(told["cpu"], (4 + 2 + 1 + 8) * 1'000'000'000LL);
  EXPECT_EQ(told["written"], 160 + 1000);
  EXPECT_EQ(told["resident"], 500 + 40 + 1);
}

query::RunTotals RunOf(size_t ranks) {
  query::RunTotals run;
  run.job.set_id("00000000000000000000000000000001");
  run.job.set_name("a \"name\"\n");
  run.job.set_host("node1");
  run.job.set_duration_ns(20'000'000'000);
  run.job.set_processes(9);
  run.job.set_working_processes(8);
  run.losses.set_events_committed(100);
  run.losses.set_events_stored(95);
  run.losses.set_lost_relay(5);
  run.losses.set_corrupt_segments(1);
  run.overhead.set_budget_percent(1);
  for (size_t i = 0; i < ranks; ++i) {
    run.ranks.push_back(Rank(static_cast<int32_t>(i)));
  }
  return run;
}

std::string TextOf(const query::RunTotals& run, const Bounds& bounds = Bounds()) {
  Exposition exposition;
  AddRun(run, bounds, &exposition);
  return exposition.Text();
}

TEST(Series, AreWhatTheEngineSaysOfARank) {
  const std::string text = TextOf(RunOf(1));
  const std::string of = "{run=\"00000000000000000000000000000001\",rank=\"0\"";
  for (const std::string& line :
       {"lull_gpu_traced_seconds_total" + of + "} 10\n",
        "lull_gpu_busy_seconds_total" + of + "} 7\n",
        "lull_gpu_kernel_seconds_total" + of + "} 6\n",
        "lull_gpu_idle_seconds_total" + of + ",cause=\"sync\"} 2\n",
        "lull_gpu_idle_seconds_total" + of + ",cause=\"data\"} 1\n",
        "lull_gpu_idle_seconds_total" + of + ",cause=\"gc\"} 0\n",
        "lull_gpu_operations_total" + of + ",kind=\"kernel\"} 42\n",
        "lull_gpu_records_lost_total" + of + ",place=\"cupti\"} 3\n",
        "lull_process_seconds_total" + of + "} 25\n",
        "lull_process_rested_seconds_total" + of + "} 4\n",
        "lull_process_cpu_seconds_total" + of + ",mode=\"user\"} 3\n",
        "lull_process_resident_bytes" + of + "} 2000\n",
        "lull_process_storage_bytes_total" + of + ",direction=\"read\"} 4096\n",
        "lull_network_bytes_total" + of + ",direction=\"received\"} 80\n",
        "lull_pressure_seconds_total" + of +
            ",resource=\"memory\",kind=\"full\"} 0.5\n",
        "lull_sync_blocked_seconds_total" + of + "} 1\n",
        "lull_gc_pause_seconds_total" + of + "} 0.5\n",
        "lull_wait_seconds_total" + of + ",kind=\"comm\"} 4\n",
        "lull_waits_total" + of + ",kind=\"comm\"} 1\n",
        "lull_wait_seconds_total" + of + ",kind=\"data\"} 0\n",
        "lull_overhead_seconds_total" + of + "} 0.01\n",
        "lull_overhead_ratio" + of + "} 0.0025\n",
        "lull_launches_total" + of + "} 9\n",
        "lull_steps_total" + of + "} 11\n",
        "lull_step_duration_seconds_sum" + of + "} 5.5\n",
        "lull_step_duration_seconds_count" + of + "} 11\n",
        "lull_memory_live_bytes" + of + ",allocator=\"torch_cuda\",device=\"1\"} 200\n",
        "lull_memory_peak_bytes" + of + ",allocator=\"torch_cuda\",device=\"1\"} 300\n",
        "lull_memory_reserved_bytes" + of +
            ",allocator=\"torch_cuda\",device=\"1\"} 400\n",
        "lull_memory_live_bytes" + of + ",allocator=\"torch_cpu\",device=\"none\"} 7\n",
        "lull_memory_growth_bytes" + of +
            ",allocator=\"torch_cpu\",device=\"none\"} 12\n",
        "lull_gpu_memory_size_bytes" + of + ",device=\"1\"} 80000000000\n"}) {
    EXPECT_THAT(text, HasSubstr("\n" + line));
  }
  for (const char* not_told : {"mode=\"system\"", "direction=\"written\"",
                               "resource=\"cpu\"", "lull_process_major_faults"}) {
    EXPECT_THAT(text, Not(HasSubstr(not_told)));
  }
  EXPECT_THAT(text, Not(HasSubstr("lull_memory_reserved_bytes" + of +
                                  ",allocator=\"torch_cpu\"")));
  EXPECT_THAT(text, Not(HasSubstr("lull_memory_growth_bytes" + of +
                                  ",allocator=\"torch_cuda\"")));
}

TEST(Series, AreWhatTheEngineSaysOfARun) {
  query::RunTotals run = RunOf(0);
  std::string text = TextOf(run);
  const std::string of = "{run=\"00000000000000000000000000000001\"";
  for (const std::string& line :
       {"lull_run_info" + of + ",name=\"a \\\"name\\\"\\n\",host=\"node1\"} 1\n",
        "lull_run_running" + of + "} 1\n", "lull_run_duration_seconds" + of + "} 20\n",
        "lull_events_committed_total" + of + "} 100\n",
        "lull_events_stored_total" + of + "} 95\n",
        "lull_events_lost_total" + of + ",place=\"relay\"} 5\n",
        "lull_events_lost_total" + of + ",place=\"ring_full\"} 0\n",
        "lull_run_incomplete" + of + ",what=\"corrupt_segments\"} 1\n",
        "lull_run_incomplete" + of + ",what=\"end_unseen\"} 0\n",
        "lull_processes" + of + "} 9\n", "lull_working_processes" + of + "} 8\n",
        "lull_overhead_budget_ratio" + of + "} 0.01\n"}) {
    EXPECT_THAT(text, HasSubstr("\n" + line));
  }
  for (const char* later : {"lull_run_exit_status", "lull_relay_cpu_seconds_total"}) {
    EXPECT_THAT(text, Not(HasSubstr(later)));
  }
  run.job.set_ended(true);
  run.job.set_exit_status_known(true);
  run.job.set_exit_status(137);
  run.overhead.set_relay_cpu_ns(3'000'000);
  text = TextOf(run);
  EXPECT_THAT(text, HasSubstr("\nlull_run_running" + of + "} 0\n"));
  EXPECT_THAT(text, HasSubstr("\nlull_run_exit_status" + of + "} 137\n"));
  EXPECT_THAT(text, HasSubstr("\nlull_relay_cpu_seconds_total" + of + "} 0.003\n"));
  run.job.set_ended(false);
  run.job.set_end_unseen(true);
  EXPECT_THAT(TextOf(run), HasSubstr("\nlull_run_running" + of + "} 0\n"));
}

TEST(Series, OfARankWithoutGpuTruthSayNothingOfItsGpu) {
  query::RunTotals run = RunOf(0);
  query::RankTotals& rank = run.ranks.emplace_back();
  EXPECT_EQ(rank.rank, -1);
  const std::string text = TextOf(run);
  EXPECT_THAT(text, Not(HasSubstr("lull_gpu_")));
  EXPECT_THAT(text, Not(HasSubstr("lull_step")));
  EXPECT_THAT(text, HasSubstr("rank=\"none\""));
  rank.steps = {.count = 4};  // found by their period: nobody knows how long they took
  EXPECT_THAT(TextOf(run), HasSubstr("lull_steps_total"));
  EXPECT_THAT(TextOf(run), Not(HasSubstr("lull_step_duration_seconds")));
}

TEST(Series, NeverComeTwice) {
  Exposition exposition;
  query::RunTotals run = RunOf(3);
  AddRun(run, Bounds(), &exposition);
  run.job.set_id("00000000000000000000000000000002");
  AddRun(run, Bounds(), &exposition);
  // A relay may say anything for "no device".
  run.job.set_id("00000000000000000000000000000003");
  auto* memory = run.ranks[0].reply.mutable_memory();
  *memory->add_rows() = memory->rows(2);
  memory->mutable_rows(3)->set_device(-7);
  AddRun(run, Bounds(), &exposition);
  EXPECT_THAT(
      exposition.Text(),
      HasSubstr("3\",rank=\"0\",allocator=\"torch_cpu\",device=\"none\"} 14\n"));
  std::set<std::string> seen;
  size_t series = 0;
  const std::string text = exposition.Text();
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  for (const std::string& line : lines) {
    const std::string name = line.substr(0, line.rfind(' '));
    EXPECT_TRUE(seen.insert(name).second) << name;
    if (line[0] != '#') ++series;
  }
  EXPECT_EQ(series, exposition.series());
}

TEST(Bounds, LeaveOutWholeRanksAndCountThem) {
  const size_t of_rank = SeriesOfRank("1", Rank(0)).size();
  const size_t of_run = SeriesOfRun(RunOf(0)).size();
  Bounds bounds;
  bounds.series = of_run + 2 * of_rank;
  Exposition exposition;
  query::RunTotals run = RunOf(5);
  run.ranks_left_out = 10;  // that nobody read
  EXPECT_EQ(AddRun(run, bounds, &exposition), 13u);
  EXPECT_EQ(exposition.series(), bounds.series);
  const std::string text = exposition.Text();
  EXPECT_THAT(text, HasSubstr("rank=\"1\""));
  EXPECT_THAT(text, Not(HasSubstr("rank=\"2\"")));
  // The next run finds no room at all, a rank of it neither.
  run.job.set_id("00000000000000000000000000000002");
  EXPECT_EQ(AddRun(run, bounds, &exposition), 15u);
  EXPECT_EQ(exposition.series(), bounds.series);
}

TEST(Bounds, LeaveOutARankThatIsTooLargeAndNoOther) {
  query::RunTotals run = RunOf(3);
  Bounds bounds;
  for (int32_t device = 0; device < 1000; ++device) {
    auto* row = run.ranks[1].reply.mutable_memory()->add_rows();
    row->set_allocator("torch_other");
    row->set_device(device);
    row->set_live_bytes(1);
  }
  Exposition exposition;
  EXPECT_EQ(AddRun(run, bounds, &exposition), 1u);
  const std::string text = exposition.Text();
  EXPECT_THAT(text, HasSubstr("rank=\"0\""));
  EXPECT_THAT(text, Not(HasSubstr("rank=\"1\"")));
  EXPECT_THAT(text, HasSubstr("rank=\"2\""));
}

}  // namespace
}  // namespace lull::metrics
