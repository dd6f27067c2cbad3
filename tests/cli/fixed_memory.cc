#include "tests/cli/fixed_replies.h"
#include "tests/daemon/units.h"

namespace lull::testing {
namespace {

constexpr int64_t kMiB = 1 << 20;

void AddSite(v1::MemorySite* site, int64_t bytes, int64_t blocks, int line,
             const char* function) {
  site->set_bytes(bytes);
  site->set_blocks(blocks);
  site->mutable_site()->set_file("model.py");
  site->mutable_site()->set_line(line);
  site->mutable_site()->set_function(function);
}

// Rank 0: a caching allocator, 1,460 steps, and a list that keeps every loss.
void AddTensors(v1::Memory* reply) {
  v1::MemoryRow* row = reply->add_rows();
  row->set_pid(4312);
  row->set_rank(0);
  row->set_allocator("torch_cuda");
  row->set_device(0);
  row->set_live_bytes(1'860 * kMiB);
  row->set_peak_bytes(8'192 * kMiB);
  row->set_peak_time_ns(61'900 * kMs);
  row->set_reserved_known(true);
  row->set_reserved_bytes(14'000 * kMiB);
  row->set_reserved_at_peak_bytes(13'900 * kMiB);
  row->set_reserved_peak_bytes(14'200 * kMiB);
  AddSite(row->add_peak_sites(), 6'000 * kMiB, 240, 31, "Block.forward");
  AddSite(row->add_peak_sites(), 1'460 * kMiB, 1'460, 52, "train_step");
  row->set_peak_others_bytes(732 * kMiB);
  row->set_points_are_steps(true);
  for (uint64_t step = 0; step < 1460; step += 2) {
    v1::MemoryPoint* point = row->add_points();
    point->set_step(step);
    point->set_time_ns(1'000 * kMs + step * 42 * kMs);
    point->set_live_bytes((400 + static_cast<int64_t>(step)) * kMiB);
    point->set_reserved_bytes((step < 100 ? 9'000 : 14'000) * kMiB);
  }
  v1::MemoryGrowth* growth = row->mutable_growth();
  growth->set_bytes_per_step(static_cast<double>(kMiB));
  growth->set_first_step(730);
  growth->set_last_step(1458);
  growth->set_bytes(728 * kMiB);
  AddSite(growth->add_sites(), 728 * kMiB, 728, 52, "train_step");
}

v1::MemoryRow* AddSmall(v1::Memory* reply, const char* allocator, uint32_t pid,
                        int64_t bytes) {
  v1::MemoryRow* row = reply->add_rows();
  row->set_pid(pid);
  row->set_rank(static_cast<int>(pid) - 4312);
  row->set_allocator(allocator);
  row->set_device(-1);
  row->set_live_bytes(0);
  row->set_peak_bytes(bytes);
  row->set_peak_time_ns(2'500 * kMs);
  AddSite(row->add_peak_sites(), bytes, 2, 9, "Loader.pin");
  v1::MemoryPoint* point = row->add_points();
  point->set_time_ns(3'000 * kMs);
  point->set_live_bytes(bytes);
  return row;
}

}  // namespace

v1::ReportReply FixedMemory() {
  v1::ReportReply reply;
  v1::Memory* section = reply.mutable_memory();
  *reply.mutable_job() = FixedJob();
  *reply.mutable_losses() = FixedAllocations().losses();
  *reply.mutable_overhead() = FixedAllocations().overhead();
  AddTensors(section);
  AddSmall(section, "pinned", 4312, 96 * kMiB);
  AddSmall(section, "cuda", 4313, 14'300 * kMiB);
  AddSmall(section, "torch_cpu", 4313, 3 * kMiB);
  v1::MallocRetries* retries = section->add_retries();
  retries->set_pid(4312);
  retries->set_rank(0);
  retries->set_failed_calls(5);
  retries->set_retries(3);
  retries->set_succeeded(2);
  retries->set_total_ns(186 * kMs);
  retries->mutable_site()->set_file("model.py");
  retries->mutable_site()->set_line(31);
  retries->mutable_site()->set_function("Block.forward");
  return reply;
}

}  // namespace lull::testing
