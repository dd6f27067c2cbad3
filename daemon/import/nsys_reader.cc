#include "daemon/import/nsys_reader.h"

#include <sqlite3.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status.h"
#include "daemon/base/text.h"

namespace lull::imports {
namespace {

constexpr char kMagic[] = "SQLite format 3";
constexpr int64_t kLatestNs = int64_t{1} << 61;
constexpr int64_t kPushPopRange = 59;  // of NVTX_EVENTS.eventType
// Of TARGET_INFO_GPU and the like, garbage apart.
constexpr int kMostDevices = 64;

struct Close {
  void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, Close>;
using Statement = std::unique_ptr<sqlite3_stmt, Close>;

// "cudaLaunchKernel_v7000", "cudaMemcpyAsync_ptsz_v7000"
std::string CallName(std::string name) {
  const size_t version = name.rfind("_v");
  if (version != std::string::npos && version + 2 < name.size() &&
      name.find_first_not_of("0123456789", version + 2) == std::string::npos) {
    name.resize(version);
  }
  for (std::string_view end : {"_ptsz", "_ptds"}) {
    if (name.size() > end.size() && name.ends_with(end)) {
      name.resize(name.size() - end.size());
    }
  }
  return CleanText(name);
}

// Kinds of memory are CUPTI's minus 1; 7 is unknown.
uint32_t MemoryKind(int64_t kind) {
  return kind >= 0 && kind <= 4 ? static_cast<uint32_t>(kind + 1) : 0;
}

uint32_t Small(int64_t value) {
  return value > 0 ? static_cast<uint32_t>(std::min<int64_t>(value, UINT32_MAX)) : 0;
}

class Reader {
 public:
  Reader(Database database, const ReadLimits& limits)
      : database_(std::move(database)), limits_(limits) {}

  absl::StatusOr<std::vector<Trace>> Read() {
    LULL_RETURN_IF_ERROR(ReadAll());
    std::vector<Trace> traces;
    uint64_t kept = 0;
    for (auto& [pid, process] : processes_) {
      Trace& trace = process.trace;
      kept += trace.records.size();
      // A process without any work of a GPU is none of the job's.
      if (trace.ran.empty() && trace.called.empty()) continue;
      trace.pid = pid;
      trace.base_ns = base_ns_;
      trace.resolution_ns = 1;
      trace.devices = devices_;
      traces.push_back(std::move(trace));
    }
    if (kept == 0) {
      return absl::InvalidArgumentError(
          "no export of Nsight Systems with any CUDA activity");
    }
    if (traces.empty()) traces.push_back(std::move(processes_.begin()->second.trace));
    traces.front().events = rows_;
    traces.front().ignored = std::move(ignored_);
    return traces;
  }

 private:
  struct Process {
    Trace trace;
    std::map<Stream, uint32_t> streams;
    absl::flat_hash_map<std::string, uint32_t> kernels;
  };
  using Row = sqlite3_stmt*;

  absl::Status ReadAll() {
    LULL_RETURN_IF_ERROR(ReadStart());
    LULL_RETURN_IF_ERROR(ReadDevices());
    LULL_RETURN_IF_ERROR(
        Each("CUPTI_ACTIVITY_KIND_RUNTIME",
             {"start", "end", "globalTid", "correlationId", "nameId", "eventClass"},
             [this](Row row) { return AddCall(row); }));
    LULL_RETURN_IF_ERROR(Each(
        "CUPTI_ACTIVITY_KIND_KERNEL",
        {"start", "end", "deviceId", "contextId", "streamId", "correlationId",
         "globalPid", "demangledName", "gridX", "gridY", "gridZ", "blockX", "blockY",
         "blockZ", "registersPerThread", "staticSharedMemory", "dynamicSharedMemory"},
        [this](Row row) { return AddKernel(row); }));
    LULL_RETURN_IF_ERROR(
        Each("CUPTI_ACTIVITY_KIND_MEMCPY",
             {"start", "end", "deviceId", "contextId", "streamId", "correlationId",
              "globalPid", "bytes", "copyKind", "srcKind", "dstKind"},
             [this](Row row) { return AddCopy(row, Kind::kCopy); }));
    LULL_RETURN_IF_ERROR(Each("CUPTI_ACTIVITY_KIND_MEMSET",
                              {"start", "end", "deviceId", "contextId", "streamId",
                               "correlationId", "globalPid", "bytes"},
                              [this](Row row) { return AddCopy(row, Kind::kMemset); }));
    return Each("NVTX_EVENTS",
                {"start", "end", "globalTid", "eventType", "text", "textId"},
                [this](Row row) { return AddRange(row); });
  }

