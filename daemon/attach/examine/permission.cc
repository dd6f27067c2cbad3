#include "daemon/attach/examine/permission.h"

#include <errno.h>
#include <string.h>

#include <optional>

#include "absl/strings/str_cat.h"

namespace lull::attach {
namespace {

bool AllAre(const Ids& ids, uint32_t id) {
  return ids.real == id && ids.effective == id && ids.saved == id;
}

bool IsCapable(const Process& process, const Viewpoint& view) {
  return view.may_trace_anybody() && (process.user_namespace == Namespace::kOurs ||
                                      process.user_namespace == Namespace::kBelowOurs);
}

Obstacle OtherUser(const Process& process, const Viewpoint& view) {
  return {"other_user", absl::StrCat("user ", process.user, "'s"),
          absl::StrCat("It belongs to ", process.user, ", and lull runs as ", view.user,
                       "."),
          absl::StrCat("Run lull as that user (`sudo -u ", process.user,
                       " lull attach ", process.pid, "`) or as root.")};
}

Obstacle Denied(const std::string& how) {
  return {"ptrace_denied", "ptrace denied",
          absl::StrCat("The user is right, but ", how,
                       ": a seccomp filter, a missing capability or a security module "
                       "(AppArmor, SELinux) forbids ptrace here."),
          "Start lull's container with `--cap-add SYS_PTRACE` (and `--security-opt "
          "seccomp=unconfined` on old Docker, `apparmor=unconfined` under AppArmor), "
          "run lull on the host, or start the job under `lull run --dormant`, which "
          "needs no ptrace."};
}

std::optional<Obstacle> JudgeCredentials(const Process& process,
                                         const Viewpoint& view) {
  if (!AllAre(process.users, view.uid)) return OtherUser(process, view);
  if (!AllAre(process.groups, view.gid)) {
    return Obstacle{"other_group", "other group",
                    absl::StrCat("It runs with group ", process.groups.effective,
                                 ", and lull with group ", view.gid,
                                 "; the kernel wants both alike."),
                    absl::StrCat("Run lull with that group (`sg`, `newgrp`) or as "
                                 "root.")};
  }
  if (!process.dumpable) {
    return Obstacle{"not_dumpable", "shielded",
                    "The kernel shields it from its own user: it was started setuid or "
                    "with file capabilities, its file is not readable, or it asked for "
                    "that (PR_SET_DUMPABLE).",
                    "Run lull as root."};
  }
  if ((process.capabilities & ~view.permitted_capabilities) != 0) {
    return Obstacle{"capabilities", "more privileged",
                    "It has capabilities that lull has not.",
                    "Run lull as root, or with the same capabilities."};
  }
  return std::nullopt;
}

std::optional<Obstacle> JudgeYama(const Process& process, const Viewpoint& view,
                                  bool is_capable, bool is_descendant) {
  std::string scope =
      absl::StrCat("kernel.yama.ptrace_scope is ", view.yama_scope, ": ");
  constexpr char kWithoutPtrace[] =
      "or start the job under `lull run --dormant`, which needs no ptrace.";
  if (view.yama_scope == 1 && !is_capable && !is_descendant) {
    return Obstacle{
        "yama", "yama",
        absl::StrCat(scope,
                     "a process may be traced by its ancestors and by root "
                     "only."),
        absl::StrCat("Run lull as root (`sudo lull attach ", process.pid,
                     "`), set `sysctl kernel.yama.ptrace_scope=0`, ", kWithoutPtrace)};
  }
  if (view.yama_scope == 2 && !is_capable) {
    return Obstacle{"yama", "yama",
                    absl::StrCat(scope, "only root (CAP_SYS_PTRACE) may trace."),
                    absl::StrCat("Run lull as root, ", kWithoutPtrace)};
  }
  if (view.yama_scope >= 3) {
    return Obstacle{"yama", "yama",
                    absl::StrCat(scope, "nobody may trace, until the next boot."),
                    "Boot with another setting, or start the job under `lull run "
                    "--dormant`, which needs no ptrace."};
  }
  return std::nullopt;
}

std::optional<Obstacle> JudgeByRules(const Process& process, const Viewpoint& view,
                                     const Circumstances& circumstances) {
  bool is_capable = IsCapable(process, view);
  if (!is_capable) {
    if (auto obstacle = JudgeCredentials(process, view)) return obstacle;
  }
  if (auto obstacle =
          JudgeYama(process, view, is_capable, circumstances.is_descendant)) {
    return obstacle;
  }
  if (!process.readable) return Denied("its memory may not be looked at");
  return std::nullopt;
}

}  // namespace

void JudgePermission(const Process& process, const Viewpoint& view,
                     const Circumstances& circumstances,
                     std::vector<Obstacle>* obstacles) {
  const std::optional<int>& probe = circumstances.probe;
  if (probe && *probe == 0) return;  // a rule has an exception that /proc does not show
  auto obstacle = JudgeByRules(process, view, circumstances);
  if (!obstacle && probe && (*probe == EPERM || *probe == EACCES || *probe == ENOSYS)) {
    obstacle = Denied(absl::StrCat("ptrace answers \"", strerror(*probe), "\""));
  }
  if (obstacle) obstacles->push_back(*std::move(obstacle));
}

}  // namespace lull::attach
