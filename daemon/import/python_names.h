// Names of Python frames as torch.profiler writes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ingest.pb.h"

namespace lull::imports {

// Where no file is told; aggregate::IsPythonInfrastructure knows them.
inline constexpr std::string_view kBuiltinFile = "<built-in>";
inline constexpr std::string_view kModuleFile = "<nn.Module>";
inline constexpr std::string_view kOperatorFile = "<operator>";

struct PythonName {
  std::string function;
  std::string file;
  int32_t line = 0;
};

// "train.py(12): step", "<built-in method item of Tensor object at 0x7f..>",
// "nn.Module: Linear_3". Without the addresses of objects, each of which would be a
// function of its own.
PythonName ParsePythonName(std::string_view name);

// "file(12): step;file(3): <module>", innermost first.
std::vector<lull::v1::Frame> ParseCallStack(std::string_view text);

}  // namespace lull::imports
