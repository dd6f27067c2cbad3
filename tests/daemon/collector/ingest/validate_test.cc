#include "daemon/collector/ingest/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "tests/daemon/collector/test_job.h"

namespace lull::collector {
namespace {

using lull::v1::Batch;
using lull::v1::EventColumns;
using lull::v1::Hello;
using ::testing::HasSubstr;

Batch GoodBatch() {
  Batch batch;
  batch.set_sequence(1);
  *batch.add_processes() = test::MakeProcess(1, 100, 0);
  test::AddStacks(batch, 1);
  test::TestEvent event;
  event.type = v1::EVENT_TYPE_SYNC;
  event.api = test::kApiSync;
  test::AddRun(batch, 1, 0, 0, {event, event, event});
  test::AddCounters(batch, 1, 0, 3, 10);
  return batch;
}

void ExpectBad(const std::string& field, const std::function<void(Batch&)>& spoil) {
  Batch batch = GoodBatch();
  spoil(batch);
  absl::Status status = ValidateBatch(batch);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field;
  EXPECT_THAT(status.message(), HasSubstr(field));
}

EventColumns& Events(Batch& batch) { return *batch.mutable_rings(0)->mutable_events(); }

TEST(ValidateBatch, AcceptsWhatARelaySends) {
  EXPECT_TRUE(ValidateBatch(GoodBatch()).ok());
  Batch empty;
  empty.set_sequence(7);
  EXPECT_TRUE(ValidateBatch(empty).ok());
}

TEST(ValidateClock, RefusesWhatNoTwoHostsCanShow) {
  lull::v1::ClockReading reading;
  reading.set_boot_id("8c7d2a1e-0b6f-4f0a-9a51-6a1f0e6d2c3b");
  reading.set_low_ns(-(int64_t{1} << 59));
  reading.set_high_ns(int64_t{1} << 59);
  EXPECT_TRUE(ValidateClock(reading).ok());
  for (const int sign : {-1, 1}) {
    lull::v1::ClockReading far = reading;
    (sign < 0 ? far.set_low_ns(-(int64_t{1} << 59) - 1)
              : far.set_high_ns((int64_t{1} << 59) + 1));
    EXPECT_THAT(ValidateClock(far).message(), HasSubstr("clock.low_ns"));
  }
  reading.set_boot_id(std::string(65, 'x'));
  EXPECT_THAT(ValidateClock(reading).message(), HasSubstr("clock.boot_id"));
}

TEST(ValidateBatch, RefusesASampleThatStandsForMoreThanAMinute) {
  auto sample = [](Batch& batch, uint64_t weight_ns) {
    Events(batch).set_type(1, lull::v1::EVENT_TYPE_HOST_SAMPLE);
    Events(batch).set_arg0(1, weight_ns);
    // What is no state, quality or role is taken for the least that it can mean.
    Events(batch).set_arg1(1, std::numeric_limits<uint64_t>::max());
    Events(batch).set_arg2(1, std::numeric_limits<uint32_t>::max());
  };
  Batch batch = GoodBatch();
  sample(batch, 60'000'000'000);
  EXPECT_TRUE(ValidateBatch(batch).ok());
  ExpectBad("arg0 of a host sample is out of range at index 1",
            [&](Batch& b) { sample(b, 60'000'000'001); });
}

TEST(ValidateBatch, RefusesSourceTextThatIsNotAroundItsLine) {
  auto source = [](uint32_t line, uint32_t first, std::vector<std::string> lines) {
    return [=](Batch& batch) {
      lull::v1::SourceDef* one = batch.add_sources();
      one->set_file("/a.py");
      one->set_line(line);
      one->set_first_line(first);
      for (const std::string& text : lines) one->add_lines(text);
    };
  };
  for (uint32_t line : {4u, 5u, 6u}) {
    Batch batch = GoodBatch();
    source(line, 4, {"a", "", "c"})(batch);
    EXPECT_TRUE(ValidateBatch(batch).ok()) << line;
  }
  ExpectBad("sources.line is 0", source(0, 0, {"a"}));
  ExpectBad("sources.first_line is 0", source(1, 0, {"a", "b"}));
  ExpectBad("sources.first_line is 6", source(5, 6, {"a"}));
  ExpectBad("sources.first_line is 3 of 2 lines", source(5, 3, {"a", "b"}));
  ExpectBad("sources.first_line is 5 of 0 lines", source(5, 5, {}));
  ExpectBad("sources.lines has two lines in one", source(5, 5, {"a\nb"}));
  ExpectBad("sources.lines has a line of 513", source(5, 5, {std::string(513, 'x')}));
  ExpectBad("sources.lines has 17 entries", source(5, 5, std::vector<std::string>(17)));
  ExpectBad("sources.file", [&](Batch& batch) {
    source(5, 5, {"a"})(batch);
    batch.mutable_sources(0)->set_file(std::string(5000, 'x'));
  });
}

TEST(ValidateBatch, NamesTheColumnWhoseLengthDiffers) {
  ExpectBad("duration_ns", [](Batch& b) { Events(b).add_duration_ns(1); });
  ExpectBad("type", [](Batch& b) { Events(b).add_type(1); });
  ExpectBad("flags", [](Batch& b) { Events(b).mutable_flags()->RemoveLast(); });
  ExpectBad("api", [](Batch& b) { Events(b).clear_api(); });
  ExpectBad("python_stack", [](Batch& b) { Events(b).add_python_stack(1); });
  ExpectBad("native_stack", [](Batch& b) { Events(b).clear_native_stack(); });
  ExpectBad("arg0", [](Batch& b) { Events(b).add_arg0(1); });
  ExpectBad("arg1", [](Batch& b) { Events(b).clear_arg1(); });
  ExpectBad("arg2", [](Batch& b) { Events(b).add_arg2(1); });
  ExpectBad("tid", [](Batch& b) { Events(b).clear_tid(); });
  ExpectBad("start_delta_ns", [](Batch& b) { Events(b).add_start_delta_ns(1); });
}

TEST(ValidateBatch, RefusesTimesThatOverflow) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  ExpectBad("base_ns", [](Batch& b) { Events(b).set_base_ns(UINT64_MAX); });
  ExpectBad("start_delta_ns", [=](Batch& b) { Events(b).set_start_delta_ns(1, kMax); });
  ExpectBad("start_delta_ns", [=](Batch& b) { Events(b).set_start_delta_ns(1, kMin); });
  ExpectBad("start_delta_ns", [](Batch& b) {
    Events(b).set_start_delta_ns(2, -static_cast<int64_t>(test::kJobStartNs) - 1);
  });
  ExpectBad("duration_ns", [](Batch& b) { Events(b).set_duration_ns(0, UINT64_MAX); });
}

TEST(ValidateBatch, RefusesPositionsThatOverflow) {
  ExpectBad("first_position",
            [](Batch& b) { Events(b).set_first_position(UINT64_MAX); });
  ExpectBad("first_position", [](Batch& b) {
    Events(b).set_first_position(std::numeric_limits<int64_t>::max() - 1);
  });
}

TEST(ValidateBatch, RefusesValuesOutOfRange) {
  ExpectBad("type", [](Batch& b) { Events(b).set_type(0, 0); });
  ExpectBad("type", [](Batch& b) { Events(b).set_type(0, 254); });
  ExpectBad("type", [](Batch& b) { Events(b).set_type(0, 258); });
  ExpectBad("flags", [](Batch& b) { Events(b).set_flags(0, 1 << 16); });
  ExpectBad("api", [](Batch& b) { Events(b).set_api(0, 70000); });
  ExpectBad("rings.ring", [](Batch& b) { b.mutable_rings(0)->set_ring(70'000); });
  ExpectBad("counters.rings", [](Batch& b) {
    b.mutable_counters(0)->mutable_rings(0)->set_committed(UINT64_MAX);
  });
  ExpectBad("counters",
            [](Batch& b) { b.mutable_counters(0)->set_reentered(UINT64_MAX); });
}

TEST(ValidateBatch, AcceptsEventTypesOfTheFuture) {
  Batch batch = GoodBatch();
  Events(batch).set_type(0, 9);
  EXPECT_TRUE(ValidateBatch(batch).ok());
}

TEST(ValidateBatch, RefusesKeysAndReferencesThatAreZero) {
  ExpectBad("sequence", [](Batch& b) { b.set_sequence(0); });
  ExpectBad("processes.key", [](Batch& b) { b.mutable_processes(0)->set_key(0); });
  ExpectBad("rings.process_key",
            [](Batch& b) { b.mutable_rings(0)->set_process_key(0); });
  ExpectBad("stacks.process_key",
            [](Batch& b) { b.mutable_stacks(0)->set_process_key(0); });
  ExpectBad("stacks.stacks.ref",
            [](Batch& b) { b.mutable_stacks(0)->mutable_stacks(0)->set_ref(0); });
  ExpectBad("counters.process_key",
            [](Batch& b) { b.mutable_counters(0)->set_process_key(0); });
  ExpectBad("process_ends.process_key", [](Batch& b) { b.add_process_ends(); });
}

TEST(ValidateBatch, RefusesStringsAndStacksThatAreTooLong) {
  const std::string longer(4097, 'x');
  ExpectBad("processes.command",
            [&](Batch& b) { b.mutable_processes(0)->set_command(longer); });
  auto frame = [](Batch& b) {
    return b.mutable_stacks(0)->mutable_stacks(0)->mutable_frames(0);
  };
  ExpectBad("frames.file", [&](Batch& b) { frame(b)->set_file(longer); });
  ExpectBad("frames.function", [&](Batch& b) { frame(b)->set_function(longer); });
  ExpectBad("frames.module", [&](Batch& b) { frame(b)->set_module(longer); });
  ExpectBad("frames.line", [&](Batch& b) { frame(b)->set_line(-1); });
  ExpectBad("frames", [](Batch& b) {
    for (int i = 0; i < 1100; ++i) b.mutable_stacks(0)->mutable_stacks(0)->add_frames();
  });
}

TEST(ValidateBatch, RefusesFramesThatAreNotThere) {
  // Every second stack has frames of its own.
  auto stacks = [](Batch& b) -> Batch::Stacks& {
    Batch::Stacks& told = *b.mutable_stacks(0);
    told.add_frames()->set_function("f");
    for (int i = 0; i < told.stacks_size(); ++i) {
      told.add_depths(i % 2 == 0 ? 1 : 0);
      if (i % 2 == 0) told.add_frame_numbers(0);
      if (i % 2 == 0) told.mutable_stacks(i)->clear_frames();
    }
    return told;
  };
  Batch good = GoodBatch();
  ASSERT_GE(stacks(good).stacks_size(), 2);
  EXPECT_TRUE(ValidateBatch(good).ok()) << ValidateBatch(good);
  ExpectBad("stacks.depths", [&](Batch& b) { stacks(b).add_depths(0); });
  ExpectBad("stacks.depths",
            [&](Batch& b) { stacks(b).mutable_depths()->RemoveLast(); });
  ExpectBad("stacks.frame_numbers", [&](Batch& b) { stacks(b).clear_depths(); });
  ExpectBad("stacks.frame_numbers", [&](Batch& b) { stacks(b).add_frame_numbers(0); });
  ExpectBad("stacks.frame_numbers", [&](Batch& b) { stacks(b).set_depths(0, 2); });
  ExpectBad("names 1 of 1", [&](Batch& b) { stacks(b).set_frame_numbers(0, 1); });
  ExpectBad("of 1 frames",
            [&](Batch& b) { stacks(b).set_frame_numbers(0, UINT32_MAX); });
  ExpectBad("frames.function", [&](Batch& b) {
    stacks(b).mutable_frames(0)->set_function(std::string(4097, 'x'));
  });
  ExpectBad("entries", [&](Batch& b) { stacks(b).set_depths(0, UINT32_MAX); });
  ExpectBad("entries", [&](Batch& b) {
    Batch::Stacks& told = stacks(b);
    told.set_depths(0, 1025);
    for (int i = 0; i < 1024; ++i) told.add_frame_numbers(0);
  });
  // Together they would be more than a stack may have.
  ExpectBad("frames of its own", [&](Batch& b) {
    Batch::Stacks& told = stacks(b);
    for (int i = 0; i < 1024; ++i) told.mutable_stacks(0)->add_frames();
    told.set_depths(0, 1024);
    for (int i = 0; i < 1023; ++i) told.add_frame_numbers(0);
  });
}

TEST(ValidateBatch, RefusesMoreFramesThanItMayKeep) {
  static constexpr int kMost = 1 << 22, kDepth = 1024;
  // Of two processes.
  auto stacks = [](int frames) {
    Batch batch = GoodBatch();
    for (uint64_t process = 1; process <= 2; ++process) {
      Batch::Stacks& told = *batch.add_stacks();
      told.set_process_key(process);
      told.add_frames()->set_function("f");
      for (int left = frames / 2; left > 0; left -= kDepth) {
        told.add_stacks()->set_ref(1);
        told.add_depths(static_cast<uint32_t>(std::min(left, kDepth)));
      }
      told.mutable_frame_numbers()->Resize(frames / 2, 0);
    }
    return batch;
  };
  EXPECT_TRUE(ValidateBatch(stacks(kMost)).ok());
  EXPECT_THAT(ValidateBatch(stacks(kMost + 2)).message(),
              HasSubstr("stacks.frame_numbers has 4194306 values in all"));
}

void ExpectBadHello(absl::StatusCode code, const std::string& field,
                    const std::function<void(Hello&)>& spoil) {
  Hello hello = test::MakeHello(test::MakeJobId(1));
  spoil(hello);
  absl::Status status = ValidateHello(hello);
  EXPECT_EQ(status.code(), code) << field;
  EXPECT_THAT(status.message(), HasSubstr(field));
}

TEST(ValidateHello, NamesWhatIsWrong) {
  constexpr auto kBad = absl::StatusCode::kInvalidArgument;
  EXPECT_TRUE(ValidateHello(test::MakeHello(test::MakeJobId(1), "name")).ok());
  ExpectBadHello(absl::StatusCode::kFailedPrecondition, "protocol_version",
                 [](Hello& h) { h.set_protocol_version(kProtocolVersion + 1); });
  ExpectBadHello(absl::StatusCode::kFailedPrecondition, "protocol_version",
                 [](Hello& h) { h.set_protocol_version(0); });
  for (uint32_t version : {kOldestProtocolVersion, kProtocolVersion}) {
    Hello hello = test::MakeHello(test::MakeJobId(1));
    hello.set_protocol_version(version);
    EXPECT_TRUE(ValidateHello(hello).ok());
  }
  for (const char* id : {"", "abc", "0123456789abcdef0123456789ABCDEF",
                         "0123456789abcdef0123456789abcdef0"}) {
    ExpectBadHello(kBad, "hello.job.id",
                   [&](Hello& h) { h.mutable_job()->set_id(id); });
  }
  ExpectBadHello(kBad, "hello.job.tags",
                 [](Hello& h) { h.mutable_job()->add_tags("a b"); });
  ExpectBadHello(kBad, "hello.job.name",
                 [](Hello& h) { h.mutable_job()->set_name(std::string(5000, 'n')); });
  ExpectBadHello(kBad, "overhead_budget_percent", [](Hello& h) {
    h.mutable_job()->set_overhead_budget_percent(
        std::numeric_limits<double>::quiet_NaN());
  });
  ExpectBadHello(kBad, "hello.apis.id", [](Hello& h) { h.add_apis()->set_id(0); });
  ExpectBadHello(kBad, "hello.apis.id", [](Hello& h) { h.add_apis()->set_id(1); });
}

}  // namespace
}  // namespace lull::collector
