// The arena: an append-only heap of interned stacks and code objects.
//
// An entry is written once, before any event that names it is committed, and
// never changes or moves. Writer: any thread of the target, by an atomic bump
// of SegmentHeader::arena_used. Reader: the relay, which finds entries only
// through the Refs of committed events; the release store of a ring's head
// publishes the entries that the events behind it name. When the arena is full
// Refs are 0 and SegmentHeader::arena_rejected counts.
//
// Entries are 16-byte aligned; Ref = offset / 16. Offset 0 is never used.
#pragma once

#include <cstdint>
#include <type_traits>

#include "preload/abi/event.h"

namespace lull::abi {

enum class EntryKind : uint32_t {
  kNone = 0,
  kPythonStack = 1,
  kNativeStack = 2,
  kPythonCode = 3,
  kText = 4,
  kKernel = 5,
  kGpuStream = 6,
  kGpuDevice = 7,
  kScopeStack = 8,
  kBackward = 9,
};

struct EntryHeader {
  EntryKind kind;
  uint32_t size;  // bytes of the whole entry, this header included
};

inline constexpr uint32_t kMaxPythonFrames = 128;
inline constexpr uint32_t kMaxNativeFrames = 128;

enum StackFlag : uint32_t {
  kStackTruncated = 1 << 0,  // there were more frames than fit
};

// Followed by `depth` frames of 8 bytes, innermost first.
//   kPythonStack: PythonFrame
//   kNativeStack: absolute return addresses (innermost first); the relay looks
//                 up address - 1
//   kScopeStack:  Ref of a kText entry, the scope's name, as 64 bits
struct StackEntry {
  EntryHeader header;
  uint64_t hash;  // writer's own use
  uint32_t depth;
  uint32_t flags;  // StackFlag
};

struct PythonFrame {
  Ref code;       // kPythonCode entry
  int32_t lasti;  // byte offset of the instruction in co_code; -1 = not started
};

// Followed by: filename, qualified name (name before 3.11), line table, without
// terminators. Text is UTF-8 as CPython holds it, or Latin-1/UCS widened to
// UTF-8 by the writer; the reader must check it.
struct CodeEntry {
  EntryHeader header;
  uint64_t code_address;  // identity of the live object, writer's own use
  uint64_t name_address;  // addresses and ends of its names, hashed; also its own use
  uint64_t linetable_address;  // as above
  int32_t first_line;
  uint16_t python_minor;  // 8 for 3.8: decides how the line table is read
  uint16_t filename_size;
  uint16_t name_size;
  uint16_t linetable_left_out;  // 1: it was too large to keep, and its size is 0
  uint32_t linetable_size;      // 0 up to 3.9: all is on the first line
};

// Followed by the text: bytes as the writer found them, no terminator.
struct TextEntry {
  EntryHeader header;
  uint64_t hash;  // writer's own use
  uint32_t size;  // of the text
  uint32_t reserved;
};

// A kernel and the shape that it was launched with: what repeats from one launch to
// the next, so that it is one integer.
struct KernelEntry {
  EntryHeader header;
  uint64_t hash;  // writer's own use
  Ref name;       // kText, mangled as CUPTI gives it
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t registers_per_thread;
  uint32_t static_shared_bytes;
  uint32_t dynamic_shared_bytes;
};

// Takes the place of a kPythonStack where PyTorch's engine works on a thread of its
// own, which has no Python frames. At least one of the first two is there.
struct BackwardEntry {
  EntryHeader header;
  uint64_t hash;  // writer's own use
  Ref node;       // kText: the class of the node, as the compiler mangles types
  Ref caller;     // kPythonStack: who called backward()
  Ref forward;    // kPythonStack: whose operator made the node; 0: not known
  uint32_t reserved;
};

// CUPTI's ids. They are unique in the process; a stream's id is so within its context.
struct GpuStreamEntry {
  EntryHeader header;
  uint64_t hash;  // writer's own use
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t reserved;
};

// What cuDeviceGetAttribute returns; 0 where it fails.
struct GpuDeviceEntry {
  EntryHeader header;
  uint64_t hash;  // writer's own use
  Ref name;       // kText
  uint32_t device;
  uint32_t multiprocessors;
  uint32_t max_threads_per_multiprocessor;
  uint32_t max_blocks_per_multiprocessor;
  uint32_t max_registers_per_multiprocessor;
  uint32_t max_shared_bytes_per_multiprocessor;
  uint32_t warp_size;
  uint32_t compute_capability;  // 10 * major + minor
  uint32_t reserved;
  uint64_t total_bytes;
};

static_assert(sizeof(EntryHeader) == 8);
static_assert(sizeof(StackEntry) == 24);
static_assert(sizeof(PythonFrame) == 8);
static_assert(sizeof(CodeEntry) == 48);
static_assert(sizeof(TextEntry) == 24 && sizeof(KernelEntry) == 56);
static_assert(sizeof(GpuStreamEntry) == 32 && sizeof(GpuDeviceEntry) == 64);
static_assert(sizeof(BackwardEntry) == 32);
static_assert(std::is_trivially_copyable_v<StackEntry> &&
              std::is_trivially_copyable_v<CodeEntry>);

}  // namespace lull::abi
