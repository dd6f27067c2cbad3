// What the collector knows by now of one process's arena: which stacks, kernels,
// streams, devices and names of calls have been defined, and the definition of what
// it does not know yet.
//
// What a reference of an event leads to depends on the event's type
// (preload/abi/event.h). A broken target may name one entry in two roles: each is
// checked and defined for itself.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "daemon/relay/read/batch_builder.h"
#include "daemon/relay/read/python_codes.h"
#include "daemon/relay/read/segment_reader.h"
#include "daemon/relay/symbols/async_symbolizer.h"

namespace lull::relay {

class Definitions {
 public:
  // kUndeclared: the event names a call that nobody has named. That may happen to an
  // honest target whose arena had no room for the name. A collector would not take the
  // event, so it is to be left out.
  enum class Result { kDone, kBatchFull, kUndeclared, kCorrupt };

  // `batch_bytes`: no definition is added to a batch that is as large as that.
  // `symbols` is told of new native stacks; may be null. It and `segment` must outlive
  // this.
  Definitions(uint64_t process_key, const SegmentReader* segment,
              AsyncSymbolizer* symbols, size_t batch_bytes);

  // Makes sure that all that the event refers to is defined in `batch` or before, and
  // makes its references those of the wire: the name of an ApiCall, for instance,
  // goes into the batch and the reference to it goes away. If the result is not kDone,
  // try again with another copy of the event.
  Result Define(abi::Event* event, BatchBuilder* batch);

  // The batch is in the spool; or it never will be.
  void Commit() { fresh_.clear(); }
  void Drop();

 private:
  enum Role : uint8_t { kNothing, kStack, kKernel, kStream, kDevice, kCall, kRoles };
  struct Roles {
    Role python;
    Role native;
  };
  static Roles RolesOf(abi::EventType type);

  bool IsKnown(Role role, uint32_t id) const {
    const std::vector<uint64_t>& bits = known_[role];
    return id / 64 < bits.size() && (bits[id / 64] >> (id % 64) & 1) != 0;
  }
  void Remember(Role role, uint32_t id);
  Result Need(Role role, abi::Ref ref, uint32_t id, BatchBuilder* batch);
  // False: corrupt.
  bool AddStack(abi::Ref ref, BatchBuilder* batch);
  bool Add(Role role, abi::Ref ref, uint32_t id, BatchBuilder* batch);

  const uint64_t process_key_;
  const SegmentReader* const segment_;
  const size_t batch_bytes_;
  AsyncSymbolizer* const symbols_;
  PythonCodes codes_;
  // A bit per id. The calls that Hello names are known from the beginning.
  std::array<std::vector<uint64_t>, kRoles> known_;
  std::vector<std::pair<Role, uint32_t>> fresh_;  // in the batch under way
};

}  // namespace lull::relay
