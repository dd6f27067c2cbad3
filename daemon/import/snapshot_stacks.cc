#include "daemon/import/snapshot_stacks.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace lull::imports {
namespace {

using Type = Pickle::Type;
using Value = Pickle::Value;

constexpr size_t kMostFrames = 1024;
constexpr int64_t kLastLine = INT32_MAX;

// The program's, rather than a frame of PyTorch's C++ below it (stacks="all").
bool IsPython(absl::string_view file) {
  return absl::EndsWith(file, ".py") || absl::EndsWith(file, ".pyx") ||
         absl::StartsWith(file, "<");
}

// The recorder's own frames are the innermost of all.
bool IsRecorder(absl::string_view function) {
  return absl::StartsWith(function, "torch::unwind::") ||
         absl::StartsWith(function, "torch::CapturedTraceback::");
}

}  // namespace

// Many entries have the same list.
SnapshotStacks::Pair SnapshotStacks::Of(Value frames, EventWriter& writer) {
  auto [it, fresh] = known_.try_emplace(frames.index());
  if (!fresh) return it->second;
  const auto& list = snapshot_.pickle.items(frames);
  Pair stacks;
  // Innermost first, as in the file; tables begin at the outermost.
  for (size_t i = std::min(list.size(), kMostFrames); i-- > 0;) {
    Push(list[i], writer, &stacks);
  }
  it->second = stacks;
  return stacks;
}

void SnapshotStacks::Push(Value frame, EventWriter& writer, Pair* stacks) {
  if (frame.type() != Type::kDict) return;
  const StackTable::Place place = PlaceOf(frame);
  if (place.function == 0 && place.file == 0) return;
  if (IsPython(snapshot_.trace.strings[place.file])) {
    stacks->python = writer.python().Push(stacks->python, place);
  } else if (!IsRecorder(snapshot_.trace.strings[place.function])) {
    // Names of operators are known by their functions alone.
    stacks->native = writer.operators().Push(stacks->native, place);
  }
}

StackTable::Place SnapshotStacks::PlaceOf(Value frame) {
  auto [it, fresh] = places_.try_emplace(frame.index());
  if (!fresh) return it->second;
  StackTable::Place place;
  const auto& fields = snapshot_.pickle.items(frame);
  const StringTable& texts = snapshot_.trace.strings;
  for (size_t i = 0; i + 1 < std::min<size_t>(fields.size(), 64); i += 2) {
    if (fields[i].type() != Type::kText) continue;
    const std::string& name = texts[fields[i].index()];
    const Value value = fields[i + 1];
    if (name == "line" && value.type() == Type::kNumber) {
      place.line =
          static_cast<int32_t>(std::clamp<int64_t>(value.payload(), 0, kLastLine));
    } else if (value.type() != Type::kText) {
      continue;
    } else if (name == "name") {
      place.function = value.index();
    } else if (name == "filename") {
      place.file = value.index();
    }
  }
  places_[frame.index()] = place;
  return place;
}

}  // namespace lull::imports
