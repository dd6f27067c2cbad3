// Stream capture: the part of the engine that records instead of running.
#include <algorithm>

#include "tests/sim/engine/engine.h"

namespace lull::sim {

int Engine::check_capture() {
  ThreadState& thread = this_thread();
  if (thread.capture_mode == CaptureMode::kRelaxed) return kOk;
  for (const auto& weak : captures_) {
    auto capture = weak.lock();
    if (!capture || !capture->active || capture->mode == CaptureMode::kRelaxed)
      continue;
    bool mine = capture->tid == thread.tid;
    bool global = capture->mode == CaptureMode::kGlobal &&
                  thread.capture_mode == CaptureMode::kGlobal;
    if (!mine && !global) continue;
    capture->invalid = true;
    return kCaptureUnsupported;
  }
  return kOk;
}

std::shared_ptr<Capture> Engine::begin_capture(Stream* stream, CaptureMode mode,
                                               std::shared_ptr<Graph> graph) {
  auto capture = std::make_shared<Capture>();
  capture->id = new_id();
  capture->mode = mode;
  capture->tid = this_thread().tid;
  capture->origin = stream;
  capture->graph = std::move(graph);
  std::erase_if(captures_, [](const auto& weak) { return weak.expired(); });
  captures_.push_back(capture);
  stream->capture = capture;
  stream->capture_tail.clear();
  return capture;
}

int Engine::end_capture(Stream* stream, std::shared_ptr<Graph>* graph) {
  std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr || capture->origin != stream) return kCaptureUnmatched;
  if (capture->mode != CaptureMode::kRelaxed && capture->tid != this_thread().tid) {
    return kCaptureWrongThread;
  }
  capture->active = false;
  bool joined = true;
  for (const auto& weak : stream->context->streams) {
    auto other = weak.lock();
    if (!other || other->capture != capture) continue;
    // A stream that joined must have been waited for by one that came back.
    for (GraphNode* last : other->capture_tail) {
      bool followed = std::ranges::any_of(capture->graph->nodes, [&](const auto& node) {
        return std::ranges::find(node->after, last) != node->after.end();
      });
      bool in_origin =
          std::ranges::find(stream->capture_tail, last) != stream->capture_tail.end();
      if (other.get() != stream && !followed && !in_origin) joined = false;
    }
    other->capture = nullptr;
    if (other.get() != stream) other->capture_tail.clear();
  }
  stream->capture = nullptr;
  stream->capture_tail.clear();
  if (capture->invalid) return kCaptureInvalidated;
  if (!joined) return kCaptureUnjoined;
  *graph = capture->graph;
  return kOk;
}

}  // namespace lull::sim
