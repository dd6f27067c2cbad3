// A pickle of Python's as plain data, as far as memory snapshots of PyTorch need it:
// dicts, lists, tuples, text and whole numbers, of protocols 2 to 5.
//
// A pickle is a program, and unpickling it runs it: it may import any module and call
// any function. Nothing of that is here. The opcodes that look up, call, build or ask
// for anything are refused by name, and so are those that no snapshot has. There is no
// recursion, so that depth costs memory alone, and all memory is counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/import/input.h"
#include "daemon/import/string_table.h"

namespace lull::imports {

class Pickle {
 public:
  enum class Type : uint8_t {
    kOther,   // None, a number with a fraction, or one too large: of no use to us
    kNumber,  // whole, of 60 bits and a sign; False and True are 0 and 1
    kText,
    kList,  // and tuples
    kDict,
  };
  // Eight bytes: a snapshot has millions.
  class Value {
   public:
    Value() = default;
    Value(Type type, int64_t payload)
        : bits_(static_cast<uint64_t>(payload) << 3 | static_cast<uint64_t>(type)) {}
    Type type() const { return static_cast<Type>(bits_ & 7); }
    // The number; of others an index: into the texts, or of a list or dict.
    int64_t payload() const { return static_cast<int64_t>(bits_) >> 3; }
    uint32_t index() const { return static_cast<uint32_t>(payload()); }

   private:
    uint64_t bits_ = 0;
  };
  struct Limits {
    size_t bytes = 256u << 20;     // of all values and texts
    size_t text_bytes = 1u << 20;  // of one text
  };

  // Takes all of `input`; texts go into `texts`, made valid UTF-8. DATA_LOSS where it
  // is cut short or makes no sense, INVALID_ARGUMENT for what no snapshot has,
  // RESOURCE_EXHAUSTED beyond a limit.
  static absl::StatusOr<Pickle> Read(Input& input, const Limits& limits,
                                     StringTable* texts);

  Value root() const { return root_; }
  // Of a list its elements; of a dict keys and values in turn. Lists may hold each
  // other and themselves.
  const std::vector<Value>& items(Value container) const {
    return containers_[container.index()];
  }
  size_t containers() const { return containers_.size(); }
  size_t bytes() const { return bytes_; }  // about what it takes

 private:
  friend class PickleMachine;
  std::vector<std::vector<Value>> containers_;
  Value root_;
  size_t bytes_ = 0;
};

}  // namespace lull::imports
