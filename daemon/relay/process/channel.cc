#include "daemon/relay/process/channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "relay_internal.pb.h"

namespace lull::relay {
namespace {

constexpr size_t kMaxPacket = 128 << 10;
constexpr size_t kMaxFds = 3;
constexpr size_t kPrefix = 1 + 8;

}  // namespace

ChannelResult Send(int channel, const Message& message) {
  std::string packet(1, static_cast<char>(message.kind));
  packet.append(reinterpret_cast<const char*>(&message.number), 8);
  packet.append(message.body);
  iovec data{packet.data(), packet.size()};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))] = {};
  std::vector<int> fds;
  for (const UniqueFd& fd : message.fds) fds.push_back(fd.get());
  fds.insert(fds.end(), message.lent.begin(), message.lent.end());
  size_t count = fds.size();
  if (count > 0 && count <= kMaxFds) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(count * sizeof(int));
    for (size_t i = 0; i < count; ++i) {
      memcpy(CMSG_DATA(part) + i * sizeof(int), &fds[i], sizeof(fds[i]));
    }
  }
  ssize_t sent = sendmsg(channel, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0) return ChannelResult::kDone;
  bool later = errno == EAGAIN || errno == EINTR || errno == ENOBUFS ||
               errno == ENOMEM || errno == ETOOMANYREFS;
  return later ? ChannelResult::kWouldBlock : ChannelResult::kClosed;
}

ChannelResult Receive(int channel, Message* message) {
  // Made once: it is asked with each pass, and mostly there is nothing.
  thread_local std::string packet(kMaxPacket, '\0');
  iovec data{packet.data(), packet.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))];
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  ssize_t got;
  do {  // the other end died with messages unread: its own come after that error
    got = recvmsg(channel, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == ECONNRESET);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return ChannelResult::kWouldBlock;
  if (got < static_cast<ssize_t>(kPrefix)) return ChannelResult::kClosed;
  message->fds.clear();
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr;
       part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
      message->fds.emplace_back(fd);
    }
  }
  message->kind = static_cast<MessageKind>(packet[0]);
  memcpy(&message->number, packet.data() + 1, 8);
  message->body = packet.substr(kPrefix, static_cast<size_t>(got) - kPrefix);
  return ChannelResult::kDone;
}

namespace {

// Errors of an upstream are cut there, so that a packet holds them.
constexpr size_t kLongestError = 4096;

template <typename Phases>
void ToWire(const Phases& phases, wire::GpuPlan::Phases* out) {
  const auto& [skip_first, wait, warmup, active] = phases;
  out->set_skip_first(skip_first);
  out->set_wait(wait);
  out->set_warmup(warmup);
  out->set_active(active);
}

void ToWire(const GpuPlan& plan, wire::GpuPlan* out) {
  out->set_mode(plan.mode);
  out->set_always_by_clock(plan.always_by_clock);
  ToWire(plan.steps, out->mutable_steps());
  ToWire(plan.clock, out->mutable_clock_ns());
  out->set_repeat(plan.repeat);
  out->set_finalize(plan.finalize);
}

GpuPlan FromWire(const wire::GpuPlan& in) {
  auto count = [](uint64_t value) { return static_cast<uint32_t>(value); };
  GpuPlan plan;
  plan.mode = in.mode();
  plan.always_by_clock = in.always_by_clock();
  plan.steps = {count(in.steps().skip_first()), count(in.steps().wait()),
                count(in.steps().warmup()), count(in.steps().active())};
  plan.clock = {in.clock_ns().skip_first(), in.clock_ns().wait(),
                in.clock_ns().warmup(), in.clock_ns().active()};
  plan.repeat = in.repeat();
  plan.finalize = in.finalize();
  return plan;
}

}  // namespace

std::string EncodeOptions(const RelayOptions& options) {
  wire::Options out;
  out.set_socket_path(options.socket_path);
  out.set_spool_directory(options.spool_directory);
  out.set_spool_limit_bytes(options.spool_limit_bytes);
  out.set_collector_address(options.collector.target);
  out.set_token(options.collector.token);
  out.set_tls_ca_file(options.collector.tls_ca);
  *out.mutable_job() = options.job;
  ToWire(options.gpu, out.mutable_gpu());
  out.set_attached(options.attached);
  out.set_target_user(options.target_user);
  out.set_dormant(options.dormant);
  out.set_grace_ns(absl::ToInt64Nanoseconds(options.grace));
  return out.SerializeAsString();
}

bool DecodeOptions(const std::string& bytes, RelayOptions* options) {
  wire::Options in;
  if (!in.ParseFromString(bytes) || !in.has_job()) return false;
  options->socket_path = in.socket_path();
  options->spool_directory = in.spool_directory();
  options->spool_limit_bytes = in.spool_limit_bytes();
  options->collector.target = in.collector_address();
  options->collector.token = in.token();
  options->collector.tls_ca = in.tls_ca_file();
  options->job = in.job();
  options->gpu = FromWire(in.gpu());
  options->attached = in.attached();
  options->target_user = in.target_user();
  options->dormant = in.dormant();
  options->grace = absl::Nanoseconds(in.grace_ns());
  return true;
}

std::string EncodeStatus(const WorkerStatus& status) {
  wire::Status out;
  out.set_corrupt_segments(status.corrupt_segments);
  out.set_events_read(status.events_read);
  out.set_events_lost(status.events_lost);
  out.set_batches_spooled(status.batches_spooled);
  out.set_batches_acknowledged(status.batches_acknowledged);
  out.set_connected(status.connected);
  out.set_refused(status.refused);
  out.set_upstream_code(status.upstream.raw_code());
  out.set_upstream_message(
      std::string(status.upstream.message().substr(0, kLongestError)));
  out.set_armed(status.armed);
  ToWire(status.gpu, out.mutable_gpu());
  out.set_naming(status.naming);
  return out.SerializeAsString();
}

bool DecodeStatus(const std::string& bytes, WorkerStatus* status) {
  wire::Status in;
  if (!in.ParseFromString(bytes)) return false;
  status->corrupt_segments = in.corrupt_segments();
  status->events_read = in.events_read();
  status->events_lost = in.events_lost();
  status->batches_spooled = in.batches_spooled();
  status->batches_acknowledged = in.batches_acknowledged();
  status->connected = in.connected();
  status->refused = in.refused();
  status->upstream = absl::Status(static_cast<absl::StatusCode>(in.upstream_code()),
                                  in.upstream_message());
  status->armed = in.armed();
  status->gpu = FromWire(in.gpu());
  status->naming = in.naming();
  return true;
}

}  // namespace lull::relay
