#include "daemon/base/backward_frames.h"
#include "daemon/base/text.h"
#include "daemon/relay/read/resolver.h"
#include "daemon/relay/symbols/node_name.h"

namespace lull::relay {
namespace {

// A stack behind another one may make it long.
constexpr int kMaxFrames = 256;

bool AddPythonFrame(const SegmentReader& segment, const abi::PythonFrame& frame,
                    PythonCodes* codes, lull::v1::StackDef* definition) {
  PythonCodes::Code* code = codes->Find(segment, frame.code);
  if (code == nullptr) return false;
  lull::v1::Frame* out = definition->add_frames();
  out->set_function(code->function());
  out->set_file(code->file());
  out->set_line(code->Line(frame.lasti));
  return true;
}

// A scope is a frame that has a name and no place.
bool AddScope(const SegmentReader& segment, uint64_t name,
              lull::v1::StackDef* definition) {
  std::string text = "(unnamed)";
  if (name != 0) {
    if (name > UINT32_MAX) return false;
    std::optional<std::string> known = segment.Text(static_cast<abi::Ref>(name));
    if (!known) return false;
    text = *std::move(known);
  }
  definition->add_frames()->set_function(CleanText(text));
  return true;
}

// The frames of a Python stack, behind those that are there.
bool AddPythonStack(const SegmentReader& segment, abi::Ref ref, PythonCodes* codes,
                    lull::v1::StackDef* definition) {
  std::optional<RawStack> stack = segment.Stack(ref);
  if (!stack || stack->native || stack->scopes) return false;
  for (uint32_t i = 0; i < stack->depth; ++i) {
    if (definition->frames_size() >= kMaxFrames) {
      definition->set_truncated(true);
      return true;
    }
    if (!AddPythonFrame(segment, stack->python[i], codes, definition)) return false;
  }
  if (stack->truncated) definition->set_truncated(true);
  return true;
}

// As daemon/base/backward_frames.h has it.
std::optional<lull::v1::StackDef> ResolveBackward(const SegmentReader& segment,
                                                  abi::Ref ref, PythonCodes* codes) {
  std::optional<abi::BackwardEntry> entry = segment.Backward(ref);
  if (!entry) return std::nullopt;
  lull::v1::StackDef definition;
  definition.set_ref(ref);
  lull::v1::Frame* node = definition.add_frames();
  node->set_module(kNodeModule);
  if (entry->node != 0) {
    std::optional<std::string> type = segment.Text(entry->node);
    if (!type) return std::nullopt;
    node->set_function(CleanText(NodeName(*type)));
  }
  // Copied: adding a frame may move those that are there.
  const std::string name = node->function();
  if (entry->caller != 0 &&
      !AddPythonStack(segment, entry->caller, codes, &definition)) {
    return std::nullopt;
  }
  if (entry->forward != 0 && MakesWorkInForward(name) &&
      definition.frames_size() < kMaxFrames) {
    lull::v1::Frame* forward = definition.add_frames();
    forward->set_function(kForwardFunction);
    forward->set_module(kForwardModule);
    if (!AddPythonStack(segment, entry->forward, codes, &definition))
      return std::nullopt;
  }
  return definition;
}

}  // namespace

std::optional<lull::v1::StackDef> ResolveStack(const SegmentReader& segment,
                                               abi::Ref ref, PythonCodes* codes) {
  if (segment.IsBackward(ref)) return ResolveBackward(segment, ref, codes);
  std::optional<RawStack> stack = segment.Stack(ref);
  if (!stack) return std::nullopt;
  lull::v1::StackDef definition;
  definition.set_ref(ref);
  definition.set_native(stack->native || stack->scopes);
  definition.set_truncated(stack->truncated);
  for (uint32_t i = 0; i < stack->depth; ++i) {
    if (definition.frames_size() >= kMaxFrames) {
      definition.set_truncated(true);
      break;
    }
    if (stack->scopes) {
      if (!AddScope(segment, stack->addresses[i], &definition)) return std::nullopt;
    } else if (!stack->native) {
      if (!AddPythonFrame(segment, stack->python[i], codes, &definition)) {
        return std::nullopt;
      }
    } else {
      definition.add_return_addresses(stack->addresses[i]);
    }
  }
  return definition;
}

}  // namespace lull::relay
