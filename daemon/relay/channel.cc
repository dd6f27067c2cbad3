#include "daemon/relay/channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <string_view>

namespace lull::relay {
namespace {

constexpr size_t kMaxPacket = 128 << 10;
constexpr size_t kMaxFds = 2;
constexpr size_t kPrefix = 1 + 8;

class Packer {
 public:
  Packer& Number(uint64_t value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  Packer& Text(std::string_view text) {
    Number(text.size());
    bytes_.append(text);
    return *this;
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : rest_(bytes) {}
  uint64_t Number() {
    uint64_t value = 0;
    if (rest_.size() < sizeof(value)) {
      good_ = false;
      return 0;
    }
    memcpy(&value, rest_.data(), sizeof(value));
    rest_.remove_prefix(sizeof(value));
    return value;
  }
  std::string Text() {
    uint64_t size = Number();
    if (!good_ || rest_.size() < size) {
      good_ = false;
      return "";
    }
    std::string text(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return text;
  }
  bool good() const { return good_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

uint64_t BitsOf(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

double DoubleOf(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

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
  std::string packet(kMaxPacket, '\0');
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

void PackPlan(const GpuPlan& plan, Packer* out) {
  out->Number(static_cast<uint64_t>(plan.mode))
      .Number(plan.always_by_clock ? 1 : 0)
      .Number(plan.steps.skip_first)
      .Number(plan.steps.wait)
      .Number(plan.steps.warmup)
      .Number(plan.steps.active)
      .Number(plan.clock.skip_first_ns)
      .Number(plan.clock.wait_ns)
      .Number(plan.clock.warmup_ns)
      .Number(plan.clock.active_ns)
      .Number(plan.repeat);
}

GpuPlan UnpackPlan(Unpacker* in) {
  auto count = [in] { return static_cast<uint32_t>(in->Number()); };
  GpuPlan plan;
  plan.mode = static_cast<abi::GpuMode>(count());
  plan.always_by_clock = count() != 0;
  plan.steps = {count(), count(), count(), count()};
  plan.clock = {in->Number(), in->Number(), in->Number(), in->Number()};
  plan.repeat = count();
  return plan;
}

}  // namespace

std::string EncodeOptions(const RelayOptions& options) {
  Packer out;
  PackPlan(options.gpu, &out);
  out.Number(options.dormant ? 1 : 0);
  out.Number(options.attached ? 1 : 0);
  out.Number(options.target_user);
  return out.Text(options.socket_path)
      .Text(options.spool_directory)
      .Number(options.spool_limit_bytes)
      .Text(options.collector_address)
      .Text(options.token)
      .Text(options.tls_ca_file)
      .Text(options.job.SerializeAsString())
      .Number(BitsOf(options.overhead_budget_percent))
      .Number(options.wait_threshold_ns)
      .Number(static_cast<uint64_t>(absl::ToInt64Nanoseconds(options.grace)))
      .Take();
}

bool DecodeOptions(const std::string& bytes, RelayOptions* options) {
  Unpacker in(bytes);
  options->gpu = UnpackPlan(&in);
  options->dormant = in.Number() != 0;
  options->attached = in.Number() != 0;
  options->target_user = static_cast<uint32_t>(in.Number());
  options->socket_path = in.Text();
  options->spool_directory = in.Text();
  options->spool_limit_bytes = in.Number();
  options->collector_address = in.Text();
  options->token = in.Text();
  options->tls_ca_file = in.Text();
  bool job = options->job.ParseFromString(in.Text());
  options->overhead_budget_percent = DoubleOf(in.Number());
  options->wait_threshold_ns = in.Number();
  options->grace = absl::Nanoseconds(static_cast<int64_t>(in.Number()));
  return job && in.good();
}

std::string EncodeStatus(const WorkerStatus& status) {
  Packer out;
  PackPlan(status.gpu, &out);
  return out.Number(status.armed ? 1 : 0)
      .Number(status.corrupt_segments)
      .Number(status.events_read)
      .Number(status.events_lost)
      .Number(status.batches_spooled)
      .Number(status.batches_acknowledged)
      .Number(status.connected ? 1 : 0)
      .Number(status.refused ? 1 : 0)
      .Number(static_cast<uint64_t>(status.upstream.raw_code()))
      .Text(std::string(status.upstream.message()).substr(0, 4096))
      .Take();
}

bool DecodeStatus(const std::string& bytes, WorkerStatus* status) {
  Unpacker in(bytes);
  status->gpu = UnpackPlan(&in);
  status->armed = in.Number() != 0;
  status->corrupt_segments = static_cast<uint32_t>(in.Number());
  status->events_read = in.Number();
  status->events_lost = in.Number();
  status->batches_spooled = in.Number();
  status->batches_acknowledged = in.Number();
  status->connected = in.Number() != 0;
  status->refused = in.Number() != 0;
  auto code = static_cast<absl::StatusCode>(in.Number());
  status->upstream = absl::Status(code, in.Text());
  return in.good();
}

}  // namespace lull::relay
