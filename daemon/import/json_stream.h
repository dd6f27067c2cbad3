// An Input as RapidJSON wants a stream: NUL ends it. Control bytes are spaces: that is
// what they are between tokens, and within strings, where no JSON may have them but
// some profilers wrote them, it is as good as anything.
#pragma once

#include <cstddef>
#include <cstdint>

#include "daemon/import/input.h"

namespace lull::imports {

class JsonStream {
 public:
  using Ch = char;  // RapidJSON's name for it

  explicit JsonStream(Input& input) : input_(input) {}

  // From here on so many bytes may be taken, then the stream looks as if it ended.
  void Limit(size_t bytes) { end_ = input_.offset() + bytes; }
  bool at_limit() const { return input_.offset() >= end_; }

  Ch Peek() const {
    if (at_limit()) return '\0';
    return Clean(input_.Peek());
  }
  Ch Take() {
    if (at_limit()) return '\0';
    return Clean(input_.Take());
  }
  size_t Tell() const { return static_cast<size_t>(input_.offset()); }

  // What RapidJSON asks of streams that are parsed in place.
  Ch* PutBegin() { return nullptr; }
  void Put(Ch) {}
  void Flush() {}
  size_t PutEnd(Ch*) { return 0; }

 private:
  static Ch Clean(int byte) {
    if (byte < 0) return '\0';
    return byte < ' ' ? ' ' : static_cast<Ch>(byte);
  }

  Input& input_;
  uint64_t end_ = UINT64_MAX;
};

}  // namespace lull::imports