  absl::StatusOr<Statement> Prepare(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &statement, nullptr) !=
        SQLITE_OK) {
      return Damaged();
    }
    return Statement(statement);
  }

  absl::Status Damaged() {
    return absl::DataLossError(
        absl::StrCat("the database is damaged: ", sqlite3_errmsg(database_.get())));
  }

  // Calls visit(row) with the columns in the order in which they are named; NULL for
  // those that the table does not have. No table: no rows.
  template <typename Visit>
  absl::Status Each(const std::string& table, const std::vector<std::string>& columns,
                    Visit visit) {
    LULL_ASSIGN_OR_RETURN(Statement info,
                          Prepare(absl::StrCat("PRAGMA table_info(", table, ")")));
    std::set<std::string> there;
    while (sqlite3_step(info.get()) == SQLITE_ROW) there.insert(Text(info.get(), 1));
    if (there.empty()) return absl::OkStatus();
    std::vector<std::string> wanted;
    for (const std::string& column : columns) {
      wanted.push_back(there.contains(column) ? absl::StrCat("\"", column, "\"")
                                              : "NULL");
    }
    LULL_ASSIGN_OR_RETURN(
        Statement rows,
        Prepare(absl::StrCat("SELECT ", absl::StrJoin(wanted, ","), " FROM ", table)));
    int step;
    while ((step = sqlite3_step(rows.get())) == SQLITE_ROW) {
      ++rows_;
      LULL_RETURN_IF_ERROR(visit(rows.get()));
      if (++kept_ > limits_.records) {
        return absl::ResourceExhaustedError(
            absl::StrCat("more than ", limits_.records, " rows"));
      }
    }
    return step == SQLITE_DONE ? absl::OkStatus() : Damaged();
  }

  static int64_t Number(Row row, int column) {
    return sqlite3_column_int64(row, column);
  }
  static bool IsNull(Row row, int column) {
    return sqlite3_column_type(row, column) == SQLITE_NULL;
  }
  static std::string Text(Row row, int column) {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
    return text == nullptr ? std::string() : CleanText(text);
  }

  absl::Status ReadStart() {
    return Each("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"}, [this](Row row) {
      const int64_t base = Number(row, 0);
      if (base > 0 && base < kLatestNs) base_ns_ = static_cast<uint64_t>(base);
      return absl::OkStatus();
    });
  }

  absl::Status ReadDevices() {
    return Each(
        "TARGET_INFO_GPU",
        {"id", "name", "smCount", "computeMajor", "computeMinor", "totalMemory",
         "maxWarpsPerSm", "threadsPerWarp", "maxBlocksPerSm", "maxRegistersPerSm",
         "maxShmemPerSm"},
        [this](Row row) {
          if (devices_.size() >= kMostDevices) return absl::OkStatus();
          lull::v1::GpuDeviceDef& device = devices_.emplace_back();
          device.set_device(Small(Number(row, 0)));
          device.set_name(Text(row, 1));
          device.set_multiprocessors(Small(Number(row, 2)));
          device.set_compute_capability(10 * std::min(Small(Number(row, 3)), 1000u) +
                                        std::min(Small(Number(row, 4)), 9u));
          device.set_total_bytes(Small(Number(row, 5) >> 10) * uint64_t{1024});
          device.set_warp_size(Small(Number(row, 7)));
          device.set_max_threads_per_multiprocessor(
              std::min(Small(Number(row, 6)), 1000u) *
              std::min(Small(Number(row, 7)), 1000u));
          device.set_max_blocks_per_multiprocessor(Small(Number(row, 8)));
          device.set_max_registers_per_multiprocessor(Small(Number(row, 9)));
          device.set_max_shared_bytes_per_multiprocessor(Small(Number(row, 10)));
          return absl::OkStatus();
        });
  }

