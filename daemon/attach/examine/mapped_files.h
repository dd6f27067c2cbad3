// What can be learned about a process from the files that it has mapped. Pure: text of
// /proc/PID/maps in, facts out.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace lull::attach {

struct MappedFiles {
  std::string glibc;  // path of libc.so.6, as the process sees it; "" = not mapped
  bool musl = false;
  bool cuda_runtime = false;   // libcudart: linked in, or loaded by `import torch`
  bool cuda_driver = false;    // libcuda: a CUDA call was made
  std::string python_version;  // "3.11", "3.13t" (without the GIL); "" = no Python seen
  std::string shim;            // path of liblull.so; "" = not mapped
  uint64_t segment = 0;        // where a segment of the shim begins; 0 = none
  // One that has not been put to sleep; ReadMappedFiles() takes that for granted.
  bool shim_records = false;
};

MappedFiles ReadMappedFiles(absl::string_view maps);

// "3.11" of "python3.11", "libpython3.11.so.1.0"; "3.13t" where the GIL is off; "2.7".
// "" for other names, also for "python3".
std::string PythonVersionOf(absl::string_view file_name);

// A program that is an interpreter by its name: "python", "python3", "python3.11".
bool IsPythonProgram(absl::string_view file_name);

// The last component of a path.
absl::string_view FileName(absl::string_view path);

}  // namespace lull::attach
