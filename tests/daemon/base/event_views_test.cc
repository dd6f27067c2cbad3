// The one place where the numbers of arguments stand: all else goes by their names.
// They are those of the table in preload/abi/event.h.
#include "daemon/base/event_views.h"

#include <gtest/gtest.h>

#include <sstream>
#include <unordered_set>

#include "daemon/base/gpu_event_views.h"
#include "events.pb.h"
#include "preload/abi/event.h"

namespace lull {
namespace {

abi::Event Of(uint64_t arg0, uint64_t arg1, uint32_t arg2) {
  abi::Event event = {};
  event.arg0 = arg0;
  event.arg1 = arg1;
  event.arg2 = arg2;
  return event;
}

void ExpectArguments(const abi::Event& event, uint64_t arg0, uint64_t arg1,
                     uint32_t arg2) {
  EXPECT_EQ(event.arg0, arg0);
  EXPECT_EQ(event.arg1, arg1);
  EXPECT_EQ(event.arg2, arg2);
}

TEST(EventViews, NameTheArgumentsOfWhatTheHostDid) {
  const abi::Event event = Of(11, 12, 13);
  EXPECT_EQ(ThreadStartView{event}.thread(), ThreadId{11});
  EXPECT_EQ(LaunchView{event}.stream(), 11u);
  EXPECT_EQ(LaunchView{event}.function(), 12u);
  EXPECT_EQ(CopyCallView{event}.stream(), 11u);
  EXPECT_EQ(CopyCallView{event}.bytes(), 12u);
  EXPECT_EQ(CopyCallView{event}.kind(), 13u);
  EXPECT_EQ(MemoryView{event}.address(), 11u);
  EXPECT_EQ(MemoryView{event}.bytes(), 12u);
  EXPECT_EQ(MemoryView{event}.device(), TorchDevice{13});
  EXPECT_EQ(ReservedView{event}.allocated(), 11u);
  EXPECT_EQ(ReservedView{event}.bytes(), 12u);
  EXPECT_EQ(ReservedView{event}.device(), TorchDevice{13});
  EXPECT_EQ(GcPauseView{event}.collected(), 11u);
  EXPECT_EQ(GcPauseView{event}.uncollectable(), 12u);
  EXPECT_EQ(GcPauseView{event}.generation(), 13u);
  EXPECT_EQ(HostWaitView{event}.descriptor(), 11u);
  EXPECT_EQ(HostWaitView{event}.result(), 12);
  EXPECT_EQ(HostWaitView{event}.part_of(), 13u);
  EXPECT_EQ(StepView{event}.number(), 11u);
  EXPECT_EQ(StepView{event}.source(), 13u);
  EXPECT_EQ(ScopeView{event}.begun_by(), ThreadId{11});
  EXPECT_EQ(ScopeView{event}.depth(), 12u);
  EXPECT_EQ(ScopeView{event}.kind(), 13u);
  EXPECT_EQ(NonFiniteView{event}.bits(), 11u);
  EXPECT_EQ(RunDelayView{event}.delay_ns(), 11u);
  EXPECT_EQ(RunDelayView{event}.migrations(), 12u);
  EXPECT_EQ(RunDelayView{event}.preemptions(), 13u);
  EXPECT_EQ(SampleView{event}.weight_ns(), 11u);
  EXPECT_EQ(SampleView{event}.doing(), 12u);
  EXPECT_EQ(SampleView{event}.role(), 13u);
}

TEST(EventViews, NameTheArgumentsOfWhatRanOnADevice) {
  const abi::Event event = Of(11, 12, 13);
  EXPECT_EQ(OperationView{event}.graph(), 11u);
  EXPECT_EQ(OperationView{event}.graph_node(), 12u);
  EXPECT_EQ(OperationView{event}.correlation(), CorrelationId{13});
  EXPECT_EQ(GpuCopyView{event}.bytes(), 11u);
  EXPECT_EQ(GpuCopyView{event}.shape().packed, 12u);
  EXPECT_EQ(GpuCopyView{event}.correlation(), CorrelationId{13});
  EXPECT_EQ(ApiCallView{event}.caller(), ThreadId{11});
  EXPECT_EQ(ApiCallView{event}.correlation(), CorrelationId{13});
  EXPECT_EQ(StreamWaitView{event}.caller(), ThreadId{11});
  EXPECT_EQ(StreamWaitView{event}.awaited(), 12u);
  EXPECT_EQ(StreamWaitView{event}.correlation(), CorrelationId{13});
  EXPECT_EQ(TracingView{event}.state(), 11u);
  EXPECT_EQ(TracingView{event}.reason(), 12u);
  EXPECT_EQ(TracingView{event}.window(), 13u);
  EXPECT_EQ(LostView{event}.records(), 11u);
}

TEST(EventViews, WriteWhatTheyRead) {
  abi::Event event = {};
  MemoryView{event}.set_address(1).set_bytes(2).set_device(TorchCuda(3));
  ExpectArguments(event, 1, 2, 1 << 8 | 3);
  EXPECT_EQ(TypeOf(MemoryView{event}.device()), 1u);
  EXPECT_EQ(IndexOf(MemoryView{event}.device()), 3u);
  SampleView{event}
      .set_weight_ns(4)
      .set_look(v1::HOST_SAMPLE_STATE_BLOCKED, v1::HOST_SAMPLE_QUALITY_CUT)
      .set_role(v1::HOST_SAMPLE_ROLE_LOADER);
  ExpectArguments(event, 4, 2 | 2 << 8, 3);
  ScopeView{event}
      .set_begun_by(ThreadId{0})
      .set_place(5, abi::ScopeSource::kNvtx)
      .set_kind(abi::ScopeKind::kData);
  ExpectArguments(event, 0, uint64_t{2} << 32 | 5, 1);
  EXPECT_TRUE(ScopeView{event}.ended_here());
  EXPECT_EQ(ScopeView{event}.depth(), 5u);
  GpuCopyView{event}
      .set_bytes(6)
      .set_shape(CopyShape::Of(abi::GpuCopyKind::kDeviceToDevice,
                               abi::GpuMemoryKind::kPinned, abi::GpuMemoryKind::kArray))
      .set_correlation(CorrelationId{7});
  ExpectArguments(event, 6, 8 | 2 << 8 | 4 << 16, 7);
  HostWaitView{event}.set_result(-1);
  EXPECT_EQ(event.arg1, UINT64_MAX);
}

TEST(EventViews, LeaveTheGraphOfACopyOutOfItsShape) {
  const abi::Event event = Of(0, uint64_t{77} << 32 | 8 | 3 << 8 | 3 << 16, 0);
  const CopyShape shape = GpuCopyView{event}.shape();
  EXPECT_EQ(shape.kind(), static_cast<uint32_t>(v1::GPU_COPY_KIND_DEVICE_TO_DEVICE));
  EXPECT_EQ(shape.source(), static_cast<uint32_t>(v1::GPU_MEMORY_KIND_DEVICE));
  EXPECT_EQ(shape.destination(), static_cast<uint32_t>(v1::GPU_MEMORY_KIND_DEVICE));
}

TEST(Ids, PrintAndHashAsTheNumbersThatTheyAre) {
  std::ostringstream out;
  out << DeviceId{3} << " " << ThreadId{4711};
  EXPECT_EQ(out.str(), "3 4711");
  EXPECT_EQ(Number(StreamId{7}), 7u);
  EXPECT_EQ(std::unordered_set<DeviceId>({DeviceId{1}, DeviceId{1}}).size(), 1u);
}

}  // namespace
}  // namespace lull
