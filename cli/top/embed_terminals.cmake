# Writes OUT: descriptions of common terminals as values of $TERMINFO, which ncurses reads
# from there as base64 (ncurses 6.1 and later). infocmp is of Debian's ncurses-bin, the
# descriptions are of ncurses-base; both are essential there.
set(terminals xterm-256color xterm screen-256color screen tmux-256color tmux linux vt100
  vt220 rxvt-unicode-256color)
set(rows "")
foreach(terminal IN LISTS terminals)
  execute_process(COMMAND infocmp -0 -Q2 ${terminal}
    OUTPUT_VARIABLE text ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    continue()
  endif()
  string(REGEX REPLACE "^#[^\n]*\n" "" text "${text}")
  string(REGEX REPLACE "[ \t\r\n]" "" text "${text}")
  if(NOT text MATCHES "^b64:[-A-Za-z0-9_+/=]+$")
    message(FATAL_ERROR "infocmp -Q2 ${terminal} told something else than base64")
  endif()
  # Literals are cut: compilers need not take long ones.
  string(REGEX REPLACE "(................................................................)"
    "\\1\"\n     \"" text "${text}")
  string(APPEND rows "    {\"${terminal}\",\n     \"${text}\"},\n")
endforeach()
if(rows STREQUAL "")
  message(FATAL_ERROR "no terminal is known here: install ncurses-bin and ncurses-base")
endif()
file(WRITE ${OUT} "// Made by cli/top/embed_terminals.cmake.
#include \"cli/top/terminal_descriptions.h\"

namespace lull {

const char* BuiltInTerminal(const std::string& name) {
  static const struct {
    const char* name;
    const char* description;
  } kTerminals[] = {
${rows}  };
  for (const auto& terminal : kTerminals) {
    if (name == terminal.name) return terminal.description;
  }
  return nullptr;
}

}  // namespace lull
")
