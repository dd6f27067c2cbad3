// Communicators: made, split, asked, ended.
#include <sys/random.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "tests/sim/nccl/api.h"
#include "tests/sim/nccl/group.h"

using namespace lull::sim::nccl;

namespace {

constexpr char kMark[] = "lull simulated NCCL ";

// Where the files that communicators share lie. They have names only until all ranks
// have come.
std::string folder() {
  if (const char* set = getenv("LULL_SIM_NCCL_DIR"); set != nullptr && *set != '\0') {
    return set;
  }
  if (access("/dev/shm", W_OK) == 0) return "/dev/shm";
  const char* temporary = getenv("TMPDIR");
  return temporary != nullptr && *temporary != '\0' ? temporary : "/tmp";
}

Communicator* as_communicator(void* handle) {
  return is_live(handle) ? static_cast<Communicator*>(handle) : nullptr;
}

void say(const std::string& why) {
  dprintf(STDERR_FILENO, "simulated NCCL: %s\n", why.c_str());
}

int join(void** out, int size, const UniqueId& id, int rank) {
  Group& group = Group::mine();
  if (out == nullptr || size < 1 || size > static_cast<int>(kMaxRanks) || rank < 0 ||
      rank >= size) {
    return group.refuse(kInvalidArgument);
  }
  *out = nullptr;
  std::string text(id.text, strnlen(id.text, sizeof id.text));
  if (!text.starts_with(kMark)) return group.refuse(kInvalidArgument);
  if (driver() == nullptr) return group.refuse(kUnhandledCudaError);
  Communicator::Members members(static_cast<size_t>(size));
  std::iota(members.begin(), members.end(), 0u);
  std::string error;
  auto* made =
      Communicator::join(text.substr(sizeof kMark - 1), static_cast<uint32_t>(rank),
                         std::move(members), 0, &error);
  if (made == nullptr) {
    say(error);
    return group.refuse(kInvalidUsage);
  }
  return group.add_join(made, out);
}

int end(void* handle, bool drain) {
  Communicator* communicator = as_communicator(handle);
  if (communicator == nullptr) return kInvalidArgument;
  if (drain) communicator->drain();
  remove_live(communicator);
  communicator->leave();
  return kSuccess;
}

template <typename Read>
int inspect(void* handle, int* out, Read read) {
  Communicator* communicator = as_communicator(handle);
  if (communicator == nullptr || out == nullptr) return kInvalidArgument;
  *out = static_cast<int>(read(*communicator));
  return kSuccess;
}

}  // namespace

SIM_EXPORT int ncclGetVersion(int* version) {
  if (version == nullptr) return kInvalidArgument;
  *version = kVersion;
  return kSuccess;
}

SIM_EXPORT int ncclGetUniqueId(UniqueId* id) {
  if (id == nullptr) return kInvalidArgument;
  uint64_t chance = 0;
  if (getrandom(&chance, sizeof chance, 0) != sizeof chance) return kSystemError;
  char name[64];
  snprintf(name, sizeof name, "/lull_sim_nccl.%d.%016lx", getpid(), chance);
  std::string text = kMark + folder() + name;
  if (text.size() >= sizeof id->text) {
    say("the path of LULL_SIM_NCCL_DIR is too long");
    return kSystemError;
  }
  *id = {};
  text.copy(id->text, sizeof id->text - 1);
  return kSuccess;
}

SIM_EXPORT int ncclCommInitRank(void** out, int size, UniqueId id, int rank) {
  return join(out, size, id, rank);
}
// Of the settings none is looked at: every communicator blocks.
SIM_EXPORT int ncclCommInitRankConfig(void** out, int size, UniqueId id, int rank,
                                      void*) {
  return join(out, size, id, rank);
}
SIM_EXPORT int ncclCommInitRankScalable(void** out, int size, int rank, int ids,
                                        const UniqueId* id, void*) {
  return ids < 1 || id == nullptr ? kInvalidArgument : join(out, size, *id, rank);
}

SIM_EXPORT int ncclCommInitAll(void** out, int size, const int* devices) {
  UniqueId id;
  if (out == nullptr || size < 1) return kInvalidArgument;
  if (int error = ncclGetUniqueId(&id)) return error;
  const Driver* cuda = driver();
  if (cuda == nullptr) return kUnhandledCudaError;
  int before = -1;
  cuda->current_device(&before);
  auto use = [&](int device) {
    void* context = nullptr;
    return cuda->retain_primary(&context, device) == 0 &&
           cuda->set_context(context) == 0;
  };
  Group& group = Group::mine();
  group.start();
  for (int rank = 0; rank < size; ++rank) {
    if (!use(devices != nullptr ? devices[rank] : rank)) {
      group.refuse(kInvalidArgument);
      break;
    }
    join(&out[rank], size, id, rank);
  }
  if (before >= 0) use(before);
  return group.end();
}

SIM_EXPORT int ncclCommSplit(void* handle, int color, int key, void** out, void*) {
  Communicator* communicator = as_communicator(handle);
  Group& group = Group::mine();
  if (communicator == nullptr || out == nullptr) return group.refuse(kInvalidArgument);
  return group.add_split(communicator, color, key, out);
}

SIM_EXPORT int ncclCommFinalize(void* handle) {
  Communicator* communicator = as_communicator(handle);
  if (communicator == nullptr) return kInvalidArgument;
  communicator->drain();
  return kSuccess;
}
SIM_EXPORT int ncclCommDestroy(void* handle) { return end(handle, true); }
SIM_EXPORT int ncclCommAbort(void* handle) { return end(handle, false); }

SIM_EXPORT int ncclCommCount(void* handle, int* count) {
  return inspect(handle, count, [](const Communicator& c) { return c.size(); });
}
SIM_EXPORT int ncclCommCuDevice(void* handle, int* device) {
  return inspect(handle, device, [](const Communicator& c) { return c.device(); });
}
SIM_EXPORT int ncclCommUserRank(void* handle, int* rank) {
  return inspect(handle, rank, [](const Communicator& c) { return c.rank(); });
}
SIM_EXPORT int ncclCommGetAsyncError(void* handle, int* error) {
  return inspect(handle, error, [](const Communicator& c) { return c.error(); });
}

SIM_EXPORT const char* ncclGetErrorString(int result) {
  switch (result) {
    case kSuccess:
      return "no error";
    case kUnhandledCudaError:
      return "unhandled cuda error";
    case kSystemError:
      return "unhandled system error";
    case kInternalError:
      return "internal error";
    case kInvalidArgument:
      return "invalid argument";
    case kInvalidUsage:
      return "invalid usage";
    case kRemoteError:
      return "remote process exited or there was a network error";
    case 7:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

SIM_EXPORT const char* ncclGetLastError(void*) {
  thread_local std::string t_text;
  t_text = last_error();
  return t_text.c_str();
}
