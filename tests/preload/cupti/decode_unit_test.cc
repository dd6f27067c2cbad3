// One activity record into one event, for every kind and every version.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "daemon/base/gpu_event_views.h"
#include "preload/cupti/decode.h"
#include "preload/cupti/entries.h"
#include "tests/preload/cupti/fake_cupti.h"
#include "tests/preload/cupti/records.h"
#include "tests/preload/support/test_segment.h"

namespace lull::cupti {
namespace {

using abi::Event;
using abi::EventType;

constexpr uint64_t kBegin = 5'000'000'000;  // monotonic
constexpr uint64_t kEpoch = 1'700'000'000'000'000'000;

class Decode : public testing::Test {
 protected:
  Decode() {
    api_ = FakeCupti::api();
    for (uint64_t i = 0; i < 10; ++i) {
      uint64_t at = kBegin + i * 100'000'000;
      clock_.add({at, kEpoch + at, kEpoch + at});
    }
    clock_.finish();
  }

  template <typename Record>
  Outcome decode(const Record& record, size_t size = sizeof(Record)) {
    Decoder decoder = {segment_.base(), &api_,       &names_,  &contexts_,
                       thread_ids_,     generation_, begun_ns_};
    Lifetime lifetime = {kBegin, kBegin + 900'000'000};
    return lull::cupti::decode(decoder, clock_, lifetime,
                               reinterpret_cast<const Activity*>(&record), size,
                               &event_);
  }
  static uint64_t trace(uint64_t after) { return kEpoch + kBegin + after; }

  template <typename Entry>
  const Entry& entry(abi::Ref ref) {
    return *reinterpret_cast<const Entry*>(segment_.view().entry(ref));
  }
  std::string text(abi::Ref ref) {
    auto& found = entry<abi::TextEntry>(ref);
    EXPECT_EQ(found.header.kind, abi::EntryKind::kText);
    return {reinterpret_cast<const char*>(&found + 1), found.size};
  }
  void expect_time(uint64_t after, uint64_t duration) {
    EXPECT_EQ(event_.start_ns, kBegin + after);
    EXPECT_EQ(event_.duration_ns, duration);
  }

