// A victim as the tests hold it: started, watched, ended.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/attach/inject/inject.h"
#include "tests/daemon/attach/inject/shared_page.h"

namespace lull::inject {

// Paths of what was built beside the test: "inject_victim", "libinject_probe.so" ...
std::string Built(const std::string& name);

class VictimProcess {
 public:
  // inject_victim KIND PAGE THREADS, with `environment` added. Ready when this returns.
  VictimProcess(const std::string& kind, int threads,
                const std::vector<std::string>& environment = {});
  // Any command; counts as ready after a short while.
  explicit VictimProcess(const std::vector<std::string>& command);
  ~VictimProcess();  // kills what is left
  VictimProcess(const VictimProcess&) = delete;
  VictimProcess& operator=(const VictimProcess&) = delete;

  pid_t pid() const { return pid_; }
  SharedPage& page() { return *page_; }
  bool IsAlive() const;
  // Tells it to stop, and waits. Its wait status, or -1 after ten seconds.
  int End();

 private:
  void Start(const std::vector<std::string>& command,
             const std::vector<std::string>& environment);

  pid_t pid_ = -1;
  std::string path_;
  SharedPage* page_ = nullptr;
};

// probe("abc") of the probe library.
Request ProbeRequest(pid_t pid);
// `stops`: those of an injector of its own.
absl::StatusOr<Outcome> Inject(const Request& request, Stops* stops = nullptr);

// Median and worst of what was measured, on stdout and into the test's report.
void Report(const std::string& what, std::vector<absl::Duration> pauses);

}  // namespace lull::inject
