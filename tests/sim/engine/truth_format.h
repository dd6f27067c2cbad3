// The ground-truth log, as it lies in the file. tests/sim/truth.py reads it.
//
// A file belongs to one process image: a header of kHeaderBytes, then chunks of
// kChunkBytes. A thread takes a chunk, fills it with records from its start, and
// takes the next. `type` is stored last, with release: a record whose type is 0
// is not there yet, and ends its chunk. The file is mapped shared, so what was
// written survives any death of the process. An API call is written when it
// begins, with end_ns 0, and completed when it returns: a call that never
// returned is in the log.
#pragma once

#include <cstdint>
#include <type_traits>

namespace lull::sim {

inline constexpr uint64_t kTruthMagic = 0x31485455524d4953ull;  // "SIMRUTH1"
inline constexpr uint32_t kTruthVersion = 1;
inline constexpr uint64_t kHeaderBytes = 4096;
inline constexpr uint64_t kChunkBytes = 96 * 680;  // 680 records, 63.75 KiB

struct TruthHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t pid;
  int64_t monotonic_ns;  // both clocks at the same moment
  int64_t realtime_ns;
  uint64_t chunks;   // taken so far
  uint64_t dropped;  // records that found no room
};

enum class RecordType : uint32_t {
  kNone = 0,
  kApi = 1,
  kOp = 2,
  kName = 3,
  kExchange = 4
};

// Flags of an API record.
inline constexpr uint16_t kApiRuntime = 1;  // of libcudart; else of libcuda

// An exchange is written when it begins, with end_ns 0, beside its kernel's kOp, which
// is written when the end is known:
//   tid      name of the kernel            kind     error (ncclResult_t)
//   extra    sequence, or -1               sub      own rank
//   bytes    of the calls                  device   size of the communicator
//   handle   communicator                  aux      calls fused into the kernel
//   name     members, "0,2,..."            parent   communicator that it was split from
//   grid     names of the calls            block    device
//
//            kApi                          kOp
//   extra    ns blocked on the device      ns of submission
//   handle   0                             function, event, destination
//   kind     kApiRuntime or 0              OpKind
//   sub      depth: 0 = the program's own  CopyKind, +16 if pageable (copies)
//   aux      result of the call            id of the executable graph
//   parent   correlation of the outer call id of the context
struct TruthRecord {
  uint32_t type;  // RecordType
  uint32_t tid;
  uint64_t correlation;
  int64_t start_ns;
  int64_t end_ns;
  int64_t extra;
  uint64_t stream;  // id: 0 legacy default stream of the first context
  uint64_t bytes;
  uint64_t handle;
  uint32_t name;
  uint16_t kind;
  uint16_t sub;
  uint32_t device;
  uint32_t aux;
  uint64_t parent;
  uint32_t grid;
  uint32_t block;
};

// The text of name `name`, in parts of kNameBytes.
inline constexpr uint32_t kNameBytes = 80;
struct TruthName {
  uint32_t type;  // kName
  uint32_t name;
  uint32_t part;
  uint32_t size;  // of the whole text
  char text[kNameBytes];
};

static_assert(sizeof(TruthHeader) == 48);
static_assert(sizeof(TruthRecord) == 96 && sizeof(TruthName) == 96);
static_assert(std::is_trivially_copyable_v<TruthRecord>);

}  // namespace lull::sim
