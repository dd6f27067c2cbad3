#include "tests/sim/nccl/group.h"

#include <algorithm>
#include <utility>

namespace lull::sim::nccl {
namespace {

std::mutex g_live_mutex;  // of the next
std::vector<const void*>* g_live = new std::vector<const void*>;

}  // namespace

bool is_live(const void* handle) {
  std::lock_guard lock(g_live_mutex);
  return std::ranges::find(*g_live, handle) != g_live->end();
}

void add_live(Communicator* communicator) {
  std::lock_guard lock(g_live_mutex);
  g_live->push_back(communicator);
}

void remove_live(Communicator* communicator) {
  std::lock_guard lock(g_live_mutex);
  std::erase(*g_live, communicator);
}

Group& Group::mine() {
  // Not destroyed with the thread: exit handlers may still communicate.
  thread_local Group* t_group = new Group;
  return *t_group;
}

int Group::end() {
  if (depth_ == 0) return kInvalidUsage;
  return --depth_ > 0 ? kSuccess : run();
}

int Group::add_join(Communicator* communicator, void** out) {
  joins_.push_back({communicator, out});
  return unless_open();
}

int Group::add_split(Communicator* communicator, int color, int key, void** out) {
  *out = nullptr;
  splits_.push_back({communicator, communicator->choose(color, key), out});
  return unless_open();
}

int Group::add_call(Communicator* communicator, void* stream, const Call& call) {
  auto same = std::ranges::find_if(launches_, [&](const Launch& launch) {
    return launch.communicator == communicator && launch.stream == stream;
  });
  if (same == launches_.end()) {
    same = launches_.insert(same, {communicator, stream, {}});
  }
  same->calls.push_back(call);
  return unless_open();
}

int Group::refuse(int result) {
  if (depth_ > 0 && refused_ == kSuccess) refused_ = result;
  return result;
}

int Group::run() {
  auto splits = std::exchange(splits_, {});
  auto joins = std::exchange(joins_, {});
  auto launches = std::exchange(launches_, {});
  int result = std::exchange(refused_, kSuccess);
  auto keep = [&](int error) {
    if (result == kSuccess) result = error;
    return error == kSuccess;
  };
  for (const Split& split : splits) {
    Communicator* made = nullptr;
    if (keep(split.communicator->collect(split.number, &made)) && made != nullptr) {
      joins.push_back({made, split.out});
    }
  }
  for (const Join& join : joins) {
    if (!keep(join.communicator->wait_for_all())) continue;
    add_live(join.communicator);
    *join.out = join.communicator;
  }
  for (const Launch& launch : launches) {
    if (result == kSuccess)
      keep(launch.communicator->launch(launch.calls, launch.stream));
  }
  return result;
}

}  // namespace lull::sim::nccl
