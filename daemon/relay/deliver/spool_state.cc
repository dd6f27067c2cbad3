#include "daemon/relay/deliver/spool_state.h"

#include <algorithm>

namespace lull::relay {
namespace {

void Add(const lull::v1::ProcessCounters& told, lull::v1::ProcessCounters* found) {
  found->set_thinning(std::max(found->thinning(), told.thinning()));
  if (told.first_sampled_step() != 0) {
    found->set_first_sampled_step(told.first_sampled_step());
  }
  found->set_modules_unread(std::max(found->modules_unread(), told.modules_unread()));
  found->set_corrupt(found->corrupt() || told.corrupt());
  if (told.host_samples().taken() >= found->host_samples().taken() &&
      told.has_host_samples()) {
    *found->mutable_host_samples() = told.host_samples();
  }
  if (told.has_host_use()) *found->mutable_host_use() = told.host_use();
}

}  // namespace

void SpoolState::Apply(const lull::v1::Batch& batch) {
  last_sequence = std::max(last_sequence, batch.sequence());
  for (const lull::v1::RingBatch& run : batch.rings()) {
    RingProgress& ring = rings[{run.process_key(), run.ring()}];
    const lull::v1::EventColumns& events = run.events();
    // The relay left out what lies between two runs; the counters of this batch may
    // be older than that.
    if (events.type_size() > 0 && events.first_position() > ring.end) {
      ring.lost_relay += events.first_position() - ring.end;
    }
    ring.end = std::max(ring.end, events.first_position() + events.type_size());
    if (events.tid_size() > 0) ring.tid = events.tid(events.tid_size() - 1);
  }
  for (const lull::v1::ProcessCounters& counters : batch.counters()) {
    uint64_t key = counters.process_key();
    latest_ns = std::max(latest_ns, counters.as_of_ns());
    Add(counters, &found[key]);
    for (const lull::v1::RingCounters& ring : counters.rings()) {
      // More than lay between runs: it was dropped behind the last event, and has been
      // read. A successor would count it a second time.
      RingProgress& progress = rings[{key, ring.ring()}];
      const uint64_t more =
          ring.lost_relay() - std::min(ring.lost_relay(), progress.lost_relay);
      progress.lost_relay += more;
      progress.end += more;
    }
  }
  for (const auto& end : batch.process_ends()) {
    latest_ns = std::max(latest_ns, end.end_ns());
    if (end.process_key() != 0) ended[end.process_key()] = end.end_ns();
  }
  for (const lull::v1::ArmedStretch& told : batch.stretches()) {
    if (!stretch || told.number() >= stretch->number()) stretch = told;
  }
  if (batch.has_job_end()) job_ended = true;
}

void SpoolState::Forget(uint64_t process_key) {
  rings.erase(rings.lower_bound({process_key, 0}),
              rings.upper_bound({process_key, ~0u}));
  found.erase(process_key);
  ended.erase(process_key);
}

std::string SpoolState::Encode() const {
  lull::v1::Batch batch;
  batch.set_sequence(last_sequence);
  std::map<uint64_t, lull::v1::ProcessCounters*> counters;
  auto counters_of = [&](uint64_t key) {
    lull::v1::ProcessCounters*& slot = counters[key];
    if (slot == nullptr) {
      slot = batch.add_counters();
      slot->set_process_key(key);
    }
    return slot;
  };
  for (const auto& [key, ring] : rings) {
    lull::v1::RingBatch* run = batch.add_rings();
    run->set_process_key(key.first);
    run->set_ring(key.second);
    run->mutable_events()->set_first_position(ring.end);
    run->mutable_events()->add_tid(ring.tid);
    lull::v1::RingCounters* lost = counters_of(key.first)->add_rings();
    lost->set_ring(key.second);
    lost->set_lost_relay(ring.lost_relay);
  }
  for (const auto& [key, counters] : found) counters_of(key)->MergeFrom(counters);
  for (const auto& [key, end_ns] : ended) {
    auto* end = batch.add_process_ends();
    end->set_process_key(key);
    end->set_end_ns(end_ns);
  }
  batch.add_process_ends()->set_end_ns(latest_ns);
  if (stretch) *batch.add_stretches() = *stretch;
  if (job_ended) batch.mutable_job_end();
  return batch.SerializeAsString();
}

bool SpoolState::Decode(const std::string& bytes) {
  lull::v1::Batch batch;
  if (!batch.ParseFromString(bytes)) return false;
  *this = SpoolState();
  Apply(batch);
  for (const lull::v1::RingBatch& run : batch.rings()) {  // what was dropped is within
    rings[{run.process_key(), run.ring()}].end = run.events().first_position();
  }
  return true;
}

}  // namespace lull::relay
