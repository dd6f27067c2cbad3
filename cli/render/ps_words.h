// Words that the list and the page of one process share.
#pragma once

#include <string>

#include "daemon/attach/examine/examination.h"

namespace lull {

std::string CommandOf(const attach::Process& process);  // "[name]" where there is none
std::string ProgramWords(const attach::Process& process);  // "Python 3.11", "native"
std::string RankWords(const Rank& rank);                   // "3 of 8", "3", "-"
std::string GpuWords(const attach::Process& process);      // "0,1", "CUDA", "-"
const char* RoleId(attach::Role role);

}  // namespace lull
