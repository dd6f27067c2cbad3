// What a symbol reader does (symbol_reader.h says why there are such processes).
#pragma once

#include <memory>

#include "daemon/base/unique_fd.h"
#include "daemon/relay/symbols/elf_module.h"

namespace lull::relay {

// This executable is one when it is started as `lull symbol-reader UID GID`.
inline constexpr char kSymbolReaderVerb[] = "symbol-reader";
inline constexpr int kSymbolReaderFd = 3;  // its end of the socket

using OpenModule = std::shared_ptr<ElfModule> (*)(UniqueFd file);

// Gives up what it may do, then answers until the relay is gone. Returns the exit
// status; main() must come here first of all for kSymbolReaderVerb. `open`: for tests.
int SymbolReaderMain(int argc, char** argv, OpenModule open = &ElfModule::Open);

}  // namespace lull::relay
