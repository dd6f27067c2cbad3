#include "daemon/relay/samples/stack_table.h"

#include "daemon/relay/samples/rates.h"

namespace lull::relay {

uint32_t StackTable::Number(const Look& look, CodeBook* codes) {
  if (look.frames.empty()) return 0;
  key_.assign(1, look.truncated ? '+' : '.');
  for (const SeenFrame& frame : look.frames) {
    const uint32_t words[2] = {
        codes->NameOf(frame.number),
        static_cast<uint32_t>(codes->Line(frame.number, frame.lasti))};
    key_.append(reinterpret_cast<const char*>(words), sizeof(words));
  }
  auto known = numbers_.find(key_);
  if (known != numbers_.end()) return known->second;
  if (numbers_.size() >= kMostStacks || bytes_ >= kMostStackBytes) return 0;
  const uint32_t number = static_cast<uint32_t>(numbers_.size() + 1);
  numbers_.emplace(key_, number);
  lull::v1::StackDef& stack = fresh_.emplace_back();
  stack.set_ref(number);
  stack.set_truncated(look.truncated);
  for (const SeenFrame& seen : look.frames) {
    const FrameName& name = codes->Name(codes->NameOf(seen.number));
    lull::v1::Frame* frame = stack.add_frames();
    frame->set_function(name.function);
    frame->set_file(name.file);
    frame->set_line(codes->Line(seen.number, seen.lasti));
  }
  bytes_ += stack.ByteSizeLong();
  return number;
}

}  // namespace lull::relay
