// A target whose events name calls that nobody has named: such as an arena without room
// for more names leaves behind, and such as no shim writes. Run it below `lull run`; it
// prints how many events it committed, and how many of them can be delivered.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "tests/daemon/relay/fake_segment.h"

namespace {

using lull::abi::EventType;

constexpr uint64_t kRounds = 10;

lull::abi::Event EventOf(EventType type, uint16_t api) {
  lull::abi::Event event =
      lull::relay::MakeEvent(type, 1, lull::MonotonicNs() - 1'000'000);
  event.duration_ns = 1000;
  event.api = api;
  return event;
}

}  // namespace

int main() {
  const char* socket = getenv("LULL_SOCKET");
  lull::relay::FakeSegment segment;
  if (socket == nullptr || !segment.Handshake(socket)) return 1;
  constexpr uint16_t kSynchronize = 20;  // hook_list.h
  constexpr uint16_t kNoHook = 999;
  int committed = 0;
  for (uint64_t i = 0; i < kRounds; ++i) {
    for (const lull::abi::Event& event :
         {EventOf(EventType::kSync, kSynchronize), EventOf(EventType::kSync, kNoHook),
          EventOf(EventType::kApiCall, lull::abi::kRuntimeCallBase + 7),
          EventOf(EventType::kLaunch, lull::abi::kCallIdEnd)}) {
      committed += segment.Commit(0, event) ? 1 : 0;
    }
    usleep(50'000);
  }
  printf("%d %d\n", committed, static_cast<int>(kRounds));
  return 0;
}
