#include "daemon/relay/read/definitions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string.h>

#include "daemon/base/backward_frames.h"
#include "daemon/relay/read/target.h"
#include "tests/daemon/relay/fake_segment.h"

namespace lull::relay {
namespace {

using abi::EventType;
using Result = Definitions::Result;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class DefinitionsTest : public ::testing::Test {
 protected:
  Result Define(EventType type, abi::Ref python, abi::Ref native, uint16_t api = 0) {
    event_ = MakeEvent(type, 1);
    event_.py_stack = python;
    event_.native_stack = native;
    event_.api = api;
    return definitions_.Define(&event_, &batch_);
  }
  const lull::v1::Batch& batch() { return *batch_.batch(); }

  FakeSegment segment_;
  SegmentReader reader_{segment_.base()};
  Definitions definitions_{9, &reader_, nullptr, kMaxBatchBytes};
  BatchBuilder batch_;
  abi::Event event_{};
};

TEST_F(DefinitionsTest, DescribesAKernelAndItsStreamOnce) {
  abi::Ref kernel = segment_.AddKernel(segment_.AddText("_Z3addPfS_i"), 128, 256);
  abi::Ref stream = segment_.AddGpuStream(1, 2, 7);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(Define(EventType::kGpuKernel, kernel, stream), Result::kDone);
    EXPECT_EQ(event_.py_stack, kernel);
    EXPECT_EQ(event_.native_stack, stream);
  }
  ASSERT_THAT(batch().gpus(), SizeIs(1));
  EXPECT_EQ(batch().gpus(0).process_key(), 9u);
  ASSERT_THAT(batch().gpus(0).kernels(), SizeIs(1));
  const lull::v1::KernelDef& def = batch().gpus(0).kernels(0);
  EXPECT_EQ(def.ref(), kernel);
  EXPECT_EQ(def.name(), "add(float*, float*, int)");
  EXPECT_EQ(def.grid_x(), 128u);
  EXPECT_EQ(def.grid_y(), 1u);
  EXPECT_EQ(def.grid_z(), 1u);
  EXPECT_EQ(def.block_x(), 256u);
  EXPECT_EQ(def.block_y(), 1u);
  EXPECT_EQ(def.block_z(), 1u);
  EXPECT_EQ(def.registers_per_thread(), 40u);
  EXPECT_EQ(def.static_shared_bytes(), 1024u);
  EXPECT_EQ(def.dynamic_shared_bytes(), 2048u);
  ASSERT_THAT(batch().gpus(0).streams(), SizeIs(1));
  EXPECT_EQ(batch().gpus(0).streams(0).ref(), stream);
  EXPECT_EQ(batch().gpus(0).streams(0).device(), 1u);
  EXPECT_EQ(batch().gpus(0).streams(0).context(), 2u);
  EXPECT_EQ(batch().gpus(0).streams(0).stream(), 7u);
  EXPECT_THAT(batch().stacks(), IsEmpty());
}

TEST_F(DefinitionsTest, LeavesNamesThatAreNotMangledAsTheyAre) {
  abi::Ref triton = segment_.AddKernel(segment_.AddText("triton_poi_fused_add_0d1d"));
  abi::Ref nameless = segment_.AddKernel(0);
  ASSERT_EQ(Define(EventType::kGpuKernel, triton, 0), Result::kDone);
  ASSERT_EQ(Define(EventType::kGpuKernel, nameless, 0), Result::kDone);
  EXPECT_EQ(batch().gpus(0).kernels(0).name(), "triton_poi_fused_add_0d1d");
  EXPECT_EQ(batch().gpus(0).kernels(1).name(), "");
}

TEST_F(DefinitionsTest, DescribesAScopeAsAStackOfNames) {
  abi::Ref scope = segment_.AddScopeStack(
      {segment_.AddText("forward"), 0, segment_.AddText("step\xff")});
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(Define(EventType::kScope, 0, scope), Result::kDone);
    EXPECT_EQ(event_.native_stack, scope);
  }
  ASSERT_THAT(batch().stacks(), SizeIs(1));
  const lull::v1::StackDef& def = batch().stacks(0).stacks(0);
  EXPECT_TRUE(def.native());
  ASSERT_THAT(def.frames(), SizeIs(3));
  EXPECT_EQ(def.frames(0).function(), "forward");
  EXPECT_EQ(def.frames(1).function(), "(unnamed)");
  EXPECT_EQ(def.frames(2).function(), "step\xef\xbf\xbd");
  EXPECT_EQ(def.frames(0).file(), "");
}

TEST_F(DefinitionsTest, FindsAScopeOfAnythingButNamesCorrupt) {
  abi::Ref kernel = segment_.AddKernel(0);
  EXPECT_EQ(Define(EventType::kScope, 0, segment_.AddScopeStack({kernel})),
            Result::kCorrupt);
  EXPECT_EQ(Define(EventType::kScope, 0, kernel), Result::kCorrupt);
}

