// liblull.so coming into a process that runs already: this one. What the injector does
// on a thread of the target is done here by a plain call.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "preload/abi/attach.h"
#include "preload/abi/hook_list.h"
#include "preload/abi/segment.h"
#include "tests/preload/cuda_fake.h"
#include "tests/preload/support/fake_relay.h"

extern "C" {
int attach_now_12(int launches);
int attach_lazy_13(int launches);
}

namespace lull {
namespace {

using abi::AttachResult;
using Entry = void(const void*, size_t, int64_t*);

// As the injector does it: RTLD_LOCAL, late, and pinned by itself.
class Shim {
 public:
  Shim() {
    void* handle = dlopen(LULL_SHIM, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      fprintf(stderr, "%s\n", dlerror());
      abort();
    }
    attach_ = reinterpret_cast<Entry*>(dlsym(handle, abi::kAttachFunction));
    detach_ = reinterpret_cast<Entry*>(dlsym(handle, abi::kDetachFunction));
  }

  AttachResult Attach(const std::string& socket) {
    abi::AttachRequest request = {};
    request.magic = abi::kSegmentMagic;
    request.version = abi::kVersion;
    strncpy(request.socket, socket.c_str(), sizeof request.socket - 1);
    return Call(attach_, &request, sizeof request);
  }
  AttachResult Detach() {
    abi::DetachRequest request = {abi::kSegmentMagic, abi::kVersion, 0};
    return Call(detach_, &request, sizeof request);
  }
  AttachResult Raw(const void* argument, size_t size) {
    int64_t result = 0;
    attach_(argument, size, &result);
    return static_cast<AttachResult>(result);
  }

 private:
  static AttachResult Call(Entry* entry, const void* argument, size_t size) {
    for (int calls = 0; calls < 10'000; ++calls) {
      int64_t result = 0;
      entry(argument, size, &result);
      if (static_cast<AttachResult>(result) != AttachResult::kMore) {
        return static_cast<AttachResult>(result);
      }
      usleep(100);
    }
    return AttachResult::kMore;
  }

