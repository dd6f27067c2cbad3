// Where a verb writes a file: whole, or what was there stays as it is.
#pragma once

#include <zlib.h>

#include <string>

#include "absl/status/status.h"
#include "daemon/base/unique_fd.h"

namespace lull {

class OutputFile {
 public:
  // "" and "-" are stdout. A file whose name ends in .gz is packed on the way, unless
  // `as_it_is`.
  explicit OutputFile(const std::string& path, bool as_it_is = false);
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
  const bool may_pack_;
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

// All of a file at once, never packed.
absl::Status WriteWhole(const std::string& path, const std::string& text);

}  // namespace lull