class BackwardDefinitionsTest : public DefinitionsTest {
 protected:
  const lull::v1::StackDef& Defined(abi::Ref ref) {
    EXPECT_EQ(Define(EventType::kLaunch, ref, 0), Result::kDone);
    return batch().stacks(0).stacks(0);
  }

  abi::Ref caller_ =
      segment_.AddPythonStack({{segment_.AddCode("/job/train.py", "train", 110), -1}});
  abi::Ref made_ =
      segment_.AddPythonStack({{segment_.AddCode("/job/model.py", "forward", 44), -1}});
  abi::Ref exp_ = segment_.AddText("N5torch8autograd9generated12ExpBackward0E");
  abi::Ref slice_ = segment_.AddText("N5torch8autograd9generated14SliceBackward0E");
};

TEST_F(BackwardDefinitionsTest, DescribesANodeItsCallerAndWhoMadeIt) {
  const lull::v1::StackDef& def = Defined(segment_.AddBackward(exp_, caller_, made_));
  EXPECT_FALSE(def.native());
  ASSERT_THAT(def.frames(), SizeIs(4));
  EXPECT_EQ(def.frames(0).function(), "ExpBackward0");
  EXPECT_EQ(def.frames(0).module(), kNodeModule);
  EXPECT_EQ(def.frames(1).function(), "train");
  EXPECT_EQ(def.frames(1).module(), "");
  EXPECT_EQ(def.frames(2).module(), kForwardModule);
  EXPECT_EQ(def.frames(3).function(), "forward");
}

TEST_F(BackwardDefinitionsTest, LeavesOutWhatIsNotKnown) {
  const lull::v1::StackDef& def = Defined(segment_.AddBackward(0, caller_, 0));
  ASSERT_THAT(def.frames(), SizeIs(2));
  EXPECT_EQ(def.frames(0).function(), "");
  EXPECT_EQ(def.frames(0).module(), kNodeModule);
  EXPECT_EQ(def.frames(1).function(), "train");
}

TEST_F(BackwardDefinitionsTest, TellsNoForwardLineOfAView) {
  const lull::v1::StackDef& def = Defined(segment_.AddBackward(slice_, caller_, made_));
  ASSERT_THAT(def.frames(), SizeIs(2));
  EXPECT_EQ(def.frames(0).function(), "SliceBackward0");
}

TEST_F(BackwardDefinitionsTest, FindsAnythingButPythonStacksAndATextCorrupt) {
  abi::Ref native = segment_.AddNativeStack({0x1000});
  abi::Ref good = segment_.AddBackward(exp_, caller_, 0);
  for (abi::Ref bad : {segment_.AddBackward(caller_, caller_, 0),
                       segment_.AddBackward(exp_, native, 0),
                       segment_.AddBackward(exp_, caller_, native),
                       segment_.AddBackward(exp_, good, 0)}) {
    EXPECT_EQ(Define(EventType::kLaunch, bad, 0), Result::kCorrupt);
  }
}

TEST_F(DefinitionsTest, DescribesADevice) {
  abi::Ref device = segment_.AddGpuDevice(segment_.AddText("NVIDIA H200"), 3, 132);
  ASSERT_EQ(Define(EventType::kGpuDevice, device, 0), Result::kDone);
  ASSERT_THAT(batch().gpus(0).devices(), SizeIs(1));
  const lull::v1::GpuDeviceDef& def = batch().gpus(0).devices(0);
  EXPECT_EQ(def.ref(), device);
  EXPECT_EQ(def.device(), 3u);
  EXPECT_EQ(def.name(), "NVIDIA H200");
  EXPECT_EQ(def.multiprocessors(), 132u);
  EXPECT_EQ(def.max_threads_per_multiprocessor(), 2048u);
  EXPECT_EQ(def.max_blocks_per_multiprocessor(), 32u);
  EXPECT_EQ(def.max_registers_per_multiprocessor(), 65536u);
  EXPECT_EQ(def.max_shared_bytes_per_multiprocessor(), 228u << 10);
  EXPECT_EQ(def.warp_size(), 32u);
  EXPECT_EQ(def.compute_capability(), 90u);
  EXPECT_EQ(def.total_bytes(), uint64_t{141} << 30);
}

TEST_F(DefinitionsTest, NamesACallOnceByItsIdAndTakesTheReferenceAway) {
  uint16_t launch = abi::kRuntimeCallBase + 211;
  abi::Ref name = segment_.AddText("cudaLaunchKernel_v7000");
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(Define(EventType::kApiCall, name, 0, launch), Result::kDone);
    EXPECT_EQ(event_.py_stack, 0u);
    EXPECT_EQ(event_.api, launch);
  }
  ASSERT_THAT(batch().apis(), SizeIs(1));
  EXPECT_EQ(batch().apis(0).id(), launch);
  EXPECT_EQ(batch().apis(0).name(), "cudaLaunchKernel_v7000");
  EXPECT_EQ(batch().apis(0).family(), "call");
}

