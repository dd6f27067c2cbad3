#include "daemon/relay/symbols/symbol_protocol.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <type_traits>

namespace lull::relay {
namespace {

static_assert(std::is_trivially_copyable_v<SymbolRequest>);

// Ahead of the frames: number, module, is_elf, frames, address.
struct Head {
  uint64_t number;
  uint64_t address;
  uint32_t module;
  uint16_t is_elf;
  uint16_t frames;
};
static_assert(sizeof(Head) == 24);

// Ahead of the two names of each frame.
struct FrameHead {
  int32_t line;
  uint16_t function_bytes;
  uint16_t file_bytes;
};
static_assert(sizeof(FrameHead) == 8);

template <typename Plain>
bool Take(std::string_view* bytes, Plain* out) {
  if (bytes->size() < sizeof(Plain)) return false;
  memcpy(out, bytes->data(), sizeof(Plain));
  bytes->remove_prefix(sizeof(Plain));
  return true;
}

bool TakeText(std::string_view* bytes, size_t size, std::string* out) {
  if (size > kMaxSymbolText || bytes->size() < size) return false;
  out->assign(bytes->substr(0, size));
  bytes->remove_prefix(size);
  return true;
}

template <typename Plain>
void Put(const Plain& value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

SymbolIo Result(ssize_t moved, size_t wanted) {
  if (moved == static_cast<ssize_t>(wanted)) return SymbolIo::kDone;
  bool later = moved < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM ||
                             errno == ETOOMANYREFS || errno == EINTR);
  return later ? SymbolIo::kWouldBlock : SymbolIo::kClosed;
}

}  // namespace

std::string EncodeSymbolAnswer(const SymbolAnswer& answer) {
  std::string frames;
  uint16_t count = 0;
  for (const NativeFrame& frame : answer.frames) {
    std::string_view function =
        std::string_view(frame.function).substr(0, kMaxSymbolText);
    std::string_view file = std::string_view(frame.file).substr(0, kMaxSymbolText);
    size_t size = sizeof(FrameHead) + function.size() + file.size();
    if (count == kMaxSymbolFrames ||
        sizeof(Head) + frames.size() + size > kMaxSymbolAnswer) {
      break;
    }
    Put(FrameHead{std::max(frame.line, 0), static_cast<uint16_t>(function.size()),
                  static_cast<uint16_t>(file.size())},
        &frames);
    frames.append(function);
    frames.append(file);
    ++count;
  }
  std::string bytes;
  Put(Head{answer.number, answer.address, answer.module,
           static_cast<uint16_t>(answer.is_elf ? 1 : 0), count},
      &bytes);
  return bytes + frames;
}

bool DecodeSymbolAnswer(std::string_view bytes, SymbolAnswer* answer) {
  Head head;
  if (bytes.size() > kMaxSymbolAnswer || !Take(&bytes, &head) || head.is_elf > 1 ||
      head.frames > kMaxSymbolFrames) {
    return false;
  }
  answer->number = head.number;
  answer->module = head.module;
  answer->is_elf = head.is_elf != 0;
  answer->address = head.address;
  answer->frames.clear();
  for (uint16_t i = 0; i < head.frames; ++i) {
    FrameHead next;
    NativeFrame& frame = answer->frames.emplace_back();
    if (!Take(&bytes, &next) || next.line < 0 ||
        !TakeText(&bytes, next.function_bytes, &frame.function) ||
        !TakeText(&bytes, next.file_bytes, &frame.file)) {
      return false;
    }
    frame.line = next.line;
  }
  return bytes.empty();
}

SymbolIo SendSymbolRequest(int socket, const SymbolRequest& request, int file,
                           std::string_view path) {
  iovec data[2] = {{const_cast<SymbolRequest*>(&request), sizeof(request)},
                   {const_cast<char*>(path.data()), path.size()}};
  msghdr header{};
  header.msg_iov = data;
  header.msg_iovlen = 2;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (file >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(part), &file, sizeof(file));
  }
  return Result(sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL),
                sizeof(request) + path.size());
}

SymbolIo ReceiveSymbolRequest(int socket, SymbolRequest* request, UniqueFd* file,
                              std::string* path) {
  path->resize(kMaxSymbolText);
  iovec data[2] = {{request, sizeof(*request)}, {path->data(), path->size()}};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr header{};
  header.msg_iov = data;
  header.msg_iovlen = 2;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  ssize_t got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  file->reset();
  if (got >= 0) {
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    if (part != nullptr && part->cmsg_type == SCM_RIGHTS) {
      int fd = -1;
      memcpy(&fd, CMSG_DATA(part), sizeof(fd));
      file->reset(fd);
    }
  }
  const ssize_t head = sizeof(*request);
  path->resize(got > head ? static_cast<size_t>(got - head) : 0);
  return Result(std::min(got, head), sizeof(*request));
}

}  // namespace lull::relay
