#include "daemon/relay/process/keeper_link.h"

#include <poll.h>

namespace lull::relay {
namespace {

constexpr uint64_t kReportPeriodNs = 200'000'000;

}  // namespace

void KeeperLink::Tell(const Message& message) {
  while (open() && Send(channel_.get(), message) == ChannelResult::kWouldBlock) {
    pollfd entry{channel_.get(), POLLOUT, 0};
    if (poll(&entry, 1, 1000) < 0) return;
  }
}

bool KeeperLink::StatusIsDue(uint64_t now_ns) const {
  return now_ns - reported_ns_ >= kReportPeriodNs;
}

void KeeperLink::Report(WorkerStatus status, uint64_t now_ns) {
  reported_ns_ = now_ns;
  if (status == reported_) return;
  if (Send(channel_.get(), {MessageKind::kStatus, 0, EncodeStatus(status), {}}) ==
      ChannelResult::kDone) {
    reported_ = std::move(status);
  }
}

}  // namespace lull::relay
