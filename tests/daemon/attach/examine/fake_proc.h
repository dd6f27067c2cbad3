// A folder that looks like /proc, with the processes that a test wants in it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/procfs/procfs.h"

namespace lull::attach {

// What is not said is that of a native program of root's, asleep, in our namespaces.
struct FakeProcess {
  pid_t pid = 100;
  pid_t parent = 1;
  std::string name = "program";
  std::vector<std::string> arguments = {"/bin/program"};
  std::string executable = "/bin/program";
  std::vector<std::string> mapped = {"/lib/x86_64-linux-gnu/libc-2.31.so"};
  std::vector<std::string> environment;
  std::vector<std::string> open_files;
  char state = 'S';
  uint64_t stack = 0;        // its address; 0 = one of its own
  std::string status;        // more lines, before those that are always there
  std::string inner_mounts;  // another mount namespace, by its name
  std::string root_folder;   // "/" for it, if it is another than ours
};

class FakeProc {
 public:
  FakeProc();
  ~FakeProc();

  void Add(const FakeProcess& process);
  void Remove(pid_t pid, const std::string& name);
  void Write(const std::string& name, const std::string& text);

  const std::string& folder() const { return folder_; }
  Procfs procfs() const { return Procfs(folder_ + "/proc"); }

 private:
  std::string folder_;
};

// The lines of maps for these files, as code.
std::string MapsOf(const std::vector<std::string>& files);

// A process that runs a script in CPython 3.11.
FakeProcess Python(pid_t pid, pid_t parent, const std::vector<std::string>& arguments);

}  // namespace lull::attach
