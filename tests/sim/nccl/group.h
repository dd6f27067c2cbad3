// What one thread has asked for between ncclGroupStart and ncclGroupEnd; outside of
// those a group holds one call.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/sim/nccl/communicator.h"

namespace lull::sim::nccl {

class Group {
 public:
  static Group& mine();  // the calling thread's

  void start() { ++depth_; }
  int end();

  // Each is done at once if no group is open.
  int add_join(Communicator* communicator, void** out);
  int add_split(Communicator* communicator, int color, int key, void** out);
  int add_call(Communicator* communicator, void* stream, const Call& call);
  // A call that was refused spoils the group.
  int refuse(int result);

 private:
  struct Join {
    Communicator* communicator;
    void** out;
  };
  struct Split {
    Communicator* communicator;
    uint64_t number;
    void** out;
  };
  // Calls of one communicator on one stream: one kernel.
  struct Launch {
    Communicator* communicator;
    void* stream;
    std::vector<Call> calls;
  };

  int run();
  int unless_open() { return depth_ > 0 ? kSuccess : run(); }

  int depth_ = 0;
  int refused_ = kSuccess;
  std::vector<Join> joins_;
  std::vector<Split> splits_;
  std::vector<Launch> launches_;
};

// Communicators that the program holds.
bool is_live(const void* handle);
void add_live(Communicator* communicator);
void remove_live(Communicator* communicator);

}  // namespace lull::sim::nccl
