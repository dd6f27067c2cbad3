// Where the CPython of a target keeps what a walk over its frames reads: byte offsets
// into its structs. The shim chooses them (preload/stacks/layouts/), walks by them, and
// tells them in the segment's header, so that the relay finds frames from outside
// without symbols. The relay takes them for hostile.
#pragma once

#include <cstdint>
#include <type_traits>

namespace lull::abi {

// What "the current instruction" of a frame is stored as. In every case the walk
// turns it into a byte offset from the first instruction of the code object, that
// of the instruction being executed (or of its inline cache, which the line table
// gives the same line):
enum class InstructionForm : uint8_t {
  kByteOffset,  // 3.8, 3.9: int f_lasti, already in bytes
  kUnitOffset,  // 3.10: int f_lasti, in code units of 2 bytes
  kPointer,     // 3.11+: pointer into co_code_adaptive. 3.11 and 3.12 call it
                // prev_instr, "the unit before the next instruction", which is
                // the running one or its last cache; 3.13+ call it instr_ptr, the
                // running one itself. Before the first instruction of 3.11 and
                // 3.12 it lies one unit in front of the code: offset -2, which
                // becomes -1, as f_lasti -1 does.
};

struct PythonLayout {
  uint16_t minor;  // 8 for CPython 3.8
  InstructionForm form;
  uint8_t code_tag_mask;  // low bits of the frame's code pointer that are a tag

  // PyThreadState. In 3.11 and 3.12 the frame hangs below a _PyCFrame.
  int16_t tstate_frame;
  int16_t cframe_frame;      // -1: tstate_frame is the frame itself
  int16_t tstate_thread_id;  // pthread_self() of its thread
  // The newest _PyStackChunk, in which the frames of functions lie one behind the
  // other; -1: each is an object of its own (to 3.10).
  int16_t tstate_chunk;

  // PyFrameObject (to 3.10) or _PyInterpreterFrame (from 3.11).
  int16_t frame_previous;
  int16_t frame_code;
  int16_t frame_instruction;
  int16_t frame_owner;  // -1: there is no such field

  // PyCodeObject.
  int16_t code_filename;
  int16_t code_name;  // the qualified name from 3.11
  int16_t code_first_line;
  int16_t code_line_table;
  int16_t code_bytes;  // first instruction; used with kPointer only

  // PyASCIIObject, and the size of it and of PyCompactUnicodeObject: the text of
  // a compact string follows at once.
  int16_t str_length;
  int16_t str_state;
  int16_t str_ascii_size;
  int16_t str_compact_size;

  // PyBytesObject.
  int16_t bytes_size;
  int16_t bytes_data;

  int16_t object_type;  // ob_type of any object

  // _PyRuntime.ceval.pending.finishing, which 3.8 alone has; the queue's lock follows.
  int16_t runtime_finishing = -1;
};

// Frames of this owner or above are not Python code (trampolines from C).
inline constexpr uint8_t kFirstForeignOwner = 3;

// PyFrameObject, 3.8 to 3.10: what says whether the frame is running lies so many bytes
// behind f_lasti. 3.8 and 3.9: f_executing, not 0 then; 3.10: f_state, 0 then.
inline constexpr int16_t kFrameStateBehindLasti = 12;

// _PyStackChunk, 3.11 to 3.15: {previous, size, top, data...}.
inline constexpr int16_t kChunkPrevious = 0;
inline constexpr int16_t kChunkSize = 8;

// PyThreadState, 3.8 to 3.14: {prev, next, interp...}, a list with the newest in front.
inline constexpr int16_t kStatePrevious = 0;
inline constexpr int16_t kStateNext = 8;

static_assert(sizeof(PythonLayout) == 46 && alignof(PythonLayout) == 2);
static_assert(std::is_trivially_copyable_v<PythonLayout>);

}  // namespace lull::abi
