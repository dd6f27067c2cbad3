// What the collector costs: events per second of one core through validation,
// aggregates, blocks and SQLite; bytes on disk per event; and how long queries take
// on what was stored.
//
//   collector_bench [EVENTS]      default: 4 million
//
// The events are those of eight ranks that train: launches 50 us apart, a sync and a
// few allocations every 30 launches, a GC pause now and then, in batches of 16 Ki.
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "daemon/base/clock.h"
#include "daemon/collector/job_state.h"
#include "daemon/collector/validate.h"
#include "daemon/query/job_lookup.h"
#include "daemon/query/reports.h"
#include "daemon/query/totals.h"
#include "daemon/storage/sqlite_store.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/storage/temporary_directory.h"

namespace lull {
namespace {

constexpr uint64_t kRanks = 8;
constexpr uint32_t kStacks = 150;  // per rank: lines that launch, sync and allocate
constexpr size_t kBatchEvents = 16 * 1024;
constexpr uint64_t kLaunchGapNs = 50'000;
constexpr int kBatchesPerCommit = 4;

void Check(const absl::Status& status) {
  if (status.ok()) return;
  fprintf(stderr, "%s\n", status.ToString().c_str());
  exit(1);
}

// One rank's main thread and its autograd thread.
class Rank {
 public:
  explicit Rank(uint64_t key) : key_(key), random_(key) {}

  void AddTo(lull::v1::Batch& batch, size_t count) {
    std::vector<test::TestEvent> rings[2];
    for (size_t i = 0; i < count; ++i) rings[step_ / 90 % 2].push_back(Next());
    for (uint32_t ring = 0; ring < 2; ++ring) {
      if (rings[ring].empty()) continue;
      test::AddRun(batch, key_, ring, position_[ring], rings[ring]);
      position_[ring] += rings[ring].size();
    }
  }

 private:
  test::TestEvent Next() {
    uint64_t step = step_++;
    now_ += kLaunchGapNs + random_() % 8192;
    test::TestEvent event;
    event.start_ns = now_;
    event.tid = 1000 + static_cast<uint32_t>(step / 90 % 2);
    event.python = 1 + static_cast<uint32_t>(step % 90 % (kStacks / 2));
    switch (step % 36) {
      case 30:
        event.type = 3;
        event.api = test::kApiSync;
        event.native = kStacks / 2 + 1;
        event.duration_ns = 200'000 + random_() % 400'000;
        event.arg0 = 0x55d0'1000;
        break;
      case 31:
      case 32:
      case 33:
      case 34: {
        event.type = 6;
        event.api = test::kApiTorch;
        event.native = kStacks / 2 + 1 + static_cast<uint32_t>(step % 50);
        bool free = step % 36 % 2 == 0;
        event.flags = free ? 1 : 0;
        if (!free) address_ = 0x7f12'0000'0000 + 512 * (random_() % 4000);
        event.arg0 = address_;
        event.arg1 = 512 * (1 + step % 70);
        event.arg2 = 1 << 8;
        break;
      }
      case 35:
        event.type = 7;
        event.duration_ns = 1'000'000 + random_() % 100'000;
        event.arg0 = random_() % 100;
        event.arg2 = step % 108 == 35 ? 1 : 0;
        break;
      default:
        event.type = 2;
        event.api = test::kApiLaunch;
        event.duration_ns = 4'000 + random_() % 2048;
        event.arg0 = 0x55d0'1000;
        event.arg1 = 0x7f12'3456'0000 + 64 * (step % 70);
    }
    return event;
  }

