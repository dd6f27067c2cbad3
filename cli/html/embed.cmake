# Makes KINDTemplate() of the page, its style and its scripts:
#   cmake -DOUT=template.cc -DKIND=File -DASSETS=FOLDER -DSCRIPTS="a.js b.js" -DSTYLES="a.css"
#     "-DPOLICY=what its policy allows beside them" -P embed.cmake
#
# The policy of the page allows this very style and this very script, by their hashes;
# whoever changes a byte of a finished page's script has a page that does nothing.

# Base64 of the SHA-256 of `text`, as a policy wants it.
function(policy_hash out text)
  set(alphabet "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  string(SHA256 hex "${text}")
  # 32 bytes are ten groups of three, and two bytes more.
  string(APPEND hex "00")
  set(result "")
  foreach(group RANGE 10)
    math(EXPR at "${group} * 6")
    string(SUBSTRING "${hex}" ${at} 6 three)
    foreach(shift 18 12 6 0)
      math(EXPR index "(0x${three} >> ${shift}) & 63")
      string(SUBSTRING "${alphabet}" ${index} 1 letter)
      string(APPEND result "${letter}")
    endforeach()
  endforeach()
  string(SUBSTRING "${result}" 0 43 result)
  set(${out} "sha256-${result}=" PARENT_SCOPE)
endfunction()

# All files of a list, one after another.
function(join_files out)
  set(text "")
  foreach(name IN LISTS ARGN)
    file(READ "${ASSETS}/${name}" content)
    string(APPEND text "${content}")
  endforeach()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# As literals of C++ of a bearable length each; the text is ASCII.
function(literals out text)
  string(LENGTH "${text}" left)
  set(at 0)
  set(result "")
  while(left GREATER 0)
    string(SUBSTRING "${text}" ${at} 8000 piece)
    string(APPEND result "    R\"lull(${piece})lull\",\n")
    math(EXPR at "${at} + 8000")
    math(EXPR left "${left} - 8000")
  endwhile()
  set(${out} "${result}" PARENT_SCOPE)
endfunction()

string(REPLACE " " ";" SCRIPTS "${SCRIPTS}")
string(REPLACE " " ";" STYLES "${STYLES}")
join_files(script ${SCRIPTS})
set(script "'use strict';\n(() => {\n${script}})();\n")
join_files(style ${STYLES})
foreach(text script style)
  if("${${text}}" MATCHES "</|<!--|[^\t\n -~]|\\)lull\"")
    message(FATAL_ERROR "${text}: '${CMAKE_MATCH_0}' cannot stand within the page")
  endif()
endforeach()
policy_hash(script_hash "${script}")
policy_hash(style_hash "${style}")
file(READ "${ASSETS}/page.html" page)
string(REPLACE "@MORE_POLICY@" "${POLICY}" page "${page}")
string(REPLACE "@STYLE_HASH@" "${style_hash}" page "${page}")
string(REPLACE "@SCRIPT_HASH@" "${script_hash}" page "${page}")
string(REPLACE "@STYLE@" "${style}" page "${page}")
string(REPLACE "@SCRIPT@" "${script}" page "${page}")
string(FIND "${page}" "@DATA@" cut)
string(SUBSTRING "${page}" 0 ${cut} before)
math(EXPR cut "${cut} + 6")
string(SUBSTRING "${page}" ${cut} -1 after)
string(LENGTH "${before}${after}" bytes)
literals(before "${before}")
literals(after "${after}")
file(WRITE "${OUT}" "// Made by embed.cmake.
#include \"cli/html/template.h\"

namespace lull {
namespace {

constexpr absl::string_view k${KIND}Before[] = {
${before}};
constexpr absl::string_view k${KIND}After[] = {
${after}};

}  // namespace

Template ${KIND}Template() { return {k${KIND}Before, k${KIND}After, ${bytes}}; }

}  // namespace lull
")
