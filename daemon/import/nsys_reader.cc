#include "daemon/import/nsys_reader.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <utility>

#include "daemon/base/status.h"
#include "daemon/base/text.h"
#include "daemon/import/sqlite_file.h"

namespace lull::imports {
namespace {

constexpr char kMagic[] = "SQLite format 3";
constexpr int64_t kLatestNsysNs = int64_t{1} << 61;
constexpr int64_t kPushPopRange = 59;  // of NVTX_EVENTS.eventType
// Limit for rows of TARGET_INFO_GPU and the like: more is garbage.
constexpr int kMostDevices = 64;
constexpr size_t kMostProcesses = 4096;
constexpr uint64_t kRowsOfACheck = 1024;

// "cudaLaunchKernel_v7000", "cudaMemcpyAsync_ptsz_v7000"
std::string CallName(std::string name) {
  const size_t version = name.rfind("_v");
  if (version != std::string::npos && version + 2 < name.size() &&
      name.find_first_not_of("0123456789", version + 2) == std::string::npos) {
    name.erase(version);
  }
  for (std::string_view end : {"_ptsz", "_ptds"}) {
    if (name.size() > end.size() && name.ends_with(end)) {
      name.erase(name.size() - end.size());
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

class NsysReader {
 public:
  NsysReader(std::unique_ptr<SqliteFile> file, const ReadLimits& limits)
      : file_(std::move(file)), limits_(limits) {}

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
  using Row = SqliteFile::Row;

  absl::Status ReadAll() {
    LULL_RETURN_IF_ERROR(ReadStart());
    LULL_RETURN_IF_ERROR(ReadDevices());
    LULL_RETURN_IF_ERROR(
        Each("CUPTI_ACTIVITY_KIND_RUNTIME",
             {"start", "end", "globalTid", "correlationId", "nameId", "eventClass"},
             [this](const Row& row) { return AddCall(row); }));
    LULL_RETURN_IF_ERROR(Each(
        "CUPTI_ACTIVITY_KIND_KERNEL",
        {"start", "end", "deviceId", "contextId", "streamId", "correlationId",
         "globalPid", "demangledName", "gridX", "gridY", "gridZ", "blockX", "blockY",
         "blockZ", "registersPerThread", "staticSharedMemory", "dynamicSharedMemory"},
        [this](const Row& row) { return AddKernel(row); }));
    LULL_RETURN_IF_ERROR(
        Each("CUPTI_ACTIVITY_KIND_MEMCPY",
             {"start", "end", "deviceId", "contextId", "streamId", "correlationId",
              "globalPid", "bytes", "copyKind", "srcKind", "dstKind"},
             [this](const Row& row) { return AddCopy(row, Kind::kCopy); }));
    LULL_RETURN_IF_ERROR(
        Each("CUPTI_ACTIVITY_KIND_MEMSET",
             {"start", "end", "deviceId", "contextId", "streamId", "correlationId",
              "globalPid", "bytes"},
             [this](const Row& row) { return AddCopy(row, Kind::kMemset); }));
    return Each("NVTX_EVENTS",
                {"start", "end", "globalTid", "eventType", "text", "textId"},
                [this](const Row& row) { return AddRange(row); });
  }

  // Rows of a table, within the limits.
  template <typename Visit>
  absl::Status Each(const std::string& table, const std::vector<std::string>& columns,
                    Visit visit) {
    return file_->Each(table, columns, [&](const Row& row) -> absl::Status {
      LULL_RETURN_IF_ERROR(visit(row));
      // Adding up what processes take is for now and then.
      if (++rows_ % kRowsOfACheck != 0 && rows_ <= limits_.records) {
        return absl::OkStatus();
      }
      size_t bytes = string_bytes_;
      for (const auto& [pid, process] : processes_) bytes += process.trace.bytes();
      return CheckLimits(rows_, bytes, limits_);
    });
  }

  absl::Status ReadStart() {
    return Each("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"},
                [this](const Row& row) {
                  const int64_t base = row.Number(0);
                  if (base > 0 && base < kLatestNsysNs)
                    base_ns_ = static_cast<uint64_t>(base);
                  return absl::OkStatus();
                });
  }

  absl::Status ReadDevices() {
    return Each(
        "TARGET_INFO_GPU",
        {"id", "name", "smCount", "computeMajor", "computeMinor", "totalMemory",
         "maxWarpsPerSm", "threadsPerWarp", "maxBlocksPerSm", "maxRegistersPerSm",
         "maxShmemPerSm"},
        [this](const Row& row) {
          if (devices_.size() >= kMostDevices) return absl::OkStatus();
          v1::GpuDeviceDef& device = devices_.emplace_back();
          device.set_device(Small(row.Number(0)));
          device.set_name(row.Text(1));
          device.set_multiprocessors(Small(row.Number(2)));
          device.set_compute_capability(10 * std::min(Small(row.Number(3)), 1000u) +
                                        std::min(Small(row.Number(4)), 9u));
          device.set_total_bytes(Small(row.Number(5) >> 10) * uint64_t{1024});
          device.set_warp_size(Small(row.Number(7)));
          device.set_max_threads_per_multiprocessor(
              std::min(Small(row.Number(6)), 1000u) *
              std::min(Small(row.Number(7)), 1000u));
          device.set_max_blocks_per_multiprocessor(Small(row.Number(8)));
          device.set_max_registers_per_multiprocessor(Small(row.Number(9)));
          device.set_max_shared_bytes_per_multiprocessor(Small(row.Number(10)));
          return absl::OkStatus();
        });
  }

  // A text of StringIds. If the table has no key, all are read at once: each look for
  // one would be a look at all.
  absl::StatusOr<std::string> StringOf(int64_t id) {
    if (!strings_known_) {
      LULL_ASSIGN_OR_RETURN(has_key_, file_->HasKey("StringIds"));
      if (!has_key_) LULL_RETURN_IF_ERROR(ReadStrings());
      strings_known_ = true;
    }
    if (has_key_) return file_->TextById("StringIds", "value", id);
    auto found = strings_.find(id);
    return found == strings_.end() ? std::string() : found->second;
  }

  absl::Status ReadStrings() {
    return Each("StringIds", {"id", "value"}, [this](const Row& row) {
      auto [it, fresh] = strings_.try_emplace(row.Number(0));
      if (fresh) {
        it->second = row.Text(1);
        string_bytes_ += it->second.size() + 128;
      }
      return absl::OkStatus();
    });
  }

  // Start and end of the row; false where they cannot be.
  bool Times(const Row& row, Record* record) {
    const int64_t start = row.Number(0), end = row.Number(1);
    if (row.IsNull(0) || row.IsNull(1) || start < 0 || end < start ||
        end > kLatestNsysNs) {
      ++ignored_["without a time that can be"];
      return false;
    }
    record->start_ns = static_cast<uint64_t>(start);
    record->end_ns = static_cast<uint64_t>(end);
    return true;
  }

  // The pid of a globalTid or globalPid, which has 24 bits each of pid and tid.
  Process& ProcessOf(int64_t global) {
    const auto pid = static_cast<uint32_t>(global >> 24 & 0xffffff);
    if (processes_.size() < kMostProcesses || processes_.contains(pid)) {
      return processes_[pid];
    }
    ++ignored_["of processes beyond those that an import takes"];
    nobodys_ = Process();
    return nobodys_;
  }
  static uint32_t Correlation(int64_t id) {
    return id > 0 && id < UINT32_MAX ? static_cast<uint32_t>(id) : 0;
  }

  absl::Status AddCall(const Row& row) {
    // Exports of 2022 have each call twice.
    if (!row.IsNull(5) && row.Number(5) != 0 && row.Number(5) != 1) {
      ++ignored_["calls of neither runtime nor driver"];
      return absl::OkStatus();
    }
    Record record;
    record.kind = Kind::kCall;
    if (!Times(row, &record)) return absl::OkStatus();
    Trace& trace = ProcessOf(row.Number(2)).trace;
    auto [name, fresh] = call_names_.try_emplace(row.Number(4));
    if (fresh) {
      LULL_ASSIGN_OR_RETURN(std::string text, StringOf(row.Number(4)));
      name->second = CallName(std::move(text));
      string_bytes_ += name->second.size() + 128;
    }
    record.name = trace.strings.Intern(name->second);
    record.tid = static_cast<uint32_t>(row.Number(2) & 0xffffff);
    record.correlation = Correlation(row.Number(3));
    if (record.correlation != 0) trace.called.insert(record.correlation);
    trace.records.push_back(record);
    return absl::OkStatus();
  }

  // Columns 2 to 6 of what ran on a device. nullptr: it is none.
  Process* Ran(const Row& row, Record* record) {
    if (!Times(row, record)) return nullptr;
    if (row.Number(2) < 0 || row.Number(2) >= kMaxWireDevices) {
      ++ignored_["of a device with an absurd number"];
      return nullptr;
    }
    // Exports that were cut down do not tell whose it is.
    Process& process = row.IsNull(6) && !processes_.empty() ? processes_.begin()->second
                                                            : ProcessOf(row.Number(6));
    Stream stream;
    stream.device = static_cast<uint32_t>(row.Number(2));
    stream.context = Small(row.Number(3));
    stream.stream = static_cast<uint64_t>(row.Number(4));
    auto [it, fresh] = process.streams.try_emplace(
        stream, static_cast<uint32_t>(process.trace.streams.size()));
    if (fresh) process.trace.streams.push_back(stream);
    record->stream = it->second;
    record->correlation = Correlation(row.Number(5));
    return &process;
  }

  absl::Status AddKernel(const Row& row) {
    Record record;
    record.kind = Kind::kKernel;
    Process* process = Ran(row, &record);
    if (process == nullptr) return absl::OkStatus();
    auto [name, fresh_name] = kernel_names_.try_emplace(row.Number(7));
    if (fresh_name) {
      LULL_ASSIGN_OR_RETURN(name->second, StringOf(row.Number(7)));
      string_bytes_ += name->second.size() + 128;
    }
    v1::KernelDef kernel;
    kernel.set_name(name->second);
    kernel.set_grid_x(Small(row.Number(8)));
    kernel.set_grid_y(Small(row.Number(9)));
    kernel.set_grid_z(Small(row.Number(10)));
    kernel.set_block_x(Small(row.Number(11)));
    kernel.set_block_y(Small(row.Number(12)));
    kernel.set_block_z(Small(row.Number(13)));
    kernel.set_registers_per_thread(Small(row.Number(14)));
    kernel.set_static_shared_bytes(Small(row.Number(15)));
    kernel.set_dynamic_shared_bytes(Small(row.Number(16)));
    Trace& trace = process->trace;
    auto [it, fresh] = process->kernels.try_emplace(
        kernel.SerializeAsString(), static_cast<uint32_t>(trace.kernels.size()));
    if (fresh) {
      trace.kernel_bytes += BytesOfKernel(name->second.size());
      trace.kernels.push_back(std::move(kernel));
    }
    record.extra = it->second;
    if (record.correlation != 0) {
      trace.ran.try_emplace(record.correlation, record.extra + 1);
    }
    trace.records.push_back(record);
    return absl::OkStatus();
  }

  absl::Status AddCopy(const Row& row, Kind kind) {
    Record record;
    record.kind = kind;
    Process* process = Ran(row, &record);
    if (process == nullptr) return absl::OkStatus();
    record.bytes = static_cast<uint64_t>(std::max<int64_t>(0, row.Number(7)));
    if (kind == Kind::kCopy) {
      record.extra = (Small(row.Number(8)) & 0xff) | MemoryKind(row.Number(9)) << 8 |
                     MemoryKind(row.Number(10)) << 16;
    }
    Trace& trace = process->trace;
    if (record.correlation != 0) {
      trace.ran.try_emplace(record.correlation, 0);
      AddCopied(record, &trace);
    }
    trace.records.push_back(record);
    return absl::OkStatus();
  }

  absl::Status AddRange(const Row& row) {
    Record record;
    record.kind = Kind::kAnnotation;
    if (row.Number(3) != kPushPopRange) {
      ++ignored_["NVTX events that are no ranges of a thread"];
      return absl::OkStatus();
    }
    if (!Times(row, &record)) return absl::OkStatus();
    std::string text = row.Text(4);
    if (text.empty()) {
      LULL_ASSIGN_OR_RETURN(text, StringOf(row.Number(5)));
    }
    Trace& trace = ProcessOf(row.Number(2)).trace;
    record.name = trace.strings.Intern(text);
    record.tid = static_cast<uint32_t>(row.Number(2) & 0xffffff);
    trace.records.push_back(record);
    return absl::OkStatus();
  }

  std::unique_ptr<SqliteFile> file_;
  const ReadLimits limits_;
  bool strings_known_ = false;
  bool has_key_ = false;                    // of StringIds
  std::map<int64_t, std::string> strings_;  // without it
  size_t string_bytes_ = 0;                 // what the maps of strings take
  std::map<uint32_t, Process> processes_;
  Process nobodys_;  // of the processes beyond those that are taken
  std::vector<v1::GpuDeviceDef> devices_;
  std::map<int64_t, std::string> call_names_, kernel_names_;
  std::map<std::string, uint64_t> ignored_;
  uint64_t base_ns_ = 0;
  uint64_t rows_ = 0;
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
  LULL_ASSIGN_OR_RETURN(std::unique_ptr<SqliteFile> file, SqliteFile::Open(path));
  return NsysReader(std::move(file), limits).Read();
}

}  // namespace lull::imports
