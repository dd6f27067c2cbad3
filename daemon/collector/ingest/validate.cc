#include "daemon/collector/ingest/validate.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"
#include "daemon/base/text.h"
#include "daemon/collector/ingest/validate_fields.h"

namespace lull::collector {
namespace {

using lull::v1::Batch;
using lull::v1::EventColumns;

constexpr uint64_t kMaxFrames = 1024;
// Of one batch. One byte each on the wire, and twelve where stacks are kept: a message
// as large as they may be would take 700 MiB. An import sends half a million at most.
constexpr int kMaxFrameNumbers = 1 << 22;
constexpr int kMaxSourceLines = 16;
constexpr size_t kMaxSourceBytes = 512;  // of a line
constexpr uint32_t kMaxRing = 65536;
constexpr uint32_t kMaxEventType = 127;  // above are those that we derive
constexpr uint32_t kMaxFlags = 0xffff;   // above are those that we set
// No sampler is slower than one look in so long, and squares of weights are summed up.
constexpr uint64_t kMaxWeightNs = 60'000'000'000;

absl::Status CheckProcess(const lull::v1::ProcessInfo& process) {
  if (process.key() == 0) return Invalid("processes.key is 0");
  LULL_RETURN_IF_ERROR(CheckTime("processes.start_ns", process.start_ns()));
  LULL_RETURN_IF_ERROR(CheckText("processes.command", process.command()));
  LULL_RETURN_IF_ERROR(CheckText("processes.executable", process.executable()));
  LULL_RETURN_IF_ERROR(CheckText("processes.run_id", process.run_id()));
  return CheckText("processes.python_version", process.python_version());
}

absl::Status CheckFrames(const google::protobuf::RepeatedPtrField<v1::Frame>& frames) {
  for (const lull::v1::Frame& frame : frames) {
    LULL_RETURN_IF_ERROR(CheckText("stacks.stacks.frames.function", frame.function()));
    LULL_RETURN_IF_ERROR(CheckText("stacks.stacks.frames.file", frame.file()));
    LULL_RETURN_IF_ERROR(CheckText("stacks.stacks.frames.module", frame.module()));
    if (frame.line() < 0) return Invalid("stacks.stacks.frames.line is negative");
  }
  return absl::OkStatus();
}

absl::Status CheckSource(const lull::v1::SourceDef& source) {
  if (source.line() == 0) return Invalid("sources.line is 0");
  if (source.lines_size() > kMaxSourceLines) {
    return Invalid("sources.lines has ", source.lines_size(), " entries, more than ",
                   kMaxSourceLines);
  }
  // Beside other numbers, lines would be shown that nobody says are there.
  if (source.first_line() == 0 || source.first_line() > source.line() ||
      source.line() - source.first_line() >=
          static_cast<uint32_t>(source.lines_size())) {
    return Invalid("sources.first_line is ", source.first_line(), " of ",
                   source.lines_size(), " lines around line ", source.line());
  }
  for (const std::string& line : source.lines()) {
    if (line.size() > kMaxSourceBytes) {
      return Invalid("sources.lines has a line of ", line.size(), " bytes, more than ",
                     kMaxSourceBytes);
    }
    if (Contains(line, "\n")) return Invalid("sources.lines has two lines in one");
  }
  return CheckText("sources.file", source.file());
}

absl::Status CheckDepth(uint64_t depth) {
  if (depth <= kMaxFrames) return absl::OkStatus();
  return Invalid("stacks.stacks.frames has ", depth, " entries, more than ",
                 kMaxFrames);
}

absl::Status CheckStacks(const Batch::Stacks& stacks) {
  if (stacks.process_key() == 0) return Invalid("stacks.process_key is 0");
  for (const lull::v1::StackDef& stack : stacks.stacks()) {
    if (stack.ref() == 0) return Invalid("stacks.stacks.ref is 0");
    LULL_RETURN_IF_ERROR(CheckDepth(static_cast<uint64_t>(stack.frames_size())));
    LULL_RETURN_IF_ERROR(CheckFrames(stack.frames()));
  }
  LULL_RETURN_IF_ERROR(CheckFrames(stacks.frames()));
  if (stacks.depths_size() != 0 && stacks.depths_size() != stacks.stacks_size()) {
    return Invalid("stacks.depths has ", stacks.depths_size(),
                   " values, stacks.stacks ", stacks.stacks_size());
  }
  uint64_t frames = 0;
  for (int i = 0; i < stacks.depths_size(); ++i) {
    LULL_RETURN_IF_ERROR(CheckDepth(stacks.depths(i)));
    if (stacks.depths(i) > 0 && stacks.stacks(i).frames_size() > 0) {
      return Invalid("stacks.depths is ", stacks.depths(i),
                     " for a stack with frames of its own");
    }
    frames += stacks.depths(i);
  }
  if (frames != static_cast<uint64_t>(stacks.frame_numbers_size())) {
    return Invalid("stacks.frame_numbers has ", stacks.frame_numbers_size(),
                   " values, stacks.depths names ", frames);
  }
  for (uint32_t number : stacks.frame_numbers()) {
    if (number >= static_cast<uint32_t>(stacks.frames_size())) {
      return Invalid("stacks.frame_numbers names ", number, " of ",
                     stacks.frames_size(), " frames");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLengths(const EventColumns& events) {
  const int count = events.start_delta_ns_size();
  const struct {
    const char* name;
    int size;
  } columns[] = {
      {"duration_ns", events.duration_ns_size()},
      {"type", events.type_size()},
      {"flags", events.flags_size()},
      {"api", events.api_size()},
      {"python_stack", events.python_stack_size()},
      {"native_stack", events.native_stack_size()},
      {"arg0", events.arg0_size()},
      {"arg1", events.arg1_size()},
      {"arg2", events.arg2_size()},
      {"tid", events.tid_size()},
  };
  for (const auto& column : columns) {
    if (column.size != count) {
      return Invalid("rings.events.", column.name, " has ", column.size,
                     " values, start_delta_ns has ", count);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTimes(const EventColumns& events) {
  LULL_RETURN_IF_ERROR(CheckTime("rings.events.base_ns", events.base_ns()));
  auto now = static_cast<int64_t>(events.base_ns());
  for (int i = 0; i < events.start_delta_ns_size(); ++i) {
    if (__builtin_add_overflow(now, events.start_delta_ns(i), &now) || now < 0) {
      return Invalid("rings.events.start_delta_ns leaves the range of time at index ",
                     i);
    }
    if (events.duration_ns(i) > kMaxTimeNs - static_cast<uint64_t>(now)) {
      return Invalid("rings.events.duration_ns is out of range at index ", i);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckValues(const EventColumns& events) {
  auto above = [](const auto& column, uint32_t most) {
    return std::any_of(column.begin(), column.end(),
                       [&](uint32_t v) { return v > most; });
  };
  for (uint32_t type : events.type()) {
    if (type == 0 || type > kMaxEventType)
      return Invalid("rings.events.type is ", type);
  }
  for (int i = 0; i < events.type_size(); ++i) {
    if (events.type(i) == lull::v1::EVENT_TYPE_HOST_SAMPLE &&
        events.arg0(i) > kMaxWeightNs) {
      return Invalid("rings.events.arg0 of a host sample is out of range at index ", i);
    }
  }
  if (above(events.flags(), kMaxFlags))
    return Invalid("rings.events.flags is out of range");
  if (above(events.api(), kMaxApiId))
    return Invalid("rings.events.api is out of range");
  return absl::OkStatus();
}

absl::Status CheckRing(const lull::v1::RingBatch& ring) {
  if (ring.process_key() == 0) return Invalid("rings.process_key is 0");
  if (ring.ring() >= kMaxRing) return Invalid("rings.ring is ", ring.ring());
  const EventColumns& events = ring.events();
  auto count = static_cast<uint64_t>(events.start_delta_ns_size());
  if (events.first_position() > kMaxTimeNs - count) {
    return Invalid("rings.events.first_position is out of range");
  }
  LULL_RETURN_IF_ERROR(CheckLengths(events));
  LULL_RETURN_IF_ERROR(CheckTimes(events));
  return CheckValues(events);
}

absl::Status CheckCounters(const lull::v1::ProcessCounters& counters) {
  if (counters.process_key() == 0) return Invalid("counters.process_key is 0");
  for (const lull::v1::RingCounters& ring : counters.rings()) {
    if (ring.ring() >= kMaxRing) return Invalid("counters.rings.ring is ", ring.ring());
    if (std::max({ring.committed(), ring.lost_full(), ring.lost_relay(), ring.self_ns(),
                  ring.short_waits(), ring.short_waits_ns(), ring.thinned_launches()}) >
        kMaxTimeNs) {
      return Invalid("counters.rings holds a total that is out of range");
    }
  }
  if (std::max({counters.lost_no_ring(), counters.stacks_rejected(),
                counters.reentered(), counters.gpu_calls(),
                counters.torch_allocations(), counters.as_of_ns(),
                counters.cupti_dropped(), counters.gpu_records_lost(),
                counters.gpu_records_bad(), counters.gpu_self_ns()}) > kMaxTimeNs) {
    return Invalid("counters holds a total that is out of range");
  }
  return absl::OkStatus();
}

absl::Status CheckGpu(const Batch::Gpu& gpu) {
  if (gpu.process_key() == 0) return Invalid("gpus.process_key is 0");
  for (const lull::v1::KernelDef& kernel : gpu.kernels()) {
    if (kernel.ref() == 0) return Invalid("gpus.kernels.ref is 0");
    LULL_RETURN_IF_ERROR(CheckText("gpus.kernels.name", kernel.name()));
  }
  for (const lull::v1::GpuStreamDef& stream : gpu.streams()) {
    if (stream.ref() == 0) return Invalid("gpus.streams.ref is 0");
    if (stream.device() >= kMaxWireDevices) {
      return Invalid("gpus.streams.device is ", stream.device());
    }
  }
  for (const lull::v1::GpuDeviceDef& device : gpu.devices()) {
    if (device.ref() == 0) return Invalid("gpus.devices.ref is 0");
    if (device.device() >= kMaxWireDevices) {
      return Invalid("gpus.devices.device is ", device.device());
    }
    LULL_RETURN_IF_ERROR(CheckText("gpus.devices.name", device.name()));
  }
  return absl::OkStatus();
}

absl::Status CheckStretch(const lull::v1::ArmedStretch& stretch) {
  if (stretch.number() == 0 || stretch.number() > kMaxTimeNs) {
    return Invalid("stretches.number is ", stretch.number());
  }
  LULL_RETURN_IF_ERROR(CheckTime("stretches.start_ns", stretch.start_ns()));
  LULL_RETURN_IF_ERROR(CheckTime("stretches.end_ns", stretch.end_ns()));
  LULL_RETURN_IF_ERROR(CheckText("stretches.gpu.schedule", stretch.gpu().schedule()));
  if (stretch.end_ns() != 0 && stretch.end_ns() < stretch.start_ns()) {
    return Invalid("stretches.end_ns lies before stretches.start_ns");
  }
  return absl::OkStatus();
}

}  // namespace

lull::v1::RejectedRun Rejection(const Batch& batch, const lull::v1::RingBatch& run,
                                std::string why) {
  lull::v1::RejectedRun rejected;
  rejected.set_sequence(batch.sequence());
  rejected.set_process_key(run.process_key());
  rejected.set_ring(run.ring());
  rejected.set_events(static_cast<uint64_t>(run.events().type_size()));
  rejected.set_why(std::move(why));
  return rejected;
}

std::vector<lull::v1::RejectedRun> TakeBadRunsOut(Batch* batch) {
  std::vector<lull::v1::RejectedRun> rejected;
  auto* rings = batch->mutable_rings();
  auto bad = std::stable_partition(
      rings->pointer_begin(), rings->pointer_end(), [&](lull::v1::RingBatch* run) {
        absl::Status status = CheckRing(*run);
        if (status.ok()) return true;
        rejected.push_back(Rejection(*batch, *run, std::string(status.message())));
        return false;
      });
  rings->DeleteSubrange(static_cast<int>(bad - rings->pointer_begin()),
                        static_cast<int>(rejected.size()));
  return rejected;
}

absl::Status ValidateBatch(const Batch& batch) {
  if (batch.sequence() == 0) return Invalid("sequence is 0");
  for (const auto& process : batch.processes())
    LULL_RETURN_IF_ERROR(CheckProcess(process));
  int frame_numbers = 0;
  for (const auto& stacks : batch.stacks()) {
    LULL_RETURN_IF_ERROR(CheckStacks(stacks));
    frame_numbers += stacks.frame_numbers_size();  // a message has no 2^31 bytes
  }
  if (frame_numbers > kMaxFrameNumbers) {
    return Invalid("stacks.frame_numbers has ", frame_numbers,
                   " values in all, more than ", kMaxFrameNumbers);
  }
  for (const auto& source : batch.sources()) LULL_RETURN_IF_ERROR(CheckSource(source));
  // Two processes may name the same call in one batch.
  for (const auto& api : batch.apis()) LULL_RETURN_IF_ERROR(CheckApi("apis", api));
  for (const auto& gpu : batch.gpus()) LULL_RETURN_IF_ERROR(CheckGpu(gpu));
  for (const auto& ring : batch.rings()) LULL_RETURN_IF_ERROR(CheckRing(ring));
  for (const auto& counters : batch.counters())
    LULL_RETURN_IF_ERROR(CheckCounters(counters));
  for (const Batch::ProcessEnd& end : batch.process_ends()) {
    if (end.process_key() == 0) return Invalid("process_ends.process_key is 0");
    LULL_RETURN_IF_ERROR(CheckTime("process_ends.end_ns", end.end_ns()));
  }
  for (const lull::v1::ArmedStretch& stretch : batch.stretches()) {
    LULL_RETURN_IF_ERROR(CheckStretch(stretch));
  }
  LULL_RETURN_IF_ERROR(CheckTime("job_end.end_ns", batch.job_end().end_ns()));
  LULL_RETURN_IF_ERROR(
      CheckTime("job_end.unreachable_ns", batch.job_end().unreachable_ns()));
  LULL_RETURN_IF_ERROR(CheckTime("set_aside", batch.set_aside()));
  return CheckTime("job_end.relay_cpu_ns", batch.job_end().relay_cpu_ns());
}

}  // namespace lull::collector
