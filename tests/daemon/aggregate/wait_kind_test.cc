#include "daemon/aggregate/wait_kind.h"

#include <gtest/gtest.h>

#include "daemon/aggregate/series.h"

namespace lull::aggregate {
namespace {

constexpr auto kScopeOfData = static_cast<uint8_t>(ScopeKind::kData);

std::string KindOf(const char* api, bool from_python, const char* file = "train.py") {
  Frame inner{"get", "/usr/lib/python3.11/queue.py", 1, ""};
  Frame outer{"f", file, 2, ""};
  return WaitKindName(ClassifyWait(api, from_python, {&inner, &outer}, {}));
}

TEST(WaitKind, IsDataBelowTheDataLoaderWhateverTheCall) {
  const char* loader =
      "/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py";
  for (const char* api : {"poll", "sem_timedwait", "pthread_cond_timedwait", "read"}) {
    EXPECT_EQ(KindOf(api, true, loader), "data") << api;
  }
  EXPECT_EQ(KindOf("poll", true, "/home/u/my_dataloader.py.txt"), "io");
}

TEST(WaitKind, IsNotDataWhileTheDataLoaderIsImported) {
  Frame import{"<module>",
               "/usr/lib/python3/dist-packages/torch/utils/data/dataloader.py", 9, ""};
  EXPECT_EQ(WaitKindName(ClassifyWait("read", true, {&import}, {})), std::string("io"));
}

TEST(WaitKind, IsGilOnlyForTheInterpretersOwnTimedWait) {
  EXPECT_EQ(KindOf("pthread_cond_timedwait", true), "gil");
  EXPECT_EQ(KindOf("pthread_cond_timedwait", false), "lock");
  EXPECT_EQ(KindOf("pthread_cond_wait", true), "lock");
}

TEST(WaitKind, FollowsFromTheCallOtherwise) {
  EXPECT_EQ(KindOf("sem_clockwait", true), "lock");
  EXPECT_EQ(KindOf("epoll_wait", true), "io");
  EXPECT_EQ(KindOf("recvmsg", false), "io");
  EXPECT_EQ(KindOf("select", true), "io");
  EXPECT_EQ(KindOf("clock_nanosleep", true), "sleep");
  EXPECT_EQ(KindOf("wait4", true), "process");
  EXPECT_EQ(KindOf("", false), "other");
}

std::string KindBelow(const char* function, const char* api = "pthread_cond_wait",
                      bool from_python = false) {
  Frame wait{"std::condition_variable::wait(std::unique_lock<std::mutex>&)", "", 0, ""};
  Frame frame{function, "", 0, "libtorch_cpu.so"};
  Frame line{"train", "train.py", 2, ""};
  return WaitKindName(ClassifyWait(api, from_python, {&line}, {&wait, &frame}));
}

TEST(WaitKind, IsCommBelowACollective) {
  for (const char* function :
       {"c10d::Reducer::finalize_backward()",
        "c10d::Work::wait(std::chrono::duration<long, std::ratio<1l, 1000l> >)",
        "c10d::(anonymous namespace)::wait_tensor(at::Tensor const&)",
        "torch::distributed::c10d::(anonymous namespace)::init(int)",
        "void gloo::broadcast<float>(gloo::BroadcastOptions&)",
        "gloo::transport::tcp::UnboundBuffer::waitRecv(int*)"}) {
    EXPECT_EQ(KindBelow(function), "comm") << function;
    EXPECT_EQ(KindBelow(function, "pthread_cond_clockwait"), "comm") << function;
    EXPECT_EQ(KindBelow(function, "poll"), "io") << "a store, or a device's loop";
    EXPECT_EQ(KindBelow(function, "sem_wait", true), "lock") << "Python's own";
  }
}

TEST(WaitKind, IsNotCommWhereACollectiveIsOnlyNamed) {
  for (const char* function :
       {"torch::autograd::Engine::execute(c10d::Reducer&)",
        "std::function<void (c10d::Reducer&)>::operator()(c10d::Reducer&) const",
        "void run<c10d::Work>(c10d::Work&)", "my_c10d::wait()", "c10d",
        "gloo_wait()"}) {
    EXPECT_EQ(KindBelow(function), "lock") << function;
  }
}

TEST(Variant, TellsAllocatorsAndGenerationsApart) {
  Event event;
  EXPECT_EQ(VariantOf(EventType::kDeviceMemory, event), 0);
  event.flags = kFlagPinned | kFlagFree;
  EXPECT_EQ(VariantOf(EventType::kDeviceMemory, event),
            static_cast<uint8_t>(Allocator::kPinned) | kVariantFree);
  event.flags = kFlagFailed;
  EXPECT_EQ(VariantOf(EventType::kTorchMemory, event),
            static_cast<uint8_t>(Allocator::kTorchCpu) | kVariantFailed);
  event.flags = 0;
  MemoryView{event}.set_device(TorchCuda(3));
  EXPECT_EQ(VariantOf(EventType::kTorchMemory, event),
            static_cast<uint8_t>(Allocator::kTorchCuda));
  GcPauseView{event}.set_generation(2);
  EXPECT_EQ(VariantOf(EventType::kGcPause, event), 2);
  ScopeView{event}.set_kind(kScopeOfData);
  EXPECT_EQ(VariantOf(EventType::kScope, event), kScopeOfData);
  event.flags = 0xff;
  CopyCallView{event}.set_kind(7);
  EXPECT_EQ(VariantOf(EventType::kSync, event), 0);
}

Series Of(EventType type, uint8_t variant) {
  Series series;
  series.type = type;
  series.variant = variant;
  return series;
}

TEST(WaitKind, OfALoaderIsItsWholeNextAndNotTheWaitsWithin) {
  const Series whole = Of(EventType::kScope, kScopeOfData);
  const Series within =
      Of(EventType::kHostWait, static_cast<uint8_t>(WaitKind::kWithinData));
  const Series blocked =
      Of(EventType::kHostWait, static_cast<uint8_t>(WaitKind::kData));
  EXPECT_TRUE(IsWait(whole) && IsDataWait(whole));
  EXPECT_FALSE(IsWait(within) || IsDataWait(within));
  EXPECT_TRUE(IsWait(blocked) && IsDataWait(blocked));
  EXPECT_FALSE(IsDataWait(Of(EventType::kHostWait, 3)));
  EXPECT_FALSE(IsWait(Of(EventType::kScope, 0)) || IsWait(Of(EventType::kScope, 2)));
  EXPECT_FALSE(IsWait(Of(EventType::kSync, 1)));
}

}  // namespace
}  // namespace lull::aggregate
