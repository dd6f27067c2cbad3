#include "daemon/export/perfetto_writer.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace lull::exports {
namespace {

namespace pb = lull::perfetto;

// What is written, read by the generated classes.
class Written {
 public:
  Written()
      : output_([this](absl::string_view bytes) {
          bytes_.append(bytes.data(), bytes.size());
          return absl::OkStatus();
        }),
        writer(output_) {
    job_.name = "mine";
    job_.start_ns = 5'000;
    job_.start_realtime_ns = 7'000'000;
    ExportedProcess& process = job_.processes.emplace_back();
    process.pid = process.shown_pid = 12;
    process.rank = 3;
    process.command = "python train.py";
    process.devices.emplace_back().set_name("H100");
    writer.Begin(job_);
    writer.BeginProcess(process);
  }

  const pb::Trace& Read() {
    writer.EndProcess();
    writer.End();
    output_.Flush();
    EXPECT_TRUE(trace_.ParseFromString(bytes_));
    return trace_;
  }

 private:
  std::string bytes_;
  pb::Trace trace_;
  Output output_;
  ExportedJob job_;

 public:
  PerfettoWriter writer;
};

TEST(PerfettoWriter, ASliceHasItsNameTimesTrackAndArguments) {
  Written written;
  Label label;
  label.row = Row::kStream;
  label.category = "kernel";
  label.name = "gemm";
  label.device = 0;
  label.stream = 7;
  label.numbers.emplace_back("context", -1);
  label.texts.emplace_back("note", "text");
  label.amount = "bytes";
  Slice slice;
  slice.start_ns = 100;
  slice.duration_ns = 40;
  slice.correlation = 9;
  slice.amount = 4096;
  written.writer.Add(2, label, slice);
  std::map<uint64_t, std::string> names, tracks, values, keys;
  std::vector<const pb::TracePacket*> events;
  for (const pb::TracePacket& packet : written.Read().packet()) {
    for (const auto& text : packet.interned_data().event_names()) {
      names[text.iid()] = text.name();
    }
    for (const auto& text : packet.interned_data().debug_annotation_names()) {
      keys[text.iid()] = text.name();
    }
    for (const auto& text : packet.interned_data().debug_annotation_string_values()) {
      values[text.iid()] = text.str();
    }
    if (packet.has_track_descriptor()) {
      const auto& track = packet.track_descriptor();
      tracks[track.uuid()] =
          (track.has_parent_uuid() ? tracks[track.parent_uuid()] + " > " : "") +
          (track.has_process() ? track.process().process_name() : track.name());
    }
    if (packet.has_track_event()) events.push_back(&packet);
  }
  ASSERT_EQ(events.size(), 2u);
  const pb::TrackEvent& begin = events[0]->track_event();
  EXPECT_EQ(events[0]->timestamp(), 5'100u);
  EXPECT_EQ(events[1]->timestamp(), 5'140u);
  EXPECT_EQ(begin.type(), 1u);
  EXPECT_EQ(events[1]->track_event().type(), 2u);
  EXPECT_EQ(events[1]->track_event().track_uuid(), begin.track_uuid());
  EXPECT_EQ(tracks[begin.track_uuid()],
            "rank 3: python train.py > GPU 0 H100 > stream 7");
  EXPECT_EQ(names[begin.name_iid()], "gemm");
  ASSERT_EQ(begin.terminating_flow_ids_size(), 1);
  EXPECT_EQ(begin.terminating_flow_ids(0) & 0xffffffff, 9u);
  std::map<std::string, std::string> arguments;
  for (const auto& argument : begin.debug_annotations()) {
    arguments[keys[argument.name_iid()]] =
        argument.has_string_value_iid() ? values[argument.string_value_iid()]
        : argument.has_int_value()      ? std::to_string(argument.int_value())
                                        : std::to_string(argument.uint_value());
  }
  EXPECT_EQ(arguments, (std::map<std::string, std::string>{
                           {"context", "-1"}, {"note", "text"}, {"bytes", "4096"}}));
}

TEST(PerfettoWriter, WhatSyncsWasteHasARowOfItsOwn) {
  Written written;
  Label label;
  label.row = Row::kIdle;
  label.category = "lull_idle";
  label.name = "sync";
  label.wasted = true;
  Slice slice;
  slice.duration_ns = 10;
  written.writer.Add(1, label, slice);
  label.name = "data";
  label.wasted = false;
  slice.start_ns = 20;
  written.writer.Add(2, label, slice);
  std::map<uint64_t, std::string> tracks;
  std::map<std::string, int> slices;
  for (const pb::TracePacket& packet : written.Read().packet()) {
    if (packet.has_track_descriptor()) {
      tracks[packet.track_descriptor().uuid()] = packet.track_descriptor().name();
    }
    if (packet.track_event().type() == 1)
      ++slices[tracks[packet.track_event().track_uuid()]];
  }
  EXPECT_EQ(slices, (std::map<std::string, int>{{"idle, by cause", 2},
                                                {"wasted by syncs", 1}}));
}

}  // namespace
}  // namespace lull::exports
