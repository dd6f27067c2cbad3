// lulld as a process of its own, for tests that kill it or read its exit status.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace lull::test {

class LulldProcess {
 public:
  // Starts $LULLD with `arguments`.
  explicit LulldProcess(const std::vector<std::string>& arguments);
  ~LulldProcess();  // kills and reaps it

  // True once somebody listens on the unix socket; false if it ended before.
  bool AwaitSocket(const std::string& path);

  pid_t pid() const { return pid_; }
  void Signal(int signal);
  int Wait();  // exit status, or 128 + signal
  // What it wrote to stderr; only after Wait.
  const std::string& errors() const { return errors_; }

 private:
  pid_t pid_ = -1;
  int error_pipe_ = -1;
  std::string errors_;
};

}  // namespace lull::test
