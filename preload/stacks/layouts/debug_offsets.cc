#include "preload/stacks/layouts/debug_offsets.h"

#include <cstddef>
#include <cstring>

namespace lull {
namespace {

// The parts that the shapes of the table have in common, as runs of 64-bit words.
// Source: internal/pycore_runtime.h of 3.13.0, internal/pycore_debug_offsets.h of
// 3.14.10 and 3.15.2.
struct Prologue {
  char cookie[8];
  uint64_t version;  // PY_VERSION_HEX
  uint64_t free_threaded;
};

struct ThreadOffsets {
  uint64_t size, prev, next, interp, current_frame, thread_id, native_thread_id,
      datastack_chunk, status;
};

struct FrameOffsets {
  uint64_t size, previous, executable, instr_ptr, localsplus, owner;
};

struct CodeOffsets {
  uint64_t size, filename, name, qualname, linetable, firstlineno, argcount,
      localsplusnames, localspluskinds, co_code_adaptive;
};

struct BytesOffsets {
  uint64_t size, ob_size, ob_sval;
};

struct UnicodeOffsets {
  uint64_t size, state, length, asciiobject_size;
};

struct Offsets313 {
  Prologue prologue;
  uint64_t runtime_state[3];
  uint64_t interpreter_state[13];
  ThreadOffsets thread;
  FrameOffsets frame;
  CodeOffsets code;
  uint64_t object[2];  // size, ob_type
  uint64_t type_object[4], tuple_object[3], list_object[3], dict_object[3],
      float_object[2], long_object[3];
  BytesOffsets bytes;
  UnicodeOffsets unicode;
};

// 3.14 appended to the interpreter, frame and code groups and put sets in.
struct Offsets314 {
  Prologue prologue;
  uint64_t runtime_state[3];
  uint64_t interpreter_state[16];
  ThreadOffsets thread;
  FrameOffsets frame;
  uint64_t frame_stackpointer, frame_tlbc_index;
  CodeOffsets code;
  uint64_t code_tlbc;
  uint64_t object[2];
  uint64_t type_object[4], tuple_object[3], list_object[3], set_object[4],
      dict_object[3], float_object[2], long_object[3];
  BytesOffsets bytes;
  UnicodeOffsets unicode;
};

// 3.15 put more into the thread and type groups.
struct ThreadOffsets315 {
  uint64_t size, prev, next, interp, current_frame, base_frame, last_profiled_frame,
      last_profiled_frame_seq, thread_id, native_thread_id, datastack_chunk, status,
      holds_gil, gil_requested, current_exception, exc_state;
};

struct Offsets315 {
  Prologue prologue;
  uint64_t runtime_state[3];
  uint64_t interpreter_state[16];
  ThreadOffsets315 thread;
  uint64_t exception_stack_item;
  FrameOffsets frame;
  uint64_t frame_stackpointer, frame_tlbc_index;
  CodeOffsets code;
  uint64_t code_tlbc;
  uint64_t object[2];
  uint64_t type_object[6], heap_type_object[2], tuple_object[3], list_object[3],
      set_object[4], dict_object[3], float_object[2], long_object[3];
  BytesOffsets bytes;
  UnicodeOffsets unicode;
};

// PyCompactUnicodeObject is PyASCIIObject and two words (utf8_length, utf8).
constexpr uint64_t kCompactExtra = 16;

// No struct that the walk touches is larger; a larger offset is not an offset.
constexpr uint64_t kLargestOffset = 4096;

// Narrows offsets, and remembers whether each one was believable.
class Narrow {
 public:
  int16_t operator()(uint64_t offset) {
    if (offset >= kLargestOffset) sane_ = false;
    return static_cast<int16_t>(offset);
  }
  bool sane() const { return sane_; }

 private:
  bool sane_ = true;
};

template <typename Offsets>
bool convert(const void* runtime, uint16_t minor, CPythonLayout* layout) {
  Offsets table;
  memcpy(&table, runtime, sizeof table);
  Narrow narrow;
  *layout = {
      .minor = minor,
      .form = InstructionForm::kPointer,
      // From 3.14 the frame holds a tagged _PyStackRef.
      .code_tag_mask = static_cast<uint8_t>(minor >= 14 ? 3 : 0),
      .tstate_frame = narrow(table.thread.current_frame),
      .cframe_frame = -1,
      .tstate_thread_id = narrow(table.thread.thread_id),
      .tstate_chunk = narrow(table.thread.datastack_chunk),
      .frame_previous = narrow(table.frame.previous),
      .frame_code = narrow(table.frame.executable),
      .frame_instruction = narrow(table.frame.instr_ptr),
      .frame_owner = narrow(table.frame.owner),
      .code_filename = narrow(table.code.filename),
      .code_name = narrow(table.code.qualname),
      .code_first_line = narrow(table.code.firstlineno),
      .code_line_table = narrow(table.code.linetable),
      .code_bytes = narrow(table.code.co_code_adaptive),
      .str_length = narrow(table.unicode.length),
      .str_state = narrow(table.unicode.state),
      .str_ascii_size = narrow(table.unicode.asciiobject_size),
      .str_compact_size = narrow(table.unicode.asciiobject_size + kCompactExtra),
      .bytes_size = narrow(table.bytes.ob_size),
      .bytes_data = narrow(table.bytes.ob_sval),
      .object_type = narrow(table.object[1]),
  };
  return narrow.sane();
}

}  // namespace

bool layout_from_debug_offsets(const void* runtime, CPythonLayout* layout) {
  Prologue prologue;
  memcpy(&prologue, runtime, sizeof prologue);
  if (memcmp(prologue.cookie, "xdebugpy", sizeof prologue.cookie) != 0) return false;
  if (prologue.free_threaded != 0) return false;
  switch (prologue.version >> 16) {
    case 0x030d:
      return convert<Offsets313>(runtime, 13, layout);
    case 0x030e:
      return convert<Offsets314>(runtime, 14, layout);
    case 0x030f:
      return convert<Offsets315>(runtime, 15, layout);
    default:
      return false;
  }
}

}  // namespace lull
