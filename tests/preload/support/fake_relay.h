// The relay's end of the handshake, as far as the shim can see it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "preload/abi/segment.h"

namespace lull {

class FakeRelay {
 public:
  enum class Manner {
    kWelcome,       // accepts
    kRefuse,        // answers no
    kOtherVersion,  // answers yes, in a version of the future
    kShortAnswer,   // answers less than a Welcome
    kSilence,       // reads the Hello and says nothing
    kHangUp,        // closes the connection unread
    kNotAccepting,  // listens, but never accepts
  };

  // What the relay writes into a target's control block before it answers.
  using Configure = std::function<void(abi::ControlBlock&)>;

  // Listens on a socket in a folder of its own.
  explicit FakeRelay(Manner manner = Manner::kWelcome, Configure configure = {});
  ~FakeRelay();
  FakeRelay(const FakeRelay&) = delete;
  FakeRelay& operator=(const FakeRelay&) = delete;

  const std::string& path() const { return path_; }

  struct Target {
    pid_t pid;  // as the kernel says
    int memfd;
    char* segment;
    int memory = -1;  // of itself, for reading; -1: it gave none
  };
  // Those that said Hello until now.
  std::vector<Target> targets();

  // The one target, after it has come; aborts the test program after 10 s.
  Target wait_for_target();

 private:
  void serve();
  void answer(int connection);

  Manner manner_;
  Configure configure_;
  std::string folder_;
  std::string path_;
  int listener_;
  std::mutex mutex_;
  std::vector<Target> targets_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace lull
