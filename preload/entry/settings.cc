#include "preload/entry/settings.h"

#include <string.h>

#include <cstdint>
#include <initializer_list>

#include "preload/abi/handshake.h"
#include "preload/support/text.h"

namespace lull {
namespace {

Settings g_settings;

// The value if `entry` is "name=value", else nullptr.
const char* value_of(const char* entry, const char* name) {
  size_t length = strlen(name);
  if (strncmp(entry, name, length) != 0 || entry[length] != '=') return nullptr;
  return entry + length + 1;
}

// -1: it is none.
int small_number(const char* text) {
  int number = 0;
  if (*text == 0) return -1;
  for (; *text != 0; ++text) {
    if (*text < '0' || *text > '9' || number > 1'000'000) return -1;
    number = 10 * number + (*text - '0');
  }
  return number;
}

// A piece of text put together in a buffer of fixed size; too long is "".
class Text {
 public:
  Text(char* out, size_t room) : out_(out), room_(room) { out_[0] = 0; }

  Text& add(const char* piece) {
    size_t length = strlen(piece);
    if (!fits_ || used_ + length >= room_) {
      fits_ = false;
      out_[0] = 0;
      return *this;
    }
    memcpy(out_ + used_, piece, length + 1);
    used_ += length;
    return *this;
  }
  Text& add(uint64_t number) {
    char digits[21];
    char* at = digits + 20;
    *at = 0;
    do *--at = static_cast<char>('0' + number % 10);
    while ((number /= 10) != 0);
    return add(at);
  }
  bool fits() const { return fits_; }

 private:
  char* out_;
  size_t room_;
  size_t used_ = 0;
  bool fits_ = true;
};

// The relay outlives the job and belongs to the user, not to the job: it gets what
// it needs to find its folders, and none of the loader's variables.
bool relay_wants(const char* entry) {
  for (const char* name : {"HOME=", "PATH=", "USER=", "LOGNAME=", "TMPDIR=", "XDG_"}) {
    if (starts_with(entry, name)) return true;
  }
  return starts_with(entry, "LULL_");
}

void keep_relay_environment(const char* const* envp, Settings* out) {
  size_t used = 0;
  for (; *envp != nullptr; ++envp) {
    size_t size = strlen(*envp) + 1;
    if (!relay_wants(*envp)) continue;
    if (used + size >= sizeof out->relay_environment) break;
    memcpy(out->relay_environment + used, *envp, size);
    used += size;
  }
  out->relay_environment[used] = 0;
}

}  // namespace

void read_settings(int argc, const char* const* argv, const char* const* envp,
                   uid_t user, Settings* out) {
  const char* socket = "";
  const char* runtime = "";
  const char* session = "";
  bool disabled = false;
  out->filters = -1;
  for (const char* const* entry = envp; entry != nullptr && *entry != nullptr;
       ++entry) {
    if (const char* value = value_of(*entry, abi::kSocketVariable)) socket = value;
    if (const char* value = value_of(*entry, abi::kDisableVariable)) {
      disabled = strcmp(value, "1") == 0;
    }
    if (const char* value = value_of(*entry, abi::kWorkersVariable)) {
      out->workers = strcmp(value, "1") == 0;
    }
    if (const char* value = value_of(*entry, abi::kSamplesVariable)) {
      out->no_samples = strcmp(value, "0") == 0;
    }
    if (const char* value = value_of(*entry, abi::kFiltersVariable)) {
      out->filters = small_number(value);
    }
    if (const char* value = value_of(*entry, abi::kStepRangeVariable)) {
      Text(out->step_range, sizeof out->step_range).add(value);
    }
    if (const char* value = value_of(*entry, "LULL_RUNTIME_DIR")) runtime = value;
    if (const char* value = value_of(*entry, "XDG_RUNTIME_DIR")) session = value;
  }
  out->kind = classify_process(argc, argv);
  out->enabled = !disabled && Text(out->socket, sizeof out->socket).add(socket).fits();
  if (!out->enabled || socket[0] != 0 || envp == nullptr) return;
  Text folder(out->runtime_folder, sizeof out->runtime_folder);
  if (runtime[0] == '/') {
    folder.add(runtime);
  } else if (session[0] == '/') {
    folder.add(session).add("/lull");
  } else {
    folder.add("/tmp/lull-").add(user);
  }
  keep_relay_environment(envp, out);
}

bool automatic_socket(const Settings& settings, pid_t session, char* out) {
  if (settings.runtime_folder[0] == 0) return false;
  return Text(out, kSocketPathSize)
      .add(settings.runtime_folder)
      .add("/auto-")
      .add(static_cast<uint64_t>(session))
      .add(".sock")
      .fits();
}

Settings& settings() { return g_settings; }

}  // namespace lull
