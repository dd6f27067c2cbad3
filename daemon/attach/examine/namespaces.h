// Which namespaces a process shares with us.
#pragma once

#include "daemon/attach/examine/process.h"

namespace lull::attach {

// Fills the *_namespace fields and same_root.
void CompareNamespaces(const Procfs& procfs, Process* process);

}  // namespace lull::attach
