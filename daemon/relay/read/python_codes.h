// The code objects of one process's arena: each is copied, cleaned and, for each
// instruction that a stack names, looked up in its line table once. Stacks of one
// program share nearly all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "daemon/relay/read/segment_reader.h"

namespace lull::relay {

class PythonCodes {
 public:
  class Code {
   public:
    const std::string& function() const { return function_; }
    const std::string& file() const { return file_; }
    // The line of the instruction, as LineOfInstruction() has it.
    int32_t Line(int32_t lasti);

   private:
    friend class PythonCodes;
    explicit Code(RawCode raw);

    std::string function_;
    std::string file_;
    std::optional<std::string> line_table_;
    int32_t first_line_;
    int python_minor_;
    absl::flat_hash_map<int32_t, int32_t> lines_;
  };

  // nullptr: the reference does not lead to a code object; the segment is corrupt.
  // Valid until the next call.
  Code* Find(const SegmentReader& segment, abi::Ref ref);

  // Then all are forgotten, and come again where they are still run.
  static constexpr size_t kMostBytes = 16u << 20;

 private:
  absl::node_hash_map<abi::Ref, Code> codes_;
  size_t bytes_ = 0;
};

}  // namespace lull::relay
