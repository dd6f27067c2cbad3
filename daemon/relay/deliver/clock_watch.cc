#include "daemon/relay/deliver/clock_watch.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "daemon/base/clock_bound.h"
#include "daemon/connection/collector_channel.h"

namespace lull::relay {
namespace {

constexpr size_t kProbes = 12;
constexpr absl::Duration kLongestBurst = absl::Milliseconds(100);
constexpr std::chrono::seconds kPatience(1);

}  // namespace

ClockWatch::ClockWatch(const lull::v1::JobInfo& job, std::string token,
                       const ClockIdentity& own)
    : token_(std::move(token)), own_(own) {
  if (job.has_imported() || own.boot_id.empty() || job.boot_id() != own.boot_id ||
      job.time_namespace() != own.time_namespace) {
    Stop();
  }
}

std::optional<lull::v1::ClockReading> ClockWatch::Read(
    lull::v1::Ingest::StubInterface& stub) {
  const absl::Time begin = SteadyNow();
  last_ = begin;
  next_ = begin + pause_;
  pause_ = std::min(pause_ * 2, kLongestClockPause);
  std::vector<ClockProbe> burst;
  lull::v1::ClockReply reply;
  while (burst.size() < kProbes && SteadyNow() - begin < kLongestBurst) {
    grpc::ClientContext context;
    Authorize(token_, &context);
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    ClockProbe probe;
    probe.sent_ns = MonotonicNs();
    const grpc::Status status = stub.ReadClock(&context, {}, &reply);
    probe.back_ns = MonotonicNs();
    if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
      Stop();
    }
    if (!status.ok()) break;
    probe.received_ns = reply.received_ns();
    probe.answered_ns = reply.answered_ns();
    burst.push_back(probe);
    if (ClockIdentity{reply.boot_id(), reply.time_namespace()} == own_) {
      Stop();
      return std::nullopt;
    }
  }
  const std::optional<ClockBound> bound = BoundOf(burst);
  if (!bound) return std::nullopt;
  lull::v1::ClockReading reading;
  reading.set_at_ns(bound->at_ns);
  reading.set_low_ns(bound->low_ns);
  reading.set_high_ns(bound->high_ns);
  reading.set_boot_id(reply.boot_id());
  reading.set_time_namespace(reply.time_namespace());
  return reading;
}

}  // namespace lull::relay
