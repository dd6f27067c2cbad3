// lulld is killed again and again while a relay sends: what was acknowledged is
// there, nothing is there twice, and marks and blocks agree.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "daemon/base/event_views.h"
#include "daemon/storage/store.h"
#include "tests/daemon/collector/fake_relay.h"
#include "tests/daemon/collector/lulld_process.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/storage/temporary_directory.h"

namespace lull::test {
namespace {

constexpr uint64_t kBatches = 300;
constexpr uint32_t kRings = 3;
constexpr uint64_t kProcesses = 2;

// The batches of one job: in each, some events of every ring.
std::vector<lull::v1::Batch> MakeBatches(std::mt19937& random,
                                         std::vector<uint64_t>& per_ring) {
  std::vector<lull::v1::Batch> batches(kBatches);
  per_ring.assign(kProcesses * kRings, 0);
  for (uint64_t i = 0; i < kBatches; ++i) {
    batches[i].set_sequence(i + 1);
    for (uint64_t process = 1; process <= kProcesses; ++process) {
      if (i == 0) {
        *batches[i].add_processes() =
            MakeProcess(process, 100 + static_cast<uint32_t>(process), 0);
        AddStacks(batches[i], process);
      }
      for (uint32_t ring = 0; ring < kRings; ++ring) {
        uint64_t& position = per_ring[(process - 1) * kRings + ring];
        std::vector<TestEvent> events(1 + random() % 120);
        for (size_t k = 0; k < events.size(); ++k) {
          TestEvent& event = events[k];
          event.type = k % 2 == 0 ? v1::EVENT_TYPE_SYNC : v1::EVENT_TYPE_TORCH_MEMORY;
          event.api = k % 2 == 0 ? kApiSync : kApiTorch;
          event.python = 1 + static_cast<uint32_t>(k % kPythonStacks);
          event.start_ns += i * 1'000'000 + k * 10;
          if (event.type == v1::EVENT_TYPE_TORCH_MEMORY) {
            MemoryView{event}.set_address(4096 * (1 + k)).set_bytes(100);
          } else {
            CopyCallView{event}.set_bytes(100);
          }
          event.flags = k % 4 == 3 ? 1 : 0;
        }
        AddRun(batches[i], process, ring, position, events);
        position += events.size();
      }
      AddCounters(batches[i], process, 0, per_ring[(process - 1) * kRings], i + 1);
    }
  }
  return batches;
}

// Sends until all is acknowledged, from what was not, over as many streams as it
// takes.
void SendAll(const std::vector<lull::v1::Batch>& batches, const std::string& socket,
             std::atomic<uint64_t>& acknowledged) {
  while (acknowledged < kBatches) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    FakeRelay relay(grpc::CreateCustomChannel(
        "unix:" + socket, grpc::InsecureChannelCredentials(), arguments));
    bool ok = relay.Send(MakeHello(MakeJobId(1)));
    for (uint64_t i = acknowledged; ok && i < kBatches; ++i) {
      ok = relay.Send(batches[i]);
      if (i % 7 == 0) usleep(1000);
      if (i % 20 == 19) ok = ok && relay.AwaitAcknowledgement(i - 10);
      acknowledged = std::max<uint64_t>(acknowledged, relay.acknowledged());
    }
    if (ok) relay.AwaitAcknowledgement(kBatches);
    acknowledged = std::max<uint64_t>(acknowledged, relay.acknowledged());
    if (!ok) usleep(5000);
  }
}

int64_t Number(const std::string& database, const char* sql) {
  sqlite3* db = nullptr;
  EXPECT_EQ(sqlite3_open(database.c_str(), &db), SQLITE_OK);
  sqlite3_stmt* statement = nullptr;
  EXPECT_EQ(sqlite3_prepare_v2(db, sql, -1, &statement, nullptr), SQLITE_OK) << sql;
  EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW);
  int64_t value = sqlite3_column_int64(statement, 0);
  sqlite3_finalize(statement);
  sqlite3_close(db);
  return value;
}

