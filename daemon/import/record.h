// What a reader finds in a trace, whatever its format: stretches of threads and
// devices, and the tables that they name. Readers (chrome_reader.h) fill it,
// translate.h makes events of it.
//
// Pure data. Times are ns of the trace's own clock.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "daemon/import/string_table.h"
#include "ingest.pb.h"

namespace lull::imports {

enum class Kind : uint8_t {
  // Stretches of threads, outermost first where two begin and end together.
  kAnnotation,  // record_function, by whoever; a training step, a DataLoader's __next__
  kPython,      // a frame of Python
  kOperator,    // of PyTorch
  kGc,          // a pause of Python's collector
  kCall,        // of the CUDA or HIP runtime or driver
  kMemory,      // an instant: a tensor's memory was taken or given back
  // Stretches of devices.
  kKernel,
  kCopy,
  kMemset,
};
inline bool IsOfDevice(Kind kind) { return kind >= Kind::kKernel; }

// 64 bytes. What a field means by the kind:
//   kPython      name: of the function; text: its file; line: its first line;
//                extra: the "Call stack" that it has, as of operators
//   kOperator    text: the "Call stack", 0 = none; bytes: its sequence number + 1, 0 =
//   none;
//                extra: > 0: of the backward pass, the number of the forward's thread
//   kAnnotation  text as above
//   kCall        name; correlation
//   kMemory      bytes (signed); address; extra: index into Trace::memory_totals
//   kKernel      extra: index into Trace::kernels; stream: index into Trace::streams
//   kCopy        bytes; extra: shape as in lull.v1 (copy kind, source, destination)
//   kMemset      bytes
struct Record {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint64_t bytes = 0;
  uint64_t address = 0;
  uint32_t correlation = 0;  // 0: none
  uint32_t tid = 0;
  uint32_t name = 0;  // in Trace::strings
  uint32_t text = 0;
  int32_t line = 0;
  uint32_t extra = 0;
  uint32_t stream = 0;
  Kind kind = Kind::kCall;
};
static_assert(sizeof(Record) == 64);

// A parent comes before its children.
struct RecordOrder {
  bool operator()(const Record& a, const Record& b) const {
    return std::tie(a.start_ns, b.end_ns, a.kind) <
           std::tie(b.start_ns, a.end_ns, b.kind);
  }
};

struct Stream {
  uint32_t device = 0;
  uint32_t context = 0;
  uint64_t stream = 0;  // ROCm's are addresses
  friend auto operator<=>(const Stream&, const Stream&) = default;
};

struct MemoryTotals {
  uint32_t device = 0;  // (c10::DeviceType << 8) | index
  bool known = false;   // the two below
  uint64_t allocated = 0;
  uint64_t reserved = 0;
};

// A copy or memset on the device, by the call that submitted it.
struct Copied {
  uint64_t start_ns = 0;  // of the first
  uint64_t bytes = 0;     // of all
  uint32_t shape = 0;
  Kind kind = Kind::kCopy;
};

// One process of a trace.
struct Trace {
  StringTable strings;
  // In any order. Not a vector: that takes twice its memory while it grows.
  std::deque<Record> records;
  std::vector<v1::KernelDef> kernels;
  size_t kernel_bytes = 0;  // about what they and the look-up of them take
  std::vector<Stream> streams;
  std::vector<v1::GpuDeviceDef> devices;  // as the trace lists them
  std::vector<MemoryTotals> memory_totals;

  uint32_t pid = 0;
  int32_t rank = -1;
  int32_t world_size = 0;  // 0: not told
  // Times of the records plus this are CLOCK_REALTIME in ns.
  uint64_t base_ns = 0;

  // What was submitted, by correlation id.
  absl::flat_hash_set<uint32_t> called;  // ids of calls
  // Ids of records of devices -> what the first that was read is: a number of its
  // kernel.
  absl::flat_hash_map<uint32_t, uint32_t> ran;
  absl::flat_hash_map<uint32_t, Copied> copied;

  // What the import tells of itself.
  std::map<std::string, uint64_t> ignored;  // why -> events
  uint64_t events = 0;                      // of the format, in all
  uint64_t resolution_ns = 1000;            // of the times

  // About what all of it takes.
  size_t bytes() const {
    constexpr size_t kStream = 160, kId = 10, kRan = 20, kCopied = 64;  // in tables
    return records.size() * sizeof(Record) + strings.bytes() + kernel_bytes +
           memory_totals.size() * 2 * sizeof(MemoryTotals) + streams.size() * kStream +
           called.size() * kId + ran.size() * kRan + copied.size() * kCopied;
  }
};

// What a KernelDef with a name of so many bytes takes, in Trace::kernels and in a
// reader's look-up.
constexpr size_t BytesOfKernel(size_t name_bytes) { return 2 * name_bytes + 512; }

// Takes note of a copy or memset that has a correlation id.
inline void AddCopied(const Record& record, Trace* trace) {
  auto [it, fresh] = trace->copied.try_emplace(record.correlation);
  Copied& copied = it->second;
  if (fresh || record.start_ns < copied.start_ns) copied.start_ns = record.start_ns;
  copied.bytes += record.bytes;
  copied.shape = record.extra;
  copied.kind = record.kind;
}

}  // namespace lull::imports
