#include "daemon/attach/examine/foothold.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "daemon/attach/examine/inside.h"
#include "daemon/attach/examine/mapped_files.h"
#include "daemon/base/status.h"

namespace lull::attach {
namespace {

constexpr const char* kPlaces[] = {"run", "tmp", "var/tmp", "dev/shm"};
constexpr char kSocketName[] = "s";
// What the shim opens from beside itself (preload/stacks/native.cc), where it is there.
constexpr const char* kCompanions[] = {"libunwind.so.8"};

absl::StatusOr<std::string> RandomName() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof(number), 0) != sizeof(number)) {
    return ErrnoStatus(errno, "no random number");
  }
  return absl::StrFormat("lull-%016x", number);
}

absl::StatusOr<UniqueFd> OpenRoot(const Process& process, const Procfs& procfs) {
  UniqueFd root(
      open(procfs.Path(process.pid, "root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) {
    return absl::UnavailableError(absl::StrCat("its files cannot be reached through ",
                                               procfs.Path(process.pid, "root"), ": ",
                                               strerror(errno)));
  }
  return root;
}

// Calls `use` with each place that will do, until one returns OK. Its fd is O_PATH.
template <typename Use>
absl::StatusOr<std::string> FirstPlace(const Process& process, const Procfs& procfs,
                                       Use use) {
  LULL_ASSIGN_OR_RETURN(UniqueFd root, OpenRoot(process, procfs));
  ActAs target(process.users.effective, process.groups.effective);
  if (!target.ok()) {
    return absl::PermissionDeniedError(
        absl::StrCat("lull may not make files as ", process.user));
  }
  std::vector<std::string> why;
  for (const char* place : kPlaces) {
    auto folder = OpenInside(root.get(), place);
    absl::Status status = folder.status();
    if (status.ok()) status = CheckPlace(folder->get());
    if (status.ok()) status = use(*std::move(folder), place);
    if (status.ok()) return absl::StrCat("/", place);
    why.push_back(absl::StrCat("/", place, " ", std::string(status.message())));
  }
  return absl::FailedPreconditionError(absl::StrJoin(why, ", "));
}

absl::StatusOr<sockaddr_un> SocketAddress(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the path is too long for a socket: ", path,
                     "; set LULL_RUNTIME_DIR to a shorter one"));
  }
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

std::string FolderOf(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

}  // namespace

bool SeesOurFiles(const Process& process) {
  return process.same_root && process.users.effective == geteuid();
}

absl::StatusOr<std::string> FindFoothold(const Process& process, const Procfs& procfs) {
  if (SeesOurFiles(process)) return "";
  return FirstPlace(process, procfs,
                    [](UniqueFd, const char*) { return absl::OkStatus(); });
}

absl::StatusOr<Foothold> MakeFoothold(const Process& process,
                                      const FootholdOptions& options,
                                      const Procfs& procfs) {
  LULL_ASSIGN_OR_RETURN(std::string name, RandomName());
  if (SeesOurFiles(process)) {
    Foothold foothold;
    foothold.user_ = geteuid();
    foothold.group_ = getegid();
    foothold.ours = foothold.as_target = options.runtime_directory;
    foothold.library_ours = foothold.library_as_target = options.library;
    foothold.socket_ours = foothold.socket_as_target =
        absl::StrCat(options.runtime_directory, "/", name, ".sock");
    LULL_RETURN_IF_ERROR(SocketAddress(foothold.socket_ours).status());
    foothold.files_.push_back(foothold.socket_ours);
    return foothold;
  }
  std::vector<std::pair<std::string, UniqueFd>> sources;  // opened with our own rights
  sources.emplace_back(FileName(options.library),
                       open(options.library.c_str(), O_RDONLY | O_CLOEXEC));
  if (!sources[0].second) {
    return ErrnoStatus(errno, absl::StrCat("cannot open ", options.library));
  }
  for (const char* companion : kCompanions) {
    std::string path = absl::StrCat(FolderOf(options.library), "/", companion);
    UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file) sources.emplace_back(companion, std::move(file));
  }
  std::optional<Foothold> made;
  auto make = [&](UniqueFd parent, const char* place) {
    Foothold foothold;
    foothold.user_ = process.users.effective;
    foothold.group_ = process.groups.effective;
    foothold.parent_ = std::move(parent);
    LULL_RETURN_IF_ERROR(foothold.MakeFolder(name));
    for (const auto& [file, fd] : sources) {
      LULL_RETURN_IF_ERROR(CopyInside(fd.get(), foothold.folder_.get(), file.c_str()));
      foothold.files_.push_back(file);
    }
    foothold.Name(absl::StrCat("/", place, "/", name), sources[0].first);
    made.emplace(std::move(foothold));
    return absl::OkStatus();
  };
  LULL_RETURN_IF_ERROR(FirstPlace(process, procfs, make).status());
  return *std::move(made);
}

absl::Status Foothold::MakeFolder(const std::string& name) {
  if (mkdirat(parent_.get(), name.c_str(), 0700) != 0) {
    return ErrnoStatus(errno, "cannot make a folder");
  }
  name_ = name;
  folder_.reset(openat(parent_.get(), name.c_str(),
                       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return folder_ ? absl::OkStatus() : ErrnoStatus(errno, "cannot open the folder");
}

void Foothold::Name(const std::string& folder, const std::string& library) {
  ours = absl::StrCat("/proc/self/fd/", folder_.get());
  as_target = folder;
  library_ours = absl::StrCat(ours, "/", library);
  library_as_target = absl::StrCat(folder, "/", library);
  socket_ours = absl::StrCat(ours, "/", kSocketName);
  socket_as_target = absl::StrCat(folder, "/", kSocketName);
  files_.push_back(kSocketName);
}

absl::StatusOr<UniqueFd> Foothold::Listen() {
  LULL_ASSIGN_OR_RETURN(sockaddr_un address, SocketAddress(socket_ours));
  UniqueFd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) return ErrnoStatus(errno, "cannot make a socket");
  // bind() makes the file with the socket's own mode, less the umask. The socket is
  // ours, the file the target's.
  if (fchmod(listener.get(), 0600) != 0) {
    return ErrnoStatus(errno, "cannot make a private socket");
  }
  ActAs target(user_, group_);
  if (bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) !=
          0 ||
      listen(listener.get(), SOMAXCONN) != 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot listen on ", socket_as_target));
  }
  return listener;
}

Foothold::~Foothold() {
  if (!parent_) {  // nothing but a socket in our own folder, or moved from
    for (const std::string& path : files_) unlink(path.c_str());
    return;
  }
  ActAs target(user_, group_);
  if (!target.ok()) return;
  for (const std::string& file : files_) unlinkat(folder_.get(), file.c_str(), 0);
  if (!name_.empty()) unlinkat(parent_.get(), name_.c_str(), AT_REMOVEDIR);
}

}  // namespace lull::attach