TEST_F(DefinitionsTest, DoesNotLetATargetNameTheHooks) {
  abi::Ref name = segment_.AddText("mine");
  EXPECT_EQ(Define(EventType::kApiCall, name, 0, 1), Result::kDone);
  EXPECT_EQ(Define(EventType::kApiCall, name, 0, abi::kCallIdEnd), Result::kUndeclared);
  EXPECT_THAT(batch().apis(), IsEmpty());
}

TEST_F(DefinitionsTest, LeavesOutWhatNamesACallThatNobodyNamed) {
  uint16_t call = abi::kRuntimeCallBase + 7;
  EXPECT_EQ(Define(EventType::kApiCall, 0, 0, call), Result::kUndeclared)
      << "its arena had no room for the name";
  EXPECT_EQ(Define(EventType::kSync, 0, 0, call), Result::kUndeclared);
  for (uint16_t no_hook : {19, 999, 1024, 4095, 12288, 65535}) {
    EXPECT_EQ(Define(EventType::kSync, 0, 0, no_hook), Result::kUndeclared) << no_hook;
    EXPECT_EQ(Define(EventType::kGpuCopy, 0, 0, no_hook), Result::kUndeclared);
  }
  EXPECT_TRUE(batch_.empty());
  ASSERT_EQ(Define(EventType::kApiCall, segment_.AddText("cudaFoo"), 0, call),
            Result::kDone);
  EXPECT_EQ(Define(EventType::kApiCall, 0, 0, call), Result::kDone) << "named by now";
  EXPECT_EQ(Define(EventType::kSync, 0, 0, call), Result::kDone);
  EXPECT_EQ(Define(EventType::kSync, 0, 0, 20), Result::kDone) << "a hook";
}

TEST_F(DefinitionsTest, FindsDevicesThatNoDriverHasCorrupt) {
  EXPECT_EQ(Define(EventType::kGpuCopy, 0, segment_.AddGpuStream(1024, 1, 7)),
            Result::kCorrupt);
  EXPECT_EQ(Define(EventType::kGpuDevice, segment_.AddGpuDevice(0, 1024, 1), 0),
            Result::kCorrupt);
}

TEST_F(DefinitionsTest, TakesReferencesAwayThatAnEventHasNot) {
  abi::Ref stream = segment_.AddGpuStream(0, 1, 7);
  for (EventType type : {EventType::kGpuCopy, EventType::kGpuMemset,
                         EventType::kGpuGraph, EventType::kGpuStreamWait}) {
    ASSERT_EQ(Define(type, 12345, stream), Result::kDone);
    EXPECT_EQ(event_.py_stack, 0u);
    EXPECT_EQ(event_.native_stack, stream);
  }
  for (EventType type :
       {EventType::kGpuTracing, EventType::kGpuLost, EventType::kGpuMark}) {
    ASSERT_EQ(Define(type, 12345, 12345), Result::kDone);
    EXPECT_EQ(event_.py_stack, 0u);
    EXPECT_EQ(event_.native_stack, 0u);
  }
  EXPECT_THAT(batch().gpus(0).streams(), SizeIs(1));
}

TEST_F(DefinitionsTest, DefinesAgainWhatWasDropped) {
  abi::Ref kernel = segment_.AddKernel(segment_.AddText("k"));
  ASSERT_EQ(Define(EventType::kGpuKernel, kernel, 0), Result::kDone);
  definitions_.Drop();
  batch_.Reset();
  ASSERT_EQ(Define(EventType::kGpuKernel, kernel, 0), Result::kDone);
  EXPECT_THAT(batch().gpus(), SizeIs(1));
  definitions_.Commit();
  definitions_.Drop();  // of the next batch: nothing
  batch_.Reset();
  ASSERT_EQ(Define(EventType::kGpuKernel, kernel, 0), Result::kDone);
  EXPECT_THAT(batch().gpus(), IsEmpty());
}

TEST_F(DefinitionsTest, AddsNothingToABatchThatIsFull) {
  Definitions full(9, &reader_, nullptr, 0);
  event_ = MakeEvent(EventType::kGpuKernel, 1);
  event_.py_stack = segment_.AddKernel(segment_.AddText("k"));
  EXPECT_EQ(full.Define(&event_, &batch_), Result::kBatchFull);
  EXPECT_TRUE(batch_.empty());
}

