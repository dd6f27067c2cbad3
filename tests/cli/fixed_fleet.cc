#include "tests/cli/fixed_fleet.h"

#include <cstdint>
#include <string>

namespace lull::testing {
namespace {

constexpr uint64_t kHour = 3'600'000'000'000;
constexpr double kHourMs = 3'600'000;

void AddCause(const char* cause, uint64_t jobs, uint64_t ns, v1::FleetReply* reply) {
  v1::FleetCause& row = *reply->add_causes();
  row.set_cause(cause);
  row.set_jobs(jobs);
  row.set_total_ns(ns);
  row.set_estimated_ms(20.0 * static_cast<double>(ns) / 1e6);
}

void AddLine(const char* cause, const char* file, int64_t line, const char* function,
             const char* api, uint64_t jobs, uint64_t ns, v1::FleetReply* reply) {
  v1::FleetLine& row = *reply->add_lines();
  row.set_cause(cause);
  row.set_file(file);
  row.set_line(line);
  row.set_function(function);
  row.set_api(api);
  row.set_jobs(jobs);
  row.set_total_ns(ns);
  row.set_max_ns(ns / 100);
  row.set_estimated_ms(20.0 * static_cast<double>(ns) / 1e6);
}

}  // namespace

v1::FleetReply FixedFleet() {
  v1::FleetReply reply;
  reply.set_store(v1::FLEET_STORE_CLICKHOUSE);
  reply.set_url("https://clickhouse.example:8443");
  v1::FleetTotals& totals = *reply.mutable_totals();
  totals.set_jobs(1204);
  totals.set_live_jobs(17);
  totals.set_traced_jobs(1187);
  totals.set_hosts(96);
  totals.set_collectors(96);
  totals.set_gpu_time_ms(48'210ULL * 3'600'000);
  totals.set_traced_ns(2411 * kHour);
  totals.set_busy_ns(1650 * kHour);
  totals.set_idle_ns(761 * kHour);
  totals.set_explained_ns(752 * kHour);
  totals.set_sync_blocked_ns(90 * kHour);
  totals.set_events_lost(3);
  totals.set_late_cost_ns(120 * kHour);
  totals.set_estimated_ms(15'220 * kHourMs);
  AddCause("data", 412, 421 * kHour, &reply);
  AddCause("sync", 1100, 300 * kHour, &reply);
  AddCause("launch_bound", 88, 40 * kHour, &reply);
  AddLine("data", "/srv/train/dataset.py", 44, "Pictures.__getitem__", "", 380,
          400 * kHour, &reply);
  AddLine("sync", "/srv/train/metrics.py", 11, "Mean.update", "cudaStreamSynchronize",
          1002, 220 * kHour, &reply);
  AddLine("sync", "", 0, "", "", 12, kHour, &reply);
  reply.set_lines_left_out(812);
  v1::FleetGroupRow& ada = *reply.add_groups();
  ada.set_key("ada");
  ada.set_jobs(900);
  ada.set_gpu_time_ms(40'000ULL * 3'600'000);
  ada.set_traced_ns(2000 * kHour);
  ada.set_busy_ns(1400 * kHour);
  ada.set_idle_ns(600 * kHour);
  ada.set_estimated_ms(12'000 * kHourMs);
  v1::FleetGroupRow& nobody = *reply.add_groups();
  nobody.set_jobs(304);
  nobody.set_idle_ns(161 * kHour);
  nobody.set_estimated_ms(3'220 * kHourMs);
  v1::FleetJob& job = *reply.add_jobs();
  job.set_id("77aa00ff" + std::string(24, '0'));
  job.set_name("resnet");
  job.set_host("gpu-17");
  job.set_collector("gpu-17");
  job.set_user("ada");
  job.set_start_unix_ns(1'714'566'600'250'000'000);
  job.set_duration_ns(20 * kHour);
  job.set_live(true);
  job.set_ranks(8);
  job.set_traced_ns(160 * kHour);
  job.set_idle_ns(80 * kHour);
  job.set_cause("data");
  job.set_cause_ns(60 * kHour);
  job.set_estimated_ms(80 * kHourMs);
  job.add_tags("nightly");
  v1::FleetJob& untraced = *reply.add_jobs();
  untraced.set_id("0badcafe" + std::string(24, '0'));
  untraced.set_host("gpu-3");
  untraced.set_collector("gpu-3");
  untraced.set_user("bob");
  reply.set_jobs_left_out(1202);
  v1::FleetLate& late = *reply.add_late();
  late.set_host("gpu-17");
  late.set_cause("host_code");
  late.set_file("/srv/train/augment.py");
  late.set_line(8);
  late.set_function("augment");
  late.set_jobs(4);
  late.set_cost_ns(100 * kHour);
  v1::FleetLate& slow = *reply.add_late();
  slow.set_host("gpu-3");
  slow.set_cause("gpu");
  slow.set_jobs(1);
  slow.set_cost_ns(20 * kHour);
  reply.set_late_left_out(1);
  reply.set_damaged_jobs(1);
  return reply;
}

}  // namespace lull::testing
