// The worker's end of the channel to its keeper. Without a keeper nothing is sent.
#pragma once

#include <cstdint>
#include <utility>

#include "daemon/base/unique_fd.h"
#include "daemon/relay/process/channel.h"

namespace lull::relay {

class KeeperLink {
 public:
  explicit KeeperLink(UniqueFd channel) : channel_(std::move(channel)) {}

  bool open() const { return static_cast<bool>(channel_); }
  int fd() const { return channel_.get(); }  // -1: closed
  void Close() { channel_.reset(); }

  ChannelResult Take(Message* message) { return Receive(channel_.get(), message); }
  // For messages that must arrive; the keeper reads fast, so waiting is short.
  void Tell(const Message& message);

  // Whether it is time for a status again.
  bool StatusIsDue(uint64_t now_ns) const;
  // Sends a status if it differs from the last one, and if there is room for it.
  void Report(WorkerStatus status, uint64_t now_ns);

 private:
  UniqueFd channel_;
  WorkerStatus reported_;
  uint64_t reported_ns_ = 0;
};

}  // namespace lull::relay
