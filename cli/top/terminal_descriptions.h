// Descriptions of the common terminals, made of the terminfo of the machine that built
// lull (cli/top/embed_terminals.cmake).
#pragma once

#include <string>

namespace lull {

// A value for $TERMINFO; nullptr: it is not among them.
const char* BuiltInTerminal(const std::string& name);

}  // namespace lull
