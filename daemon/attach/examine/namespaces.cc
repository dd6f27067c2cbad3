#include "daemon/attach/examine/namespaces.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/base/unique_fd.h"

namespace lull::attach {
namespace {

constexpr int kDeepest = 32;  // the kernel's own limit of nested user namespaces

Namespace Compare(const Procfs& procfs, pid_t pid, const char* kind) {
  std::string name = absl::StrCat("ns/", kind);
  Procfs::Answer theirs = procfs.Link(pid, name);
  Procfs::Answer ours = procfs.Link(absl::StrCat("self/", name));
  if (!theirs.ok() || !ours.ok()) return Namespace::kUnknown;
  return theirs.text == ours.text ? Namespace::kOurs : Namespace::kOther;
}

bool SameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Capabilities that we have count in the user namespaces below ours too.
bool IsBelowOurs(const Procfs& procfs, pid_t pid) {
  struct stat ours;
  if (stat(procfs.Path("self/ns/user").c_str(), &ours) != 0) return false;
  UniqueFd at(open(procfs.Path(pid, "ns/user").c_str(), O_RDONLY | O_CLOEXEC));
  for (int depth = 0; at && depth < kDeepest; ++depth) {
    struct stat here;
    if (fstat(at.get(), &here) != 0) return false;
    if (SameFile(here, ours)) return true;
    at.reset(ioctl(at.get(), NS_GET_PARENT));  // EPERM above our own
  }
  return false;
}

}  // namespace

void CompareNamespaces(const Procfs& procfs, Process* process) {
  process->pid_namespace = Compare(procfs, process->pid, "pid");
  process->mount_namespace = Compare(procfs, process->pid, "mnt");
  process->user_namespace = Compare(procfs, process->pid, "user");
  process->network_namespace = Compare(procfs, process->pid, "net");
  if (process->user_namespace == Namespace::kOther &&
      IsBelowOurs(procfs, process->pid)) {
    process->user_namespace = Namespace::kBelowOurs;
  }
  struct stat theirs, ours;
  process->same_root = process->mount_namespace == Namespace::kOurs &&
                       stat(procfs.Path(process->pid, "root").c_str(), &theirs) == 0 &&
                       stat(procfs.Path("self/root").c_str(), &ours) == 0 &&
                       SameFile(theirs, ours);
}

}  // namespace lull::attach