  // Of StringIds.
  absl::StatusOr<std::string> StringOf(int64_t id) {
    if (strings_ == nullptr) {
      LULL_ASSIGN_OR_RETURN(strings_,
                            Prepare("SELECT value FROM StringIds WHERE id=?1"));
    }
    sqlite3_reset(strings_.get());
    sqlite3_bind_int64(strings_.get(), 1, id);
    const int step = sqlite3_step(strings_.get());
    if (step == SQLITE_ROW) return Text(strings_.get(), 0);
    if (step != SQLITE_DONE) return Damaged();
    return std::string();
  }

  // Start and end of the row; false where they cannot be.
  bool Times(Row row, Record* record) {
    const int64_t start = Number(row, 0), end = Number(row, 1);
    if (IsNull(row, 0) || IsNull(row, 1) || start < 0 || end < start ||
        end > kLatestNs) {
      ++ignored_["without a time that can be"];
      return false;
    }
    record->start_ns = static_cast<uint64_t>(start);
    record->end_ns = static_cast<uint64_t>(end);
    return true;
  }

  // Of globalTid or globalPid: 24 bits each of pid and tid.
  Process& ProcessOf(int64_t global) {
    return processes_[static_cast<uint32_t>(global >> 24 & 0xffffff)];
  }
  static uint32_t Correlation(int64_t id) {
    return id > 0 && id < UINT32_MAX ? static_cast<uint32_t>(id) : 0;
  }

  absl::Status AddCall(Row row) {
    // Exports of 2022 have each call twice.
    if (!IsNull(row, 5) && Number(row, 5) != 0 && Number(row, 5) != 1) {
      ++ignored_["calls of neither runtime nor driver"];
      return absl::OkStatus();
    }
    Record record;
    record.kind = Kind::kCall;
    if (!Times(row, &record)) return absl::OkStatus();
    Trace& trace = ProcessOf(Number(row, 2)).trace;
    auto [name, fresh] = call_names_.try_emplace(Number(row, 4));
    if (fresh) {
      LULL_ASSIGN_OR_RETURN(std::string text, StringOf(Number(row, 4)));
      name->second = CallName(std::move(text));
    }
    record.name = trace.strings.Intern(name->second);
    record.tid = static_cast<uint32_t>(Number(row, 2) & 0xffffff);
    record.correlation = Correlation(Number(row, 3));
    if (record.correlation != 0) trace.called.insert(record.correlation);
    trace.records.push_back(record);
    return absl::OkStatus();
  }

  // Columns 2 to 6 of what ran on a device. nullptr: it is none.
  Process* Ran(Row row, Record* record) {
    if (!Times(row, record)) return nullptr;
    if (Number(row, 2) < 0 || Number(row, 2) >= kMaxWireDevices) {
      ++ignored_["of a device with an absurd number"];
      return nullptr;
    }
    // Exports that were cut down do not tell whose it is.
    Process& process = IsNull(row, 6) && !processes_.empty()
                           ? processes_.begin()->second
                           : ProcessOf(Number(row, 6));
    Stream stream;
    stream.device = static_cast<uint32_t>(Number(row, 2));
    stream.context = Small(Number(row, 3));
    stream.stream = static_cast<uint64_t>(Number(row, 4));
    auto [it, fresh] = process.streams.try_emplace(
        stream, static_cast<uint32_t>(process.trace.streams.size()));
    if (fresh) process.trace.streams.push_back(stream);
    record->stream = it->second;
    record->correlation = Correlation(Number(row, 5));
    return &process;
  }

