// Exchanges: the part of the engine that hears of other processes.
#include "tests/sim/engine/exchange.h"

#include "tests/sim/engine/engine.h"

namespace lull::sim {
namespace {

void complete(TruthRecord* record, const Exchanged& exchanged) {
  if (record == nullptr) return;
  record->kind = static_cast<uint16_t>(exchanged.error);
  __atomic_store_n(&record->end_ns, exchanged.end_ns, __ATOMIC_RELEASE);
}

TruthRecord* log_exchange(TruthLog* log, const Op& op, int64_t sequence) {
  if (!log->enabled()) return nullptr;
  const Exchange& exchange = *op.spec.exchange;
  TruthRecord record{};
  record.type = static_cast<uint32_t>(RecordType::kExchange);
  record.tid = op.spec.function->name_id;
  record.correlation = op.correlation;
  record.start_ns = op.start_ns;
  record.extra = sequence;
  record.stream = op.stream;
  record.bytes = exchange.bytes;
  record.handle = exchange.communicator;
  record.name = log->name(exchange.members);
  record.sub = static_cast<uint16_t>(exchange.rank);
  record.device = exchange.size;
  record.aux = exchange.calls;
  record.parent = exchange.parent;
  record.grid = log->name(exchange.names);
  record.block = op.device;
  return log->append(record);
}

}  // namespace

int64_t Engine::begin_exchange(const OpPtr& op) {
  const uint64_t kernel = ++exchanges_;
  const Exchange* exchange = op->spec.exchange;
  Exchanged exchanged;
  exchange->begin(exchange, kernel, op->start_ns, op->spec.duration_ns, &exchanged);
  op->exchange_record = log_exchange(&log_, *op, exchanged.sequence);
  if (exchanged.end_ns == kUnscheduled) {
    exchanging_[kernel] = op;
  } else {
    complete(op->exchange_record, exchanged);
  }
  return exchanged.end_ns;
}

void Engine::finish_exchange(uint64_t kernel, const Exchanged& exchanged) {
  std::lock_guard lock(mutex_);
  auto found = exchanging_.find(kernel);
  if (found == exchanging_.end()) return;
  OpPtr op = std::move(found->second);
  exchanging_.erase(found);
  complete(op->exchange_record, exchanged);
  timeline_.finish(op, op->start_ns, exchanged.end_ns);
}

void Engine::end_exchanges(const void* member) {
  OpPtr last;
  {
    std::lock_guard lock(mutex_);
    auto found = last_exchanges_.find(member);
    if (found == last_exchanges_.end()) return;
    last = std::move(found->second);
    last_exchanges_.erase(found);
  }
  wait({&last, 1});
}

}  // namespace lull::sim
