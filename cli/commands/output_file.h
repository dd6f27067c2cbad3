// Where a verb writes a file that may be large: packed on the way if its name ends in
// .gz, and whole or not there.
#pragma once

#include <zlib.h>

#include <string>

#include "absl/status/status.h"
#include "daemon/base/unique_fd.h"

namespace lull {

class OutputFile {
 public:
  // "" and "-" are stdout.
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  absl::Status Open();
  absl::Status Write(const std::string& bytes);
  // From here on the file has its name. Without it nothing is left, also of a process
  // that is killed, where the file system knows files without a name.
  absl::Status Finish();

 private:
  std::string Name() const;  // for messages
  UniqueFd OpenUnfinished();
  std::string Unfinished() const;  // of this process alone
  absl::Status KeepMode();
  absl::Status TakeName();
  absl::Status Pack(const std::string& bytes, int flush);

  const std::string path_;
  std::string target_;  // what path_ leads to
  unsigned mode_ = 0;   // of the file that is there, which the new one has too; 0: none
  // What is there and is no file (a pipe, a device) is written to, and stays what it
  // is.
  bool in_place_ = false;
  bool has_name_ = false;  // Unfinished()
  UniqueFd fd_;
  bool packing_ = false;
  z_stream stream_ = {};
};

}  // namespace lull
