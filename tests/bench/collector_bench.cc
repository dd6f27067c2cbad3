// What the collector costs: events per second of one core through validation,
// aggregates, blame, blocks and SQLite; bytes on disk per event; and how long queries
// take on what was stored.
//
//   collector_bench [EVENTS]      default: 4 million, of each of the two jobs
//
// The events are those of eight ranks that train: launches 50 us apart, a sync and a
// few allocations every 30 launches, a GC pause now and then, in batches of 16 Ki. The
// second job is the same with its GPUs traced all the time: two records of CUPTI for
// each launch, and the idle time between kernels is judged.
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "daemon/base/clock.h"
#include "daemon/collector/ingest/job_state.h"
#include "daemon/collector/ingest/validate.h"
#include "daemon/query/engine.h"
#include "daemon/storage/store.h"
#include "tests/bench/made_up_rank.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/storage/temporary_directory.h"

namespace lull {
namespace {

constexpr uint64_t kRanks = 8;
constexpr size_t kBatchEvents = 16 * 1024;
constexpr int kBatchesPerCommit = 4;

void Check(const absl::Status& status) {
  if (status.ok()) return;
  fprintf(stderr, "%s\n", status.ToString().c_str());
  exit(1);
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
    lull::v1::ReportReply reply;
    Check(query::Report(
        store, [](const std::string&) { return false; }, request, &reply));
    best = std::min(best, MonotonicNs() - start);
  }
  printf("  %-28s %8.1f ms\n", name, static_cast<double>(best) / 1e6);
}

void Run(uint64_t wanted, bool traced) {
  test::TemporaryDirectory directory;
  std::string path = directory / "bench.db";
  auto opened = storage::Store::Open(path);
  Check(opened.status());
  storage::Store& store = **opened;
  lull::v1::Hello hello = test::MakeHello(test::MakeJobId(1));
  hello.mutable_job()->set_gpu_mode(traced ? lull::v1::GPU_MODE_CONTINUOUS
                                           : lull::v1::GPU_MODE_HOST);
  auto job = collector::JobState::Load(store.writer(), hello);
  Check(job.status());
  (*job)->Apply(hello);
  storage::BlockEncoder encoder;

  std::vector<test::MadeUpRank> ranks;
  for (uint64_t key = 1; key <= kRanks; ++key) ranks.emplace_back(key, traced);
  uint64_t events = 0, cpu = 0, parse = 0, wire_bytes = 0;
  for (uint64_t sequence = 1; events < wanted; ++sequence) {
    lull::v1::Batch made;
    made.set_sequence(sequence);
    for (test::MadeUpRank& rank : ranks) {
      uint64_t key = static_cast<uint64_t>(&rank - ranks.data()) + 1;
      if (sequence == 1) test::AddMadeUpIdentity(made, key);
      if (sequence == 1 && traced) test::AddMadeUpKernels(made, key);
      events += rank.AddTo(made, kBatchEvents / kRanks);
    }
    std::string wire = made.SerializeAsString();
    wire_bytes += wire.size();

    uint64_t start = ProcessCpuNs();
    lull::v1::Batch batch;
    batch.ParseFromString(wire);
    parse += ProcessCpuNs() - start;
    Check(collector::ValidateBatch(batch));
    if (!(*job)->Apply(batch).empty()) Check(absl::InternalError("events rejected"));
    (*job)->PackFullRuns(encoder);
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
  double calls = traced ? number * 36 / (36 + 60) : number;
  double seconds = calls / kRanks * (test::Pace().gap_ns + 4096) / 1e9;
  printf("%.1f M events of %lu ranks over %.0f s of training, %s\n", number / 1e6,
         kRanks, seconds, traced ? "GPUs traced" : "GPUs not traced");
  printf("  %-28s %8.2f M/s (of it parsing %.0f %%)\n", "ingest, one core",
         number / 1e6 / (static_cast<double>(cpu) / 1e9),
         100.0 * static_cast<double>(parse) / static_cast<double>(cpu));
  printf("  %-28s %8.2f (on the wire %.1f)\n", "bytes per event on disk",
         static_cast<double>(disk) / number, static_cast<double>(wire_bytes) / number);
  printf("  %-28s %8ld MiB\n", "memory at most", usage.ru_maxrss / 1024);

  lull::v1::ReportRequest request;
  request.set_top(20);
  TimeQuery(store, "whole report", request);
  request.add_sections(lull::v1::SECTION_MEMORY);
  TimeQuery(store, "memory, all ranks", request);
  request.set_rank(0);
  TimeQuery(store, "memory, one rank", request);
  request.clear_rank();
  request.clear_sections();
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
  uint64_t events = argc > 1 ? strtoull(argv[1], nullptr, 10) : 4'000'000;
  lull::Run(events, false);
  lull::Run(events, true);
  return 0;
}