  absl::Status AddKernel(Row row) {
    Record record;
    record.kind = Kind::kKernel;
    Process* process = Ran(row, &record);
    if (process == nullptr) return absl::OkStatus();
    auto [name, fresh_name] = kernel_names_.try_emplace(Number(row, 7));
    if (fresh_name) {
      LULL_ASSIGN_OR_RETURN(name->second, StringOf(Number(row, 7)));
    }
    lull::v1::KernelDef kernel;
    kernel.set_name(name->second);
    kernel.set_grid_x(Small(Number(row, 8)));
    kernel.set_grid_y(Small(Number(row, 9)));
    kernel.set_grid_z(Small(Number(row, 10)));
    kernel.set_block_x(Small(Number(row, 11)));
    kernel.set_block_y(Small(Number(row, 12)));
    kernel.set_block_z(Small(Number(row, 13)));
    kernel.set_registers_per_thread(Small(Number(row, 14)));
    kernel.set_static_shared_bytes(Small(Number(row, 15)));
    kernel.set_dynamic_shared_bytes(Small(Number(row, 16)));
    Trace& trace = process->trace;
    auto [it, fresh] = process->kernels.try_emplace(
        kernel.SerializeAsString(), static_cast<uint32_t>(trace.kernels.size()));
    if (fresh) trace.kernels.push_back(std::move(kernel));
    record.extra = it->second;
    if (record.correlation != 0) {
      trace.ran.try_emplace(record.correlation, record.extra + 1);
    }
    trace.records.push_back(record);
    return absl::OkStatus();
  }

  absl::Status AddCopy(Row row, Kind kind) {
    Record record;
    record.kind = kind;
    Process* process = Ran(row, &record);
    if (process == nullptr) return absl::OkStatus();
    record.bytes = static_cast<uint64_t>(std::max<int64_t>(0, Number(row, 7)));
    if (kind == Kind::kCopy) {
      record.extra = (Small(Number(row, 8)) & 0xff) | MemoryKind(Number(row, 9)) << 8 |
                     MemoryKind(Number(row, 10)) << 16;
    }
    Trace& trace = process->trace;
    if (record.correlation != 0) {
      trace.ran.try_emplace(record.correlation, 0);
      AddCopied(record, &trace);
    }
    trace.records.push_back(record);
    return absl::OkStatus();
  }

  absl::Status AddRange(Row row) {
    Record record;
    record.kind = Kind::kAnnotation;
    if (Number(row, 3) != kPushPopRange) {
      ++ignored_["NVTX events that are no ranges of a thread"];
      return absl::OkStatus();
    }
    if (!Times(row, &record)) return absl::OkStatus();
    std::string text = Text(row, 4);
    if (text.empty()) {
      LULL_ASSIGN_OR_RETURN(text, StringOf(Number(row, 5)));
    }
    Trace& trace = ProcessOf(Number(row, 2)).trace;
    record.name = trace.strings.Intern(text);
    record.tid = static_cast<uint32_t>(Number(row, 2) & 0xffffff);
    trace.records.push_back(record);
    return absl::OkStatus();
  }

  Database database_;
  const ReadLimits limits_;
  Statement strings_;
  std::map<uint32_t, Process> processes_;
  std::vector<lull::v1::GpuDeviceDef> devices_;
  std::map<int64_t, std::string> call_names_, kernel_names_;
  std::map<std::string, uint64_t> ignored_;
  uint64_t base_ns_ = 0;
  uint64_t rows_ = 0;
  size_t kept_ = 0;
};

}  // namespace

bool IsSqlite(const std::string& path) {
  std::string head(sizeof(kMagic), '\0');
  std::ifstream(path, std::ios::binary)
      .read(head.data(), static_cast<std::streamsize>(head.size()));
  return head == std::string(kMagic, sizeof(kMagic));
}

absl::StatusOr<std::vector<Trace>> ReadNsysTrace(const std::string& path,
                                                 const ReadLimits& limits) {
  sqlite3* opened = nullptr;
  const int status =
      sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
  Database database(opened);
  if (status != SQLITE_OK) return absl::DataLossError("SQLite cannot open it");
  // It is a stranger's: nothing of it runs, and nothing is believed.
  sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, 16 << 20);
  return Reader(std::move(database), limits).Read();
}

}  // namespace lull::imports
