#include "daemon/attach/examine/viewpoint.h"

#include <linux/capability.h>

#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "daemon/attach/examine/process.h"
#include "daemon/procfs/stat.h"

namespace lull::attach {

bool Viewpoint::may_trace_anybody() const {
  return (capabilities >> CAP_SYS_PTRACE & 1) != 0;
}

Viewpoint ReadViewpoint(const Procfs& procfs) {
  Viewpoint view;
  std::string status = procfs.Read("self/status").text;
  auto field = [&status](const char* name) {
    return std::string(StatusField(status, name));
  };
  view.pid = atoi(field("Pid").c_str());
  view.uid = static_cast<uint32_t>(strtoul(field("Uid").c_str(), nullptr, 10));
  view.gid = static_cast<uint32_t>(strtoul(field("Gid").c_str(), nullptr, 10));
  view.user = UserName(view.uid);
  view.capabilities = strtoull(field("CapEff").c_str(), nullptr, 16);
  view.permitted_capabilities = strtoull(field("CapPrm").c_str(), nullptr, 16);
  std::string scope = procfs.Read("sys/kernel/yama/ptrace_scope").text;
  if (!absl::SimpleAtoi(scope, &view.yama_scope)) view.yama_scope = -1;
  view.kernel =
      std::string(absl::StripAsciiWhitespace(procfs.Read("sys/kernel/osrelease").text));
  sscanf(view.kernel.c_str(), "%d.%d", &view.kernel_major, &view.kernel_minor);
  return view;
}

}  // namespace lull::attach
