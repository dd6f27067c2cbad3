#include "daemon/import/stack_table.h"

#include "daemon/base/backward_frames.h"
#include "daemon/import/python_names.h"

namespace lull::imports {
namespace {

// Limits of what a collector takes, see daemon/collector/ingest/validate.cc.
constexpr int kMaxFrames = 1024;

}  // namespace

uint32_t StackTable::Push(uint32_t caller, const Place& place) {
  auto [it, fresh] = known_.try_emplace({caller, place});
  if (fresh) {
    it->second = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back({caller, place});
  }
  return it->second;
}

uint32_t StackTable::Append(uint32_t caller, uint32_t stack) {
  std::vector<Place> places;  // innermost first
  for (; stack != 0; stack = nodes_[stack].caller)
    places.push_back(nodes_[stack].place);
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
    caller = Push(caller, *place);
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

lull::v1::StackDef StackTable::Define(uint32_t node, const StringTable& strings) const {
  lull::v1::StackDef definition;
  definition.set_ref(Ref(node));
  definition.set_native(native_);
  for (; node != 0; node = nodes_[node].caller) {
    if (definition.frames_size() == kMaxFrames) {
      definition.set_truncated(true);
      break;
    }
    const Place& place = nodes_[node].place;
    lull::v1::Frame* frame = definition.add_frames();
    frame->set_function(strings[place.function]);
    const std::string& file = strings[place.file];
    if (native_ || file == kNodeModule || file == kForwardModule) {
      frame->set_module(file);
    } else {
      frame->set_file(file);
      frame->set_line(place.line);
    }
  }
  return definition;
}

}  // namespace lull::imports
