#include "daemon/blame/stream_order.h"

#include <algorithm>

#include "daemon/blame/instant.h"

namespace lull::blame {
namespace {

bool Copies(const Operation& operation) {
  return operation.kind == OperationKind::kCopy ||
         operation.kind == OperationKind::kMemset;
}

}  // namespace

StreamOrder::Stream& StreamOrder::StreamOf(ContextId context, StreamId stream) {
  Key key{context, stream};
  if (last_ != nullptr && key == last_key_) return *last_;
  auto [it, fresh] = streams_.try_emplace(key);
  if (fresh) ++held_;
  last_key_ = key;
  last_ = &it->second;
  return *last_;
}

void StreamOrder::Add(const StreamWait& wait) {
  Stream& stream = StreamOf(wait.context, wait.stream);
  stream.waits.Add({std::min(wait.time_ns, kLastInstant)});
  ++held_;
  if (stream.unsettled) return;
  stream.unsettled = true;
  unsettled_.push_back(&stream);
}

void StreamOrder::Settle() {
  for (Stream* stream : unsettled_) {
    stream->waits.Settle();
    stream->unsettled = false;
  }
  unsettled_.clear();
}

bool StreamOrder::Waited(const Operation& operation, uint64_t submit_ns,
                         uint64_t idle_ns) const {
  auto it = streams_.find({operation.context, operation.stream});
  if (it == streams_.end()) return false;
  const Stream& stream = it->second;
  uint64_t remembered = Minus(operation.start_ns, memory_ns_);
  bool follows = stream.used && stream.start_ns >= remembered;
  if (follows && stream.end_ns == idle_ns && stream.copies != Copies(operation)) {
    return true;
  }
  size_t over = stream.waits.CountWhile([&](const Wait& wait) {
    return wait.time_ns < remembered || (follows && wait.time_ns <= stream.submit_ns);
  });
  return over < stream.waits.size() && stream.waits[over].time_ns < submit_ns;
}

void StreamOrder::Pass(const Operation& operation, uint64_t submit_ns) {
  Stream& stream = StreamOf(operation.context, operation.stream);
  if (stream.used && operation.start_ns < stream.start_ns) return;
  stream.used = true;
  stream.start_ns = operation.start_ns;
  stream.end_ns = operation.end_ns;
  stream.submit_ns = submit_ns;
  stream.copies = Copies(operation);
}

void StreamOrder::Prune(uint64_t time_ns) {
  if (held_ >= kept_ * 2 + 256) DropBefore(Minus(time_ns, memory_ns_));
}

void StreamOrder::DropBefore(uint64_t time_ns) {
  held_ = 0;
  for (auto it = streams_.begin(); it != streams_.end();) {
    Stream& stream = it->second;
    stream.waits.DropFront(
        stream.waits.CountWhile([&](const Wait& w) { return w.time_ns < time_ns; }));
    if (stream.waits.empty() && stream.start_ns < time_ns) {
      it = streams_.erase(it);
    } else {
      held_ += 1 + stream.waits.size();
      ++it;
    }
  }
  kept_ = held_;
  last_ = nullptr;
}

}  // namespace lull::blame
