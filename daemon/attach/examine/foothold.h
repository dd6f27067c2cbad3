// A place for the shim and the relay's socket that both lull and the target can reach.
//
// A target of our own user that sees the same files as we do needs nothing: the
// installed library as it is, and a socket in lull's runtime folder. For any other (a
// container, a chroot, another user's process when we are root) a folder is made that
// is the target's own: below /run, /tmp, /var/tmp or /dev/shm of its view, with mode
// 0700, a name that cannot be guessed, and copies of the shim and what it loads from
// beside it.
//
// The target may be hostile, and lull may be root. So nothing in there is done with our
// own rights: files are made and removed with the target's user id (setfsuid), on
// descriptors that were opened one component after the other without following symbolic
// links. Files of ours are only read.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/attach/examine/process.h"
#include "daemon/base/unique_fd.h"
#include "daemon/procfs/procfs.h"

namespace lull::attach {

// True: it needs no folder of its own.
bool SeesOurFiles(const Process& process);

// The folder, as the target sees it, below which MakeFoothold would make one. Makes
// nothing. FAILED_PRECONDITION says for each place why it cannot be used.
absl::StatusOr<std::string> FindFoothold(const Process& process,
                                         const Procfs& procfs = Procfs());

struct FootholdOptions {
  std::string library;            // the installed liblull.so
  std::string runtime_directory;  // of lull, made already
};

// Owns what it made: the destructor removes it. A library that is mapped stays so.
class Foothold {
 public:
  Foothold(Foothold&&) = default;
  Foothold& operator=(Foothold&&) = delete;
  ~Foothold();

  std::string ours;  // the folder, by a path that is ours alone and only as long as
                     // this lives: /proc/self/fd/N cannot be redirected by anyone
  std::string as_target;  // the same folder in the target's view
  std::string library_ours;
  std::string library_as_target;  // to be loaded there, by dlopen
  std::string socket_ours;
  std::string socket_as_target;  // for the shim to connect to; at most 107 bytes

  // Listens on the socket (SOCK_SEQPACKET, mode 0600, close-on-exec) with the target's
  // rights. If the folder is the target's, this is better than binding `socket_ours`
  // with our rights: some file systems refuse files of users that they do not know.
  absl::StatusOr<UniqueFd> Listen();

  // Whether a folder was made, and the shim copied.
  bool is_copy() const { return folder_.get() >= 0; }

 private:
  friend absl::StatusOr<Foothold> MakeFoothold(const Process&, const FootholdOptions&,
                                               const Procfs&);
  Foothold() = default;
  absl::Status MakeFolder(const std::string& name);
  void Name(const std::string& folder, const std::string& library);

  uint32_t user_ = 0;  // whose the folder is
  uint32_t group_ = 0;
  UniqueFd parent_;
  UniqueFd folder_;
  std::string name_;                // of the folder, in `parent_`
  std::vector<std::string> files_;  // in the folder, or the socket's path without one
};

// UNAVAILABLE: the process is gone. FAILED_PRECONDITION: no place will do.
absl::StatusOr<Foothold> MakeFoothold(const Process& process,
                                      const FootholdOptions& options,
                                      const Procfs& procfs = Procfs());

}  // namespace lull::attach