  const uint64_t key_;
  std::mt19937_64 random_;
  uint64_t step_ = 0;
  uint64_t now_ = test::kJobStartNs;
  uint64_t address_ = 0;
  uint64_t position_[2] = {0, 0};
};

void AddIdentity(lull::v1::Batch& batch, uint64_t key) {
  *batch.add_processes() = test::MakeProcess(key, 100 + static_cast<uint32_t>(key),
                                             static_cast<int32_t>(key) - 1);
  auto* stacks = batch.add_stacks();
  stacks->set_process_key(key);
  for (uint32_t ref = 1; ref <= kStacks; ++ref) {
    lull::v1::StackDef* stack = stacks->add_stacks();
    stack->set_ref(ref);
    stack->set_native(ref > kStacks / 2);
    for (int depth = 0; depth < 20; ++depth) {
      lull::v1::Frame* frame = stack->add_frames();
      frame->set_function("function_" + std::to_string(depth));
      frame->set_file("/home/u/model.py");
      frame->set_line(static_cast<int32_t>(ref * 10 + static_cast<uint32_t>(depth)));
    }
  }
  test::AddCounters(batch, key, 0, 0, 1);
}

uint64_t DiskBytes(const std::string& path) {
  // What lies in the log belongs into the file.
  sqlite3* db = nullptr;
  sqlite3_open(path.c_str(), &db);
  sqlite3_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", nullptr, nullptr, nullptr);
  sqlite3_close(db);
  struct stat info;
  return stat(path.c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

void TimeQuery(storage::Store& store, const char* name,
               const lull::v1::ReportRequest& request) {
  uint64_t best = UINT64_MAX;
  for (int i = 0; i < 5; ++i) {
    uint64_t start = MonotonicNs();
    auto reader = store.NewReader().value();
    auto job = query::FindJob(*reader, "").value();
    query::TimeRange range;
    if (request.has_since_ns()) range.since = request.since_ns();
    if (request.has_until_ns()) range.until = request.until_ns();
    std::vector<query::ProcessSums> sums;
    auto processes = reader->Processes(job.id).value();
    for (const auto& row : query::SelectProcesses(processes, request)) {
      sums.push_back(query::LoadSums(*reader, job, row, range).value());
    }
    query::Names names(*reader, job.id);
    lull::v1::ReportReply reply;
    query::FillSyncs(sums, request, names, reply.mutable_syncs());
    query::FillAllocations(sums, request, names, reply.mutable_allocations());
    query::FillGc(sums, request, names, reply.mutable_gc());
    query::FillWaits(sums, request, names, reply.mutable_waits());
    best = std::min(best, MonotonicNs() - start);
  }
  printf("  %-28s %8.1f ms\n", name, static_cast<double>(best) / 1e6);
}

void Run(uint64_t wanted) {
  test::TemporaryDirectory directory;
  std::string path = directory / "bench.db";
  auto opened = storage::OpenSqliteStore(path);
  Check(opened.status());
  storage::Store& store = **opened;
  lull::v1::Hello hello = test::MakeHello(test::MakeJobId(1));
  auto job = collector::JobState::Load(store.writer().reader(), hello);
  Check(job.status());
  (*job)->Apply(hello);

  std::vector<Rank> ranks;
  for (uint64_t key = 1; key <= kRanks; ++key) ranks.emplace_back(key);
  uint64_t events = 0, cpu = 0, parse = 0, wire_bytes = 0;
  for (uint64_t sequence = 1; events < wanted; ++sequence) {
    lull::v1::Batch made;
    made.set_sequence(sequence);
    for (Rank& rank : ranks) {
      if (sequence == 1)
        AddIdentity(made, static_cast<uint64_t>(&rank - ranks.data()) + 1);
      rank.AddTo(made, kBatchEvents / kRanks);
    }
    events += kBatchEvents;
    std::string wire = made.SerializeAsString();
    wire_bytes += wire.size();

    uint64_t start = ProcessCpuNs();
    lull::v1::Batch batch;
    batch.ParseFromString(wire);
    parse += ProcessCpuNs() - start;
    Check(collector::ValidateBatch(batch));
    Check((*job)->Apply(batch));
    if (sequence % kBatchesPerCommit == 0 || events >= wanted) {
      Check(store.writer().Begin());
      Check((*job)->Flush(store.writer(), 1));
      Check(store.writer().Commit());
    }
    cpu += ProcessCpuNs() - start;
  }
  uint64_t disk = DiskBytes(path);
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  auto number = static_cast<double>(events);
  double seconds = number / kRanks * (kLaunchGapNs + 4096) / 1e9;
  printf("%.1f M events of %lu ranks over %.0f s of training\n", number / 1e6, kRanks,
         seconds);
  printf("  %-28s %8.2f M/s (of it parsing %.0f %%)\n", "ingest, one core",
         number / 1e6 / (static_cast<double>(cpu) / 1e9),
         100.0 * static_cast<double>(parse) / static_cast<double>(cpu));
  printf("  %-28s %8.2f (on the wire %.1f)\n", "bytes per event on disk",
         static_cast<double>(disk) / number, static_cast<double>(wire_bytes) / number);
  printf("  %-28s %8ld MiB\n", "memory at most", usage.ru_maxrss / 1024);

  lull::v1::ReportRequest request;
  request.set_top(20);
  TimeQuery(store, "whole report", request);
  auto at = [&](double share) { return static_cast<uint64_t>(share * seconds * 1e9); };
  request.set_since_ns(at(0.31));
  request.set_until_ns(at(0.77));
  TimeQuery(store, "report of a range", request);
  request.set_group_by(lull::v1::GROUP_BY_STACK);
  TimeQuery(store, "report of a range, by stack", request);
}

}  // namespace
}  // namespace lull

int main(int argc, char** argv) {
  lull::Run(argc > 1 ? strtoull(argv[1], nullptr, 10) : 4'000'000);
  return 0;
}