  Entry* attach_;
  Entry* detach_;
};

std::map<std::string, int> EventsOf(const FakeRelay::Target& target) {
  abi::SegmentView view(target.segment);
  std::map<std::string, int> events;
  for (uint32_t i = 0; i < view.header().rings_used; ++i) {
    const abi::RingHeader& ring = view.ring(i);
    uint64_t head = ring.head.load(std::memory_order_acquire);
    for (uint64_t at = 0; at < head; ++at) {
      const abi::Event& event = view.slot(i, at);
      if (event.api != 0) ++events[abi::hook_name(event.api)];
    }
  }
  return events;
}

TEST(Attach, SeesWhatIsCalledFromThenOnUntilItIsDetached) {
  FakeRelay relay;
  attach_now_12(5);
  attach_lazy_13(5);
  Shim shim;
  attach_now_12(5);
  ASSERT_EQ(shim.Attach(relay.path()), AttachResult::kDone);
  int before_12 = fake_log_12()->calls, before_13 = fake_log_13()->calls;
  attach_now_12(10);
  attach_lazy_13(20);
  EXPECT_EQ(fake_log_12()->calls - before_12, 11);
  EXPECT_EQ(fake_log_13()->calls - before_13, 21);
  FakeRelay::Target target = relay.wait_for_target();
  EXPECT_EQ(EventsOf(target)["cudaLaunchKernel"], 30);
  EXPECT_EQ(EventsOf(target)["cudaDeviceSynchronize"], 2);
  ASSERT_EQ(shim.Detach(), AttachResult::kDone);
  attach_now_12(10);
  attach_lazy_13(20);
  EXPECT_EQ(EventsOf(target)["cudaLaunchKernel"], 30);
  EXPECT_EQ(fake_log_12()->calls - before_12, 22);
}

TEST(Attach, SeesFunctionsThatWereNeverCalledBefore) {
  FakeRelay relay;
  Shim shim;
  ASSERT_EQ(shim.Attach(relay.path()), AttachResult::kDone);
  attach_lazy_13(7);
  EXPECT_EQ(EventsOf(relay.wait_for_target())["cudaLaunchKernel"], 7);
  EXPECT_EQ(fake_log_13()->calls, 8);
  EXPECT_EQ(fake_log_12()->calls, 0);
}

TEST(Attach, SeesLibrariesThatAreLoadedLater) {
  FakeRelay relay;
  Shim shim;
  ASSERT_EQ(shim.Attach(relay.path()), AttachResult::kDone);
  void* handle = dlopen(LATE_CALLER, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << dlerror();
  auto* call = reinterpret_cast<int (*)(int)>(dlsym(handle, "attach_late_12"));
  ASSERT_NE(call, nullptr);
  call(6);
  EXPECT_EQ(EventsOf(relay.wait_for_target())["cudaLaunchKernel"], 6);
  // Unloaded and loaded again, perhaps elsewhere.
  dlclose(handle);
  handle = dlopen(LATE_CALLER, RTLD_NOW | RTLD_LOCAL);
  call = reinterpret_cast<int (*)(int)>(dlsym(handle, "attach_late_12"));
  call(4);
  EXPECT_EQ(EventsOf(relay.wait_for_target())["cudaLaunchKernel"], 10);
  ASSERT_EQ(shim.Detach(), AttachResult::kDone);
  call(4);
  EXPECT_EQ(EventsOf(relay.wait_for_target())["cudaLaunchKernel"], 10);
}

TEST(Attach, SeesWaitsOfThreadsThatLaunch) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "this program's nanosleep is TSan's, which an attach leaves alone";
#endif
  FakeRelay relay;
  Shim shim;
  ASSERT_EQ(shim.Attach(relay.path()), AttachResult::kDone);
  usleep(2'000);  // nobody's
  attach_now_12(1);
  timespec time{0, 3'000'000};
  nanosleep(&time, nullptr);
  std::map<std::string, int> events = EventsOf(relay.wait_for_target());
  EXPECT_EQ(events["nanosleep"], 1);
}

TEST(Attach, LeavesAProcessAsItWasWhenTheRelayDoesNotAnswer) {
  Shim shim;
  EXPECT_EQ(shim.Attach("/nowhere/relay.sock"), AttachResult::kRefused);
  EXPECT_EQ(attach_now_12(3), 0);
  EXPECT_EQ(shim.Detach(), AttachResult::kDone);
  FakeRelay relay;
  ASSERT_EQ(shim.Attach(relay.path()), AttachResult::kDone);
  attach_now_12(3);
  EXPECT_EQ(EventsOf(relay.wait_for_target())["cudaLaunchKernel"], 3);
}

TEST(Attach, RefusesRequestsOfAnotherVersion) {
  Shim shim;
  abi::AttachRequest request = {};
  EXPECT_EQ(shim.Raw(&request, sizeof request), AttachResult::kBadRequest);
  request.magic = abi::kSegmentMagic;
  request.version = abi::kVersion;
  EXPECT_EQ(shim.Raw(&request, sizeof request),
            AttachResult::kBadRequest);  // no socket
  EXPECT_EQ(shim.Raw(&request, 8), AttachResult::kBadRequest);
  memset(request.socket, 'x', sizeof request.socket);
  EXPECT_EQ(shim.Raw(&request, sizeof request), AttachResult::kBadRequest);
}

// A thread that was blocked in a hook while the process was detached and attached to
// again ends its call in the new segment, and no memory is missing under it.
TEST(Attach, OutlastsCallsThatWereUnderWay) {
  Shim shim;
  FakeRelay first;
  ASSERT_EQ(shim.Attach(first.path()), AttachResult::kDone);
  attach_now_12(1);
  std::atomic<bool> asleep{false};
  std::thread sleeper([&] {
    attach_now_12(1);  // watched from here on
    asleep = true;
    timespec time{0, 300'000'000};
    nanosleep(&time, nullptr);
    attach_now_12(2);
  });
  while (!asleep) usleep(1000);
  usleep(20'000);
  ASSERT_EQ(shim.Detach(), AttachResult::kDone);
  FakeRelay second;
  ASSERT_EQ(shim.Attach(second.path()), AttachResult::kDone);
  sleeper.join();
  EXPECT_EQ(EventsOf(second.wait_for_target())["cudaLaunchKernel"], 2);
}

TEST(Attach, ChildrenOfADetachedProcessRest) {
  Shim shim;
  FakeRelay relay;
  ASSERT_EQ(shim.Attach(relay.path()), AttachResult::kDone);
  ASSERT_EQ(shim.Detach(), AttachResult::kDone);
  pid_t child = fork();
  if (child == 0) {
    attach_now_12(3);
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(relay.targets().size(), 1u);
}

TEST(Attach, ChildrenOfAnAttachedProcessAreSeenWhenTheyUseTheGpu) {
  Shim shim;
  FakeRelay relay;
  ASSERT_EQ(shim.Attach(relay.path()), AttachResult::kDone);
  pid_t child = fork();
  if (child == 0) {
    attach_now_12(3);
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ASSERT_EQ(relay.targets().size(), 2u);
  EXPECT_EQ(EventsOf(relay.targets()[1])["cudaLaunchKernel"], 3);
}

size_t MappedKilobytes() {
  std::ifstream file("/proc/self/statm");
  size_t pages = 0;
  file >> pages;
  return pages * 4;
}

TEST(Attach, ComesAndGoesAHundredTimesUnderLoad) {
  Shim shim;
  std::atomic<bool> stop{false};
  std::atomic<long> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&, i] {
      while (!stop) {
        if (i % 2 == 0 ? attach_now_12(50) : attach_lazy_13(50)) ++wrong;
        free(malloc(static_cast<size_t>(i) * 1000));
        if (i == 3) {
          void* handle = dlopen(LATE_CALLER, RTLD_NOW | RTLD_LOCAL);
          auto* call = reinterpret_cast<int (*)(int)>(dlsym(handle, "attach_late_12"));
          if (call == nullptr || call(1) != 0) ++wrong;
          dlclose(handle);
        }
        usleep(100);
      }
    });
  }
  [[maybe_unused]] size_t mapped = 0;
  for (int round = 0; round < 100; ++round) {
    FakeRelay relay;
    ASSERT_EQ(shim.Attach(relay.path()), AttachResult::kDone);
    attach_now_12(10);
    usleep(1'000);
    EXPECT_GE(EventsOf(relay.wait_for_target())["cudaLaunchKernel"], 10);
    ASSERT_EQ(shim.Detach(), AttachResult::kDone);
    if (round == 10) mapped = MappedKilobytes();
  }
#ifndef __SANITIZE_THREAD__  // whose shadow memory grows by more
  // The fake relays of this very process map each segment, too; the shim itself maps
  // none beyond the first.
  EXPECT_LT(MappedKilobytes(), mapped + 90 * (abi::kSegmentSize / 1024) + 50'000);
#endif
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace lull