  FakeCuptiScope scope_;
  TestSegment segment_;
  Api api_;
  CallNames names_;
  ContextDevices contexts_;
  ClockView clock_;
  bool thread_ids_ = true;
  uint32_t generation_ = 1;
  uint64_t begun_ns_ = 0;
  Event event_;
};

TEST_F(Decode, AKernelWithItsShapeStreamAndTime) {
  Kernel record = kernel_record(trace(1000), trace(4500), 99);
  record.graph = 5;
  record.graph_node = 1ull << 40;
  ASSERT_EQ(decode(record), Outcome::kEvent);
  EXPECT_EQ(event_.type, EventType::kGpuKernel);
  expect_time(1000, 3500);
  EXPECT_EQ(OperationView{event_}.graph(), 5u);
  EXPECT_EQ(OperationView{event_}.graph_node(), 1ull << 40);
  EXPECT_EQ(OperationView{event_}.correlation(), CorrelationId{99});
  auto& kernel = entry<abi::KernelEntry>(event_.py_stack);
  EXPECT_EQ(kernel.header.kind, abi::EntryKind::kKernel);
  EXPECT_EQ(text(kernel.name), kKernelName);
  EXPECT_EQ(kernel.grid[0], 128u);
  EXPECT_EQ(kernel.grid[1], 2u);
  EXPECT_EQ(kernel.block[0], 256u);
  EXPECT_EQ(kernel.registers_per_thread, 40u);
  EXPECT_EQ(kernel.static_shared_bytes, 1024u);
  EXPECT_EQ(kernel.dynamic_shared_bytes, 2048u);
  auto& stream = entry<abi::GpuStreamEntry>(event_.native_stack);
  EXPECT_EQ(stream.header.kind, abi::EntryKind::kGpuStream);
  EXPECT_EQ(stream.device, 0u);
  EXPECT_EQ(stream.context, 1u);
  EXPECT_EQ(stream.stream, 7u);
}

TEST_F(Decode, ARepeatedLaunchIsOneEntry) {
  ASSERT_EQ(decode(kernel_record(trace(0), trace(1))), Outcome::kEvent);
  abi::Ref first = event_.py_stack;
  uint32_t used = segment_.view().header().arena_used;
  ASSERT_EQ(decode(kernel_record(trace(5), trace(9), 2)), Outcome::kEvent);
  EXPECT_EQ(event_.py_stack, first);
  EXPECT_EQ(segment_.view().header().arena_used, used);
}

TEST_F(Decode, WithLittleRoomKernelsLoseTheirShapesAndKeepTheirNames) {
  segment_.view().header().arena_used = uint32_t{kShapesUpTo} / 16 * 16;
  Kernel record = kernel_record(trace(0), trace(1));
  ASSERT_EQ(decode(record), Outcome::kEvent);
  abi::Ref first = event_.py_stack;
  EXPECT_EQ(entry<abi::KernelEntry>(first).grid[0], 0u);
  EXPECT_EQ(text(entry<abi::KernelEntry>(first).name), kKernelName);
  record.grid[0] = 999;
  ASSERT_EQ(decode(record), Outcome::kEvent);
  EXPECT_EQ(event_.py_stack, first);
}

uint64_t kinds(abi::GpuCopyKind copy, abi::GpuMemoryKind source,
               abi::GpuMemoryKind destination) {
  return static_cast<uint64_t>(copy) | static_cast<uint64_t>(source) << 8 |
         static_cast<uint64_t>(destination) << 16;
}

TEST_F(Decode, ACopyWithItsDirectionAndKindsOfMemory) {
  Memcpy record = {};
  record.kind = Kind::kMemcpy;
  record.copy_kind = 1;
  record.source_kind = 2;
  record.destination_kind = 3;
  record.bytes = 4096;
  record.start = trace(10);
  record.end = trace(30);
  record.context = 1;
  record.stream = 13;
  record.correlation = 8;
  record.graph = 6;
  ASSERT_EQ(decode(record), Outcome::kEvent);
  EXPECT_EQ(event_.type, EventType::kGpuCopy);
  expect_time(10, 20);
  EXPECT_EQ(GpuCopyView{event_}.bytes(), 4096u);
  EXPECT_EQ(event_.arg1,
            kinds(abi::GpuCopyKind::kHostToDevice, abi::GpuMemoryKind::kPinned,
                  abi::GpuMemoryKind::kDevice) |
                uint64_t{6} << 32);
  EXPECT_EQ(GpuCopyView{event_}.correlation(), CorrelationId{8});
  EXPECT_EQ(entry<abi::GpuStreamEntry>(event_.native_stack).stream, 13u);
}

TEST_F(Decode, ACopyBetweenDevices) {
  MemcpyPeer record = {};
  record.kind = Kind::kMemcpyPeer;
  record.copy_kind = 10;
  record.source_kind = record.destination_kind = 3;
  record.bytes = 1 << 20;
  record.start = trace(1);
  record.end = trace(2);
  record.device = 1;
  record.correlation = 77;
  ASSERT_EQ(decode(record), Outcome::kEvent);
  EXPECT_EQ(event_.type, EventType::kGpuCopy);
  EXPECT_EQ(GpuCopyView{event_}.bytes(), 1u << 20);
  EXPECT_EQ(event_.arg1,
            kinds(abi::GpuCopyKind::kPeerToPeer, abi::GpuMemoryKind::kDevice,
                  abi::GpuMemoryKind::kDevice));
  EXPECT_EQ(GpuCopyView{event_}.correlation(), CorrelationId{77});
  EXPECT_EQ(entry<abi::GpuStreamEntry>(event_.native_stack).device, 1u);
  // What a newer CUPTI may tell.
  record.copy_kind = 11;
  record.source_kind = record.destination_kind = 8;
  ASSERT_EQ(decode(record), Outcome::kEvent);
  EXPECT_EQ(GpuCopyView{event_}.shape().packed, 0u);
}

TEST_F(Decode, AMemset) {
  Memset record = {};
  record.kind = Kind::kMemset;
  record.bytes = 512;
  record.start = trace(3);
  record.end = trace(9);
  record.correlation = 4;
  record.graph = 2;
  ASSERT_EQ(decode(record), Outcome::kEvent);
  EXPECT_EQ(event_.type, EventType::kGpuMemset);
  expect_time(3, 6);
  EXPECT_EQ(GpuCopyView{event_}.bytes(), 512u);
  EXPECT_EQ(event_.arg1, 2u) << "the graph";
  EXPECT_EQ(GpuCopyView{event_}.correlation(), CorrelationId{4});
}

TEST_F(Decode, AWholeGraph) {
  GraphTrace record = {};
  record.kind = Kind::kGraphTrace;
  record.start = trace(3);
  record.end = trace(9);
  record.correlation = 4;
  record.graph = 21;
  ASSERT_EQ(decode(record), Outcome::kEvent);
  EXPECT_EQ(event_.type, EventType::kGpuGraph);
  EXPECT_EQ(OperationView{event_}.graph(), 21u);
  EXPECT_EQ(OperationView{event_}.correlation(), CorrelationId{4});
}

TEST_F(Decode, ACallWithItsPlainNameThreadAndFailure) {
  ApiCall record =
      call_record(Kind::kRuntime, kCudaLaunchKernel, trace(5), trace(8), 31);
  record.return_value = 719;
  ASSERT_EQ(decode(record), Outcome::kEvent);
  EXPECT_EQ(event_.type, EventType::kApiCall);
  EXPECT_EQ(event_.api, abi::kRuntimeCallBase + kCudaLaunchKernel);
  EXPECT_EQ(text(event_.py_stack), "cudaLaunchKernel");
  EXPECT_EQ(ApiCallView{event_}.caller(), ThreadId{4321});
  EXPECT_EQ(ApiCallView{event_}.correlation(), CorrelationId{31});
  EXPECT_EQ(event_.flags, abi::kFlagFailed);
  expect_time(5, 3);

  ASSERT_EQ(decode(call_record(Kind::kDriver, 277, trace(5), trace(8))),
            Outcome::kEvent);
  EXPECT_EQ(event_.api, abi::kDriverCallBase + 277);
  EXPECT_EQ(text(event_.py_stack), "cuMemcpyHtoD_v2");
  EXPECT_EQ(event_.flags, 0);
}

// The next segment's arena knows nothing of what was interned in this one's.
TEST_F(Decode, ACallsNameIsMadeAnewForEachSegment) {
  ApiCall record = call_record(Kind::kRuntime, kCudaLaunchKernel, trace(5), trace(8));
  ASSERT_EQ(decode(record), Outcome::kEvent);
  TestSegment next;
  Decoder decoder = {next.base(), &api_, &names_, &contexts_, true, generation_ + 1};
  ASSERT_EQ(lull::cupti::decode(decoder, clock_, {kBegin, kBegin + 900'000'000},
                                reinterpret_cast<const Activity*>(&record),
                                sizeof record, &event_),
            Outcome::kEvent);
  auto& name =
      *reinterpret_cast<const abi::TextEntry*>(next.view().entry(event_.py_stack));
  EXPECT_EQ(name.header.kind, abi::EntryKind::kText);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(&name + 1), name.size),
            "cudaLaunchKernel");
}

