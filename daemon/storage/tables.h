// The tables of the catalogue, each in one place: its name, who owns its rows, and
// which column holds which field. schema.cc makes them.
#pragma once

#include <tuple>

#include "daemon/storage/rows.h"

namespace lull::storage {

// All kinds of rows that a job owns, and all that a process owns. They are deleted by
// these lists.
#define LULL_ROWS_OF_JOBS(_) \
  _(StretchRow)              \
  _(ClockReadingRow)         \
  _(ApiRow)                  \
  _(FrameRow)                \
  _(StackRow) _(SiteRow) _(SourceRow) _(KernelNameRow) _(KernelRow) _(GpuStreamRow)
#define LULL_ROWS_OF_PROCESSES(_) \
  _(RingRow)                      \
  _(RefRow)                       \
  _(SeriesRow)                    \
  _(GpuDeviceRow)                 \
  _(TracingRow) _(NonFiniteRow) _(StepRow) _(StepMemoryRow) _(LiveBlockRow)

template <typename R>
struct Table;

// `owner`: the column that says of which job or process a row is. `columns`: of the
// fields of a row `r` that follow, in their order; rows come in the order of the first.
#define LULL_TABLE(Row, name, owner, columns, ...)                \
  template <>                                                     \
  struct Table<Row> {                                             \
    static constexpr char kName[] = name;                         \
    static constexpr char kOwner[] = owner;                       \
    static constexpr char kColumns[] = columns;                   \
    static auto Fields(auto& r) { return std::tie(__VA_ARGS__); } \
  }

LULL_TABLE(JobRow, "jobs", "",
           "id, job_info, ended, job_end, last_event_ns, touched_ns, set_aside, marks,"
           "run",
           r.id, r.info, r.ended, r.end, r.last_event_ns, r.touched_ns,
           r.batches_set_aside, r.marks, r.run);
LULL_TABLE(ProcessRow, "processes", "job",
           "id, job, process_info, end_ns, counters, judged_ns, late_operations",  //
           r.id, r.job, r.info, r.end_ns, r.counters, r.judged_ns, r.late_operations);

LULL_TABLE(StretchRow, "stretches", "job", "number, start_ns, end_ns",  //
           r.number, r.start_ns, r.end_ns);
LULL_TABLE(ClockReadingRow, "clock_readings", "job", "second, reading",  //
           r.second, r.reading);
LULL_TABLE(ApiRow, "apis", "job", "id, name, family", r.id, r.name, r.family);
LULL_TABLE(FrameRow, "frames", "job", "id, function, file, line, module",  //
           r.id, r.frame.function, r.frame.file, r.frame.line, r.frame.module);
LULL_TABLE(StackRow, "stacks", "job", "id, native, truncated, frames",  //
           r.id, r.native, r.truncated, r.frames);
LULL_TABLE(SiteRow, "sites", "job",
           "id, file, line, function, backward_of, forward",  //
           r.id, r.file, r.line, r.function, r.backward_of, r.forward);
LULL_TABLE(SourceRow, "sources", "job", "id, def", r.id, r.def);
LULL_TABLE(KernelNameRow, "kernel_names", "job", "id, name", r.id, r.name);
LULL_TABLE(KernelRow, "kernels", "job",
           "id, name, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers,"
           "static_shared, dynamic_shared",
           r.id, r.name, r.grid[0], r.grid[1], r.grid[2], r.block[0], r.block[1],
           r.block[2], r.registers_per_thread, r.static_shared_bytes,
           r.dynamic_shared_bytes);
LULL_TABLE(GpuStreamRow, "gpu_streams", "job", "id, device, context, stream",  //
           r.id, r.device, r.context, r.stream);

LULL_TABLE(RingRow, "rings", "process",
           "ring, end_position, stored, skipped, counters",  //
           r.ring, r.end_position, r.stored, r.skipped, r.counters);
LULL_TABLE(RefRow, "refs", "process", "kind, ref, id", r.kind, r.ref, r.id);
LULL_TABLE(SeriesRow, "series", "process",
           "id, type, variant, api, python_stack, native_stack, line_site,"
           "function_site, line_group, function_group, total_group, shape, gpu_stream,"
           "before_line, before_function, after_line, after_function",
           r.id, r.series.type, r.series.variant, r.series.api, r.series.python_stack,
           r.series.native_stack, r.series.line_site, r.series.function_site,
           r.series.line_group, r.series.function_group, r.series.total_group,
           r.series.shape, r.series.gpu_stream, r.series.before_line,
           r.series.before_function, r.series.after_line, r.series.after_function);
LULL_TABLE(GpuDeviceRow, "gpu_devices", "process", "device, def", r.device, r.def);
LULL_TABLE(TracingRow, "tracing", "process", "start_ns, state, reason",  //
           r.start_ns, r.state, r.reason);
LULL_TABLE(NonFiniteRow, "non_finite", "process",
           "time_ns, value, series, step_known, step",  //
           r.time_ns, r.value, r.series, r.step_known, r.step);
LULL_TABLE(StepRow, "steps", "process",
           "number, source, start_ns, end_ns, traced, kernel_ns, memcpy_ns, memset_ns,"
           "communication_ns, runtime_ns, data_ns, host_ns, rested_ns",
           r.number, r.source, r.start_ns, r.end_ns, r.traced, r.part_ns[0],
           r.part_ns[1], r.part_ns[2], r.part_ns[3], r.part_ns[4], r.part_ns[5],
           r.part_ns[6], r.rested_ns);
LULL_TABLE(StepMemoryRow, "step_memory", "process", "ordinal, step, end_ns, live",  //
           r.ordinal, r.step, r.end_ns, r.live);
LULL_TABLE(LiveBlockRow, "live_blocks", "process",
           "allocator, address, series, bytes, since_ns",  //
           r.key.allocator, r.key.address, r.block.series, r.block.bytes,
           r.block.since_ns);

#undef LULL_TABLE

}  // namespace lull::storage
