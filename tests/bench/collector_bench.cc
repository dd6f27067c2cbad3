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

#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "daemon/base/clock.h"
#include "daemon/base/event_views.h"
#include "daemon/base/gpu_event_views.h"
#include "daemon/collector/ingest/job_state.h"
#include "daemon/collector/ingest/validate.h"
#include "daemon/query/engine.h"
#include "daemon/storage/store.h"
#include "tests/daemon/collector/test_gpu.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/storage/temporary_directory.h"

namespace lull {
namespace {

constexpr uint64_t kRanks = 8;
constexpr uint32_t kKernels = 240;  // shapes of 80 kernels
constexpr uint32_t kStacks = 150;   // per rank: lines that launch, sync and allocate
constexpr size_t kBatchEvents = 16 * 1024;
constexpr uint64_t kLaunchGapNs = 50'000;
constexpr int kBatchesPerCommit = 4;

void Check(const absl::Status& status) {
  if (status.ok()) return;
  fprintf(stderr, "%s\n", status.ToString().c_str());
  exit(1);
}

// One rank's main thread and its autograd thread; and, traced, CUPTI's.
class Rank {
 public:
  Rank(uint64_t key, bool traced) : key_(key), traced_(traced), random_(key) {}

  // Returns the number of events.
  size_t AddTo(lull::v1::Batch& batch, size_t count) {
    std::vector<test::TestEvent> rings[kRings];
    if (traced_ && step_ == 0) rings[kCupti].push_back(Told(15, now_));
    size_t made = 0;
    for (; made < count; made = rings[0].size() + rings[1].size() + rings[2].size()) {
      std::vector<test::TestEvent>& ring = rings[step_ / 90 % 2];
      ring.push_back(Next());
      bool submits = ring.back().type == v1::EVENT_TYPE_LAUNCH;
      if (traced_ && submits) AddRecords(ring.back(), rings[kCupti]);
    }
    // What ran is known half a batch later than what was called.
    if (traced_) rings[kCupti].push_back(Told(17, now_));
    for (uint32_t ring = 0; ring < kRings; ++ring) {
      if (rings[ring].empty()) continue;
      test::AddRun(batch, key_, ring, position_[ring], rings[ring]);
      position_[ring] += rings[ring].size();
    }
    if (traced_) test::AddCounters(batch, key_, 0, position_[0], now_);
    return made;
  }

 private:
  static constexpr uint32_t kRings = 3;
  static constexpr uint32_t kCupti = 2;

  static test::TestEvent Told(uint32_t type, uint64_t at_ns) {
    test::TestEvent event;
    event.type = type;
    event.start_ns = at_ns;
    TracingView{event}.set_state(v1::TRACING_STATE_ACTIVE);
    return event;
  }

  void AddRecords(const test::TestEvent& launch, std::vector<test::TestEvent>& ring) {
    test::TestEvent call;
    call.type = v1::EVENT_TYPE_API_CALL;
    call.api = test::kApiCudaLaunch;
    call.start_ns = launch.start_ns + 400;
    call.duration_ns = launch.duration_ns - 800;
    ApiCallView{call}
        .set_caller(ThreadId{launch.tid})
        .set_correlation(CorrelationId{++correlation_});
    call.tid = 1002;
    test::TestEvent kernel = call;
    kernel.type = v1::EVENT_TYPE_GPU_KERNEL;
    kernel.api = 0;
    kernel.python = 1 + correlation_ % kKernels;
    kernel.native = 1;
    kernel.start_ns =
        std::max(free_ns_, call.start_ns + call.duration_ns + 1000 + random_() % 2048);
    kernel.duration_ns = 8'000 + random_() % 32'768;
    OperationView{kernel}.set_graph(0);
    free_ns_ = kernel.start_ns + kernel.duration_ns;
    ring.push_back(call);
    ring.push_back(kernel);
  }

  test::TestEvent Next() {
    uint64_t step = step_++;
    now_ += kLaunchGapNs + random_() % 8192;
    test::TestEvent event;
    event.start_ns = now_;
    event.tid = 1000 + static_cast<uint32_t>(step / 90 % 2);
    event.python = 1 + static_cast<uint32_t>(step % 90 % (kStacks / 2));
    switch (step % 36) {
      case 30:
        event.type = v1::EVENT_TYPE_SYNC;
        event.api = test::kApiSync;
        event.native = kStacks / 2 + 1;
        event.duration_ns = 200'000 + random_() % 400'000;
        CopyCallView{event}.set_stream(0x55d0'1000);
        break;
      case 31:
      case 32:
      case 33:
      case 34: {
        event.type = v1::EVENT_TYPE_TORCH_MEMORY;
        event.api = test::kApiTorch;
        event.native = kStacks / 2 + 1 + static_cast<uint32_t>(step % 50);
        bool free = step % 36 % 2 == 0;
        event.flags = free ? 1 : 0;
        if (!free) address_ = 0x7f12'0000'0000 + 512 * (random_() % 4000);
        MemoryView{event}
            .set_address(address_)
            .set_bytes(512 * (1 + step % 70))
            .set_device(TorchCuda(0));
        break;
      }
      case 35:
        event.type = v1::EVENT_TYPE_GC_PAUSE;
        event.duration_ns = 1'000'000 + random_() % 100'000;
        GcPauseView{event}
            .set_collected(random_() % 100)
            .set_generation(step % 108 == 35 ? 1 : 0);
        break;
      default:
        event.type = v1::EVENT_TYPE_LAUNCH;
        event.api = test::kApiLaunch;
        event.duration_ns = 4'000 + random_() % 2048;
        LaunchView{event}
            .set_stream(0x55d0'1000)
            .set_function(0x7f12'3456'0000 + 64 * (step % 70));
    }
    return event;
  }

  const uint64_t key_;
  const bool traced_;
  std::mt19937_64 random_;
  uint32_t correlation_ = 0;
  uint64_t free_ns_ = 0;
  uint64_t step_ = 0;
  uint64_t now_ = test::kJobStartNs;
  uint64_t address_ = 0;
  uint64_t position_[kRings] = {};
};

void AddKernels(lull::v1::Batch& batch, uint64_t key) {
  test::AddGpu(batch, key);
  lull::v1::Batch::Gpu& gpu = *batch.mutable_gpus(batch.gpus_size() - 1);
  gpu.clear_kernels();
  for (uint32_t ref = 1; ref <= kKernels; ++ref) {
    lull::v1::KernelDef* kernel = gpu.add_kernels();
    kernel->set_ref(ref);
    kernel->set_name("void at::native::vectorized_elementwise_kernel<" +
                     std::to_string(ref / 3) + ">(int, float*)");
    kernel->set_grid_x(ref);
    kernel->set_block_x(256);
  }
}

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

  std::vector<Rank> ranks;
  for (uint64_t key = 1; key <= kRanks; ++key) ranks.emplace_back(key, traced);
  uint64_t events = 0, cpu = 0, parse = 0, wire_bytes = 0;
  for (uint64_t sequence = 1; events < wanted; ++sequence) {
    lull::v1::Batch made;
    made.set_sequence(sequence);
    for (Rank& rank : ranks) {
      uint64_t key = static_cast<uint64_t>(&rank - ranks.data()) + 1;
      if (sequence == 1) AddIdentity(made, key);
      if (sequence == 1 && traced) AddKernels(made, key);
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
  double seconds = calls / kRanks * (kLaunchGapNs + 4096) / 1e9;
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