TEST_F(Decode, WhatEndedBeforeTheRecordingBeganIsOfAnEarlierOne) {
  begun_ns_ = kBegin + 1000;
  EXPECT_EQ(decode(kernel_record(trace(500), trace(999))), Outcome::kSkipped);
  EXPECT_EQ(decode(call_record(Kind::kRuntime, kCudaLaunchKernel, trace(5), trace(8))),
            Outcome::kSkipped);
  EXPECT_EQ(decode(kernel_record(trace(500), trace(1500))), Outcome::kEvent);
}

TEST_F(Decode, AThreadThatCuptiNamesOtherwiseIsNotTold) {
  thread_ids_ = false;
  ASSERT_EQ(decode(call_record(Kind::kDriver, kCuLaunchKernel, trace(5), trace(8))),
            Outcome::kEvent);
  EXPECT_EQ(ApiCallView{event_}.caller(), ThreadId{0});
}

TEST_F(Decode, CallsThatNeitherSubmitNorWaitAreLeftOut) {
  EXPECT_EQ(decode(call_record(Kind::kRuntime, kCudaGetDevice, trace(5), trace(8))),
            Outcome::kSkipped);
  for (uint32_t unknown : {0u, 1000u, 5000u, UINT32_MAX}) {
    EXPECT_EQ(decode(call_record(Kind::kRuntime, unknown, trace(5), trace(8))),
              Outcome::kSkipped);
  }
}

