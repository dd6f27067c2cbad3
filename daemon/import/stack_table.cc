#include "daemon/import/stack_table.h"

#include "daemon/base/backward_frames.h"
#include "daemon/import/python_names.h"

namespace lull::imports {
namespace {

// Limits of what a collector takes, see daemon/collector/ingest/validate.cc.
constexpr size_t kMaxFrames = 1024;

}  // namespace

uint32_t StackTable::Push(uint32_t caller, const Place& place) {
  auto [it, fresh] = place_ids_.try_emplace(place);
  if (fresh) {
    it->second = static_cast<uint32_t>(places_.size());
    places_.push_back(place);
  }
  return PushPlace(caller, it->second);
}

uint32_t StackTable::PushPlace(uint32_t caller, uint32_t place) {
  auto [it, fresh] = known_.try_emplace(uint64_t{caller} << 32 | place);
  if (fresh) {
    it->second = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back({caller, place});
  }
  return it->second;
}

uint32_t StackTable::Append(uint32_t caller, uint32_t stack) {
  std::vector<uint32_t> places;  // innermost first
  for (; stack != 0; stack = nodes_[stack].caller)
    places.push_back(nodes_[stack].place);
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
    caller = PushPlace(caller, *place);
  }
  return caller;
}

uint32_t StackTable::OfCallStack(std::string_view text, StringTable& strings) {
  const std::vector<lull::v1::Frame> frames = ParseCallStack(text);
  uint32_t node = 0;
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    node = Push(node, {strings.Intern(frame->function()), strings.Intern(frame->file()),
                       frame->line()});
  }
  return node;
}

lull::v1::StackDef StackTable::Define(uint32_t node,
                                      std::vector<uint32_t>* places) const {
  lull::v1::StackDef definition;
  definition.set_ref(Ref(node));
  definition.set_native(native_);
  places->clear();
  for (; node != 0; node = nodes_[node].caller) {
    if (places->size() == kMaxFrames) {
      definition.set_truncated(true);
      break;
    }
    places->push_back(nodes_[node].place);
  }
  return definition;
}

lull::v1::Frame StackTable::FrameAt(uint32_t place, const StringTable& strings) const {
  const auto& [function, file, line] = places_[place];
  lull::v1::Frame frame;
  frame.set_function(strings[function]);
  if (native_ || strings[file] == kNodeModule || strings[file] == kForwardModule) {
    frame.set_module(strings[file]);
  } else {
    frame.set_file(strings[file]);
    frame.set_line(line);
  }
  return frame;
}

}  // namespace lull::imports