void ExpectConsistent(const std::string& database) {
  EXPECT_EQ(Number(database,
                   "SELECT count(*) FROM blocks a JOIN blocks b ON a.id < b.id AND "
                   "a.process=b.process AND a.ring=b.ring AND "
                   "a.first_position < b.first_position + b.count AND "
                   "b.first_position < a.first_position + a.count"),
            0)
      << "stored twice";
  EXPECT_EQ(Number(database, "SELECT sum(stored) FROM rings"),
            Number(database, "SELECT sum(count) FROM blocks"));
  EXPECT_EQ(
      Number(database,
             "SELECT count(*) FROM rings r WHERE end_position != (SELECT "
             "max(first_position + count) FROM blocks b WHERE b.process=r.process AND "
             "b.ring=r.ring)"),
      0)
      << "marks and blocks disagree";
  EXPECT_EQ(Number(database, "SELECT sum(skipped) FROM rings"), 0);
}

// The aggregates, against the events themselves.
void ExpectAggregatesMatch(const std::string& database) {
  auto store = storage::Store::Open(database);
  ASSERT_TRUE(store.ok()) << store.status();
  auto reader = *(*store)->NewReader();
  int64_t job = (*reader->catalogue().Jobs(0))[0].id;
  const auto processes = reader->catalogue().All<storage::ProcessRow>(job).value();
  for (const storage::ProcessRow& process : processes) {
    uint64_t cells = 0, time = 0, events = 0, durations = 0;
    ASSERT_TRUE(reader->cells()
                    .Read(process.id, 0, 0, UINT64_MAX,
                          [&](uint32_t, const aggregate::Cell& cell) {
                            cells += cell.count;
                            time += cell.total_ns;
                          })
                    .ok());
    ASSERT_TRUE(reader->events()
                    .Read(process.id, 0, UINT64_MAX,
                          [&](const aggregate::Event& event) {
                            ++events;
                            durations += event.duration_ns;
                          })
                    .ok());
    EXPECT_EQ(cells, events);
    EXPECT_EQ(time, durations);
  }
}

TEST(KilledLulld, StoresEveryEventExactlyOnce) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int run = 0; run < 4; ++run) {
    TemporaryDirectory directory;
    std::string socket = directory / "run/c.sock", database = directory / "a.db";
    std::vector<uint64_t> per_ring;
    std::vector<lull::v1::Batch> batches = MakeBatches(random, per_ring);
    std::atomic<uint64_t> acknowledged{0};
    std::vector<std::string> arguments = {"--listen", "unix:" + socket, "--database",
                                          database};
    auto lulld = std::make_unique<LulldProcess>(arguments);
    ASSERT_TRUE(lulld->AwaitSocket(socket));
    std::thread relay([&] { SendAll(batches, socket, acknowledged); });
    int kills = 0;
    uint64_t before = 0;
    uint32_t patience = 1;  // a build that is slow needs longer to get anywhere
    while (acknowledged < kBatches) {
      usleep((5'000 + random() % 120'000) * patience);
      if (acknowledged >= kBatches) break;
      if (acknowledged == before) patience *= 2;
      before = acknowledged;
      lulld->Signal(SIGKILL);
      EXPECT_EQ(lulld->Wait(), 128 + SIGKILL);
      ++kills;
      lulld = std::make_unique<LulldProcess>(arguments);
      EXPECT_TRUE(lulld->AwaitSocket(socket));
    }
    relay.join();
    EXPECT_GT(kills, 0);
    lulld->Signal(SIGKILL);
    lulld->Wait();
    ExpectConsistent(database);
    uint64_t sent = 0;
    for (uint64_t count : per_ring) sent += count;
    EXPECT_EQ(Number(database, "SELECT sum(count) FROM blocks"),
              static_cast<int64_t>(sent));
    ExpectAggregatesMatch(database);
  }
}

}  // namespace
}  // namespace lull::test
