// Ranks of the made-up job: one that sleeps in an augmentation, and collects garbage.
#include "tests/cli/fixed_replies.h"
#include "tests/daemon/units.h"

namespace lull::testing {
namespace {

v1::RankRow* AddRank(v1::Ranks* ranks, int number, uint64_t waited_ms) {
  v1::RankRow* row = ranks->add_ranks();
  row->set_rank(number);
  row->set_host("node7");
  row->set_pid(4'100 + static_cast<uint32_t>(number));
  row->set_step_ns(102 * kMs);
  row->set_waited_ns(waited_ms * kMs);
  return row;
}

}  // namespace

v1::ReportReply FixedRanks() {
  v1::ReportReply reply = FixedWaits();
  reply.clear_waits();
  v1::Ranks* ranks = reply.mutable_ranks();
  ranks->set_error_kind(v1::CLOCK_ERROR_KIND_BOUND);
  ranks->set_world_size(2);
  ranks->set_collectives(1200);
  ranks->set_steps(1200);
  ranks->set_unexplained_ns(410 * kMs);
  ranks->set_unmatched_ns(12 * kMs);
  ranks->set_start_ns(4'000 * kMs);
  ranks->set_end_ns(130'000 * kMs);
  v1::RankRow* late = AddRank(ranks, 1, 240);
  late->set_late_steps(128);
  late->set_cost_to_others_ns(7'120 * kMs);
  v1::LateCause* sleep = late->add_culprits();
  sleep->set_cause("sleep");
  sleep->mutable_site()->set_file("ddp.py");
  sleep->mutable_site()->set_line(8);
  sleep->mutable_site()->set_function("augment");
  sleep->set_steps(120);
  sleep->set_total_ns(6'000 * kMs);
  sleep->set_cost_ns(6'000 * kMs);
  v1::LateCause* gc = late->add_culprits();
  gc->set_cause("gc");
  gc->set_steps(8);
  gc->set_total_ns(1'120 * kMs);
  gc->set_cost_ns(1'120 * kMs);
  AddRank(ranks, 0, 7'290);
  return reply;
}

}  // namespace lull::testing