TEST_F(DefinitionsTest, FindsReferencesToOtherKindsOfEntriesCorrupt) {
  abi::Ref text = segment_.AddText("text");
  abi::Ref kernel = segment_.AddKernel(text);
  abi::Ref stream = segment_.AddGpuStream(0, 1, 7);
  abi::Ref device = segment_.AddGpuDevice(text, 0, 1);
  abi::Ref stack = segment_.AddNativeStack({1});
  uint16_t call = abi::kDriverCallBase + 1;
  for (abi::Ref ref : {text, stream, device, stack, kernel + 1, 0xffffffffu}) {
    EXPECT_EQ(Define(EventType::kGpuKernel, ref, 0), Result::kCorrupt) << ref;
  }
  for (abi::Ref ref : {text, kernel, device, stack, stream + 1, 0xffffffffu}) {
    EXPECT_EQ(Define(EventType::kGpuCopy, 0, ref), Result::kCorrupt) << ref;
  }
  for (abi::Ref ref : {text, kernel, stream, stack, device + 1, 0xffffffffu}) {
    EXPECT_EQ(Define(EventType::kGpuDevice, ref, 0), Result::kCorrupt) << ref;
  }
  for (abi::Ref ref : {kernel, stream, device, stack, text + 1, 0xffffffffu}) {
    EXPECT_EQ(Define(EventType::kApiCall, ref, 0, call), Result::kCorrupt) << ref;
  }
  for (abi::Ref ref : {text, kernel, stream, device}) {
    EXPECT_EQ(Define(EventType::kSync, ref, 0), Result::kCorrupt) << ref;
  }
  EXPECT_TRUE(batch_.empty());
}

TEST_F(DefinitionsTest, ChecksAnEntryAgainWhenItIsNamedInAnotherRole) {
  abi::Ref kernel = segment_.AddKernel(segment_.AddText("k"));
  ASSERT_EQ(Define(EventType::kGpuKernel, kernel, 0), Result::kDone);
  EXPECT_EQ(Define(EventType::kGpuKernel, 0, kernel), Result::kCorrupt);
  EXPECT_EQ(Define(EventType::kSync, kernel, 0), Result::kCorrupt);
}

TEST_F(DefinitionsTest, DoesNotFollowAKernelsNameToAnythingButText) {
  abi::Ref kernel = segment_.AddKernel(0);
  auto* entry = reinterpret_cast<abi::KernelEntry*>(segment_.view().entry(kernel));
  for (abi::Ref name : {kernel, segment_.AddNativeStack({1}), 0xffffffffu}) {
    entry->name = name;
    EXPECT_EQ(Define(EventType::kGpuKernel, kernel, 0), Result::kCorrupt) << name;
  }
  abi::Ref device = segment_.AddGpuDevice(kernel, 0, 1);
  EXPECT_EQ(Define(EventType::kGpuDevice, device, 0), Result::kCorrupt);
}

TEST_F(DefinitionsTest, RejectsSizesThatDoNotFit) {
  abi::Ref text = segment_.AddText("twelve bytes");
  auto* entry = reinterpret_cast<abi::TextEntry*>(segment_.view().entry(text));
  entry->size = 13;
  EXPECT_FALSE(reader_.Text(text).has_value()) << "longer than the entry";
  entry->size = 0xffffffff;
  EXPECT_FALSE(reader_.Text(text).has_value());
  entry->size = 12;
  entry->header.size = 0x7fffffff;
  EXPECT_FALSE(reader_.Text(text).has_value()) << "longer than the arena";
  entry->header.size = 23;
  EXPECT_FALSE(reader_.Text(text).has_value()) << "smaller than its header";
  entry->header.size = 24 + 12;
  EXPECT_EQ(reader_.Text(text), "twelve bytes");

  abi::Ref kernel = segment_.AddKernel(text);
  reinterpret_cast<abi::EntryHeader*>(segment_.view().entry(kernel))->size = 48;
  EXPECT_FALSE(reader_.Kernel(kernel).has_value()) << "smaller than a kernel";
}

TEST_F(DefinitionsTest, MakesForeignTextFitForTheWire) {
  abi::Ref name = segment_.AddText("bad\xff" + std::string(100'000, 'n'));
  ASSERT_EQ(Define(EventType::kGpuKernel, segment_.AddKernel(name), 0), Result::kDone);
  const std::string& text = batch().gpus(0).kernels(0).name();
  EXPECT_EQ(text.size(), 4096u);
  EXPECT_EQ(text.substr(0, 7), "bad\xef\xbf\xbdn");

  abi::Ref device = segment_.AddGpuDevice(0, 0, 1);
  reinterpret_cast<abi::GpuDeviceEntry*>(segment_.view().entry(device))->total_bytes =
      ~uint64_t{0};
  ASSERT_EQ(Define(EventType::kGpuDevice, device, 0), Result::kDone);
  EXPECT_EQ(batch().gpus(0).devices(0).total_bytes(), ~uint64_t{0} >> 1);
}

}  // namespace
}  // namespace lull::relay
