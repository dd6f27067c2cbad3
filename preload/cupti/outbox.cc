#include "preload/cupti/outbox.h"

namespace lull::cupti {

void Outbox::send(char* segment, Losses* losses, const BufferPool& pool) {
  uint32_t sent = 0;
  while (sent < count_ && deliver(segment, events_[sent])) ++sent;
  count_ -= sent;
  for (uint32_t i = 0; i < count_ && sent > 0; ++i) events_[i] = events_[i + sent];
  losses->tell(segment);
  if (count_ > 0 || losses->pending()) return;
  if (mark_ns_ == 0 || !pool.all_decoded()) return;
  abi::Event mark = {};
  mark.type = abi::EventType::kGpuMark;
  mark.start_ns = mark_ns_;
  if (deliver(segment, mark)) mark_ns_ = 0;
}

}  // namespace lull::cupti