TEST_F(Decode, AStreamThatWaitsForAnEventOnTheDeviceOfItsContext) {
  Synchronization record = {};
  record.kind = Kind::kSynchronization;
  record.type = kStreamWaitEvent;
  record.start = trace(5);
  record.end = trace(6);
  record.context = 3;
  record.stream = 20;
  record.event = 17;
  record.correlation = 55;
  ASSERT_EQ(decode(record), Outcome::kEvent);
  EXPECT_EQ(event_.type, EventType::kGpuStreamWait);
  EXPECT_EQ(StreamWaitView{event_}.awaited(), 17u);
  EXPECT_EQ(StreamWaitView{event_}.correlation(), CorrelationId{55});
  EXPECT_EQ(entry<abi::GpuStreamEntry>(event_.native_stack).device, kDeviceUnknown);

  Kernel kernel = kernel_record(trace(1), trace(2));
  kernel.context = 3;
  kernel.device = 2;
  ASSERT_EQ(decode(kernel), Outcome::kEvent);
  ASSERT_EQ(decode(record), Outcome::kEvent);
  EXPECT_EQ(entry<abi::GpuStreamEntry>(event_.native_stack).device, 2u);

  record.context = 4;
  contexts_.set_only(0);
  ASSERT_EQ(decode(record), Outcome::kEvent);
  EXPECT_EQ(entry<abi::GpuStreamEntry>(event_.native_stack).device, 0u);
}

TEST_F(Decode, OtherSynchronisationsAreLeftOut) {
  for (uint32_t type : {0u, 1u, 3u, 4u}) {
    Synchronization record = {};
    record.kind = Kind::kSynchronization;
    record.type = type;
    record.start = trace(5);
    record.end = trace(6);
    EXPECT_EQ(decode(record), Outcome::kSkipped) << type;
  }
}

TEST_F(Decode, KindsThatNobodyAskedForAreLeftOut) {
  Activity record = {};
  for (uint32_t kind : {0u, 3u, 9u, 17u, 36u, 60u, 0x7fffffffu}) {
    record.kind = static_cast<Kind>(kind);
    EXPECT_EQ(decode(record), Outcome::kSkipped) << kind;
  }
}

