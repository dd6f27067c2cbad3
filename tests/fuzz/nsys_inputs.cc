#include "tests/fuzz/nsys_inputs.h"

#include <sqlite3.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "daemon/import/nsys_reader.h"
#include "daemon/import/translate.h"
#include "tests/fuzz/checked_sink.h"

namespace lull::imports {
namespace {

constexpr char kCommon[] = R"SQL(
PRAGMA page_size = 512;
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'),
  (2, 'cudaMemcpyAsync_ptsz_v7000'), (3, 'gemm<int>'), (4, 'forward'),
  (5, 'cudaDeviceSynchronize_v3020');
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, eventClass INT,
  globalTid INT, correlationId INT, nameId INT);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES
  (0, 5000, 0, 1862270976 + 111, 1, 1), (5000, 6000, 67, 1862270976 + 111, 1, 1),
  (9000, 30000, 0, 1862270976 + 111, 3, 2), (40000, 50000, 1, 1862270976 + 112, 4, 5);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT,
  contextId INT, streamId INT, correlationId INT, globalPid INT, demangledName INT,
  gridX INT, gridY INT, gridZ INT, blockX INT, registersPerThread INT);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
  (5000, 8000, 0, 1, 7, 1, 1862270976, 3, 8, 1, 1, 128, 32);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT,
  streamId INT, correlationId INT, globalPid INT, bytes INT, copyKind INT,
  srcKind INT, dstKind INT);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES
  (20000, 29000, 0, 7, 3, 1862270976, 16, 2, 2, 0);
)SQL";

constexpr char kLater[] = R"SQL(
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INT, end INT, deviceId INT,
  streamId INT, correlationId INT, globalPid INT, bytes INT, memKind INT);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (33000, 34000, 1, 7, 0, 1862270976, 4, 2);
CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, globalTid INT,
  text TEXT, textId INT);
INSERT INTO NVTX_EVENTS VALUES (0, 90000, 59, 1862270976 + 111, NULL, 4),
  (10, 9000, 59, 1862270976 + 111, 'inner', NULL), (5, 6, 34, 1, 'mark', NULL);
CREATE TABLE TARGET_INFO_GPU (id INT, name TEXT, smCount INT, totalMemory INT);
INSERT INTO TARGET_INFO_GPU VALUES (0, 'A100', 108, 42000000000);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INT);
INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1751410836000000000);
)SQL";

std::string FileName() {
  static const std::string name = "/dev/shm/lull-fuzz-nsys-" + std::to_string(getpid());
  static const bool removed_at_exit = atexit([] { unlink(FileName().c_str()); }) == 0;
  static_cast<void>(removed_at_exit);
  return name;
}

std::string DatabaseOf(const std::string& sql) {
  unlink(FileName().c_str());
  sqlite3* database = nullptr;
  if (sqlite3_open(FileName().c_str(), &database) != SQLITE_OK ||
      sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    fprintf(stderr, "seed: %s\n", sqlite3_errmsg(database));
    abort();
  }
  sqlite3_close(database);
  std::ifstream file(FileName(), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

void FuzzNsys(std::string_view input) {
  {
    std::ofstream file(FileName(), std::ios::binary | std::ios::trunc);
    file.write(input.data(), static_cast<std::streamsize>(input.size()));
  }
  ReadLimits limits;
  limits.records = 10'000;
  limits.value_bytes = 64 << 10;
  auto traces = ReadNsysTrace(FileName(), limits);
  if (!traces.ok()) return;
  ApiTable apis;
  ImportCounts counts;
  for (Trace& trace : *traces) {
    auto sink = CheckedSink();
    if (!Translate(trace, 1, apis, sink, &counts).ok()) abort();
  }
}

std::vector<std::string> NsysSeeds() {
  return {DatabaseOf(kCommon), DatabaseOf(std::string(kCommon) + kLater)};
}

}  // namespace lull::imports