TEST_F(Decode, RecordsWithoutSenseAreSenseless) {
  EXPECT_EQ(decode(kernel_record(0, 0)), Outcome::kSenseless)
      << "no room on the device";
  EXPECT_EQ(decode(kernel_record(0, trace(5))), Outcome::kSenseless);
  EXPECT_EQ(decode(kernel_record(trace(5), 0)), Outcome::kSenseless) << "unfinished";
  EXPECT_EQ(decode(kernel_record(trace(5), trace(4))), Outcome::kSenseless);
  Kernel nameless = kernel_record(trace(5), trace(6));
  nameless.name = nullptr;
  EXPECT_EQ(decode(nameless), Outcome::kSenseless);
  EXPECT_EQ(decode(kernel_record(trace(0), trace(1'200'000'000))), Outcome::kSenseless)
      << "ended after its buffer came back";
}

TEST_F(Decode, TimesOfNoKnownClockAreUnreadable) {
  EXPECT_EQ(decode(kernel_record(12, 40)), Outcome::kUnreadable);
  EXPECT_EQ(decode(kernel_record(trace(0), UINT64_MAX / 2)), Outcome::kUnreadable);
  EXPECT_EQ(decode(kernel_record(trace(60'000'000'000), trace(60'000'000'001))),
            Outcome::kUnreadable);
}

TEST_F(Decode, RecordsThatAreCutOffAreSenseless) {
  Kernel kernel = kernel_record(trace(5), trace(6));
  EXPECT_EQ(decode(kernel, sizeof kernel - 1), Outcome::kSenseless);
  EXPECT_EQ(decode(kernel, sizeof(Activity) - 1), Outcome::kSenseless);
  ApiCall call = call_record(Kind::kDriver, kCuLaunchKernel, trace(5), trace(8));
  EXPECT_EQ(decode(call, sizeof call - 1), Outcome::kSenseless);
}

TEST_F(Decode, NothingOfARandomRecordGetsOutOfBounds) {
  std::mt19937_64 random(7);
  constexpr Kind kKinds[] = {Kind::kConcurrentKernel, Kind::kMemcpy,
                             Kind::kMemcpyPeer,       Kind::kMemset,
                             Kind::kRuntime,          Kind::kDriver,
                             Kind::kSynchronization,  Kind::kGraphTrace};
  for (int i = 0; i < 20'000; ++i) {
    uint64_t words[32];
    for (uint64_t& word : words) word = random() >> random() % 64;
    auto* record = reinterpret_cast<Activity*>(words);
    record->kind = kKinds[random() % 8];
    // CUPTI's own pointer is the one thing that is believed.
    reinterpret_cast<Kernel*>(words)->name = kKernelName;
    decode(words, random() % sizeof words);
  }
  EXPECT_LE(segment_.view().header().arena_used, abi::kArenaSize);
}

TEST(CallNames, KeepTheFunctionsVersionAndDropCudas) {
  auto plain = [](const char* name) {
    return std::string(name, plain_name_length(name));
  };
  EXPECT_EQ(plain("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
  EXPECT_EQ(plain("cudaMemcpyAsync_ptsz_v7000"), "cudaMemcpyAsync_ptsz");
  EXPECT_EQ(plain("cudaGraphLaunch_v10000"), "cudaGraphLaunch");
  EXPECT_EQ(plain("cuMemcpyHtoD_v2"), "cuMemcpyHtoD_v2");
  EXPECT_EQ(plain("cuLaunchKernel"), "cuLaunchKernel");
  EXPECT_EQ(plain("_v7000"), "_v7000");
  EXPECT_EQ(plain(""), "");
}

TEST(CallNames, WantWhatSubmitsOrWaits) {
  for (const char* name :
       {"cudaLaunchKernel_v7000", "cuLaunchKernelEx", "cudaMemcpyAsync_v3020",
        "cuMemsetD8Async", "cudaGraphLaunch_v10000", "cudaMemPrefetchAsync_v8000",
        "cudaStreamSynchronize_v3020", "cuCtxSynchronize", "cuStreamWaitEvent"}) {
    EXPECT_TRUE(is_wanted_call(name)) << name;
  }
  for (const char* name : {"cudaGetDevice_v3020", "cudaMalloc_v3020", "cuCtxGetCurrent",
                           "cudaEventQuery_v3020", "cudaGetLastError_v3020"}) {
    EXPECT_FALSE(is_wanted_call(name)) << name;
  }
}

}  // namespace
}  // namespace lull::cupti
