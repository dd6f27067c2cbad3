#include "daemon/storage/sqlite_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"
#include "daemon/storage/cell_codec.h"
#include "daemon/storage/collect.h"
#include "daemon/storage/varint.h"

namespace lull::storage {
namespace {

#define LULL_JOB_COLUMNS                                                            \
  "id, uuid, name, command, host, user, lull_version, start_ns, start_realtime_ns," \
  "budget, ended, exit_status_known, exit_status, end_ns, relay_cpu_ns,"            \
  "last_event_ns, touched_ns, gpu_mode, gpu_schedule, dormant,"                     \
  "attached, unrecorded, cut_off, set_aside, unreachable_ns, no_host_samples"

JobRow ReadJob(const Row& r) {
  JobRow row;
  row.id = r.Int(0);
  row.uuid = r.Text(1);
  row.name = r.Text(2);
  row.command = r.Text(3);
  row.host = r.Text(4);
  row.user = r.Text(5);
  row.lull_version = r.Text(6);
  row.start_ns = r.Uint(7);
  row.start_realtime_ns = r.Uint(8);
  row.overhead_budget_percent = r.Real(9);
  row.ended = r.Int(10) != 0;
  row.exit_status_known = r.Int(11) != 0;
  row.exit_status = static_cast<int32_t>(r.Int(12));
  row.end_ns = r.Uint(13);
  row.relay_cpu_ns = r.Uint(14);
  row.last_event_ns = r.Uint(15);
  row.touched_ns = r.Uint(16);
  row.gpu_mode = r.Uint32(17);
  row.gpu_schedule = r.Text(18);
  row.dormant = r.Int(19) != 0;
  row.attached = r.Int(20) != 0;
  row.unrecorded_processes = r.Uint32(21);
  row.cut_off = r.Int(22) != 0;
  row.batches_set_aside = r.Uint(23);
  row.unreachable_ns = r.Uint(24);
  row.no_host_samples = r.Int(25) != 0;
  return row;
}

ProcessRow ReadProcess(const Row& r) {
  ProcessRow row;
  row.id = r.Int(0);
  row.job = r.Int(1);
  row.key = r.Uint(2);
  row.pid = r.Uint32(3);
  row.parent_pid = r.Uint32(4);
  row.start_ns = r.Uint(5);
  row.end_ns = r.Uint(6);
  row.command = r.Text(7);
  row.executable = r.Text(8);
  row.python_version = r.Text(9);
  row.rank = static_cast<int32_t>(r.Int(10));
  row.local_rank = static_cast<int32_t>(r.Int(11));
  // What does not parse was written by no lull: the counters are 0 then.
  std::string_view counters = r.Bytes(12);
  row.counters.ParseFromArray(counters.data(), static_cast<int>(counters.size()));
  row.judged_ns = r.Uint(13);
  row.late_operations = r.Uint(14);
  row.worker_of = r.Uint(15);
  return row;
}

std::vector<uint32_t> ReadIds(std::string_view bytes) {
  std::vector<uint32_t> ids;
  for (uint64_t id = 0; !bytes.empty() && TakeVarint(bytes, id);) {
    ids.push_back(static_cast<uint32_t>(id));
  }
  return ids;
}

}  // namespace

absl::StatusOr<std::vector<JobRow>> SqliteReader::Jobs(uint32_t limit) {
  return Collect<JobRow>(db_,
                         "SELECT " LULL_JOB_COLUMNS
                         " FROM jobs WHERE deleting=0 "
                         "ORDER BY start_realtime_ns DESC, id DESC LIMIT ?",
                         ReadJob, limit == 0 ? int64_t{-1} : int64_t{limit});
}

absl::StatusOr<std::vector<JobRow>> SqliteReader::FindJob(const std::string& uuid) {
  return Collect<JobRow>(
      db_, "SELECT " LULL_JOB_COLUMNS " FROM jobs WHERE uuid=? AND deleting=0", ReadJob,
      uuid);
}

absl::StatusOr<std::vector<StretchRow>> SqliteReader::Stretches(int64_t job) {
  return Collect<StretchRow>(
      db_, "SELECT number, start_ns, end_ns FROM stretches WHERE job=? ORDER BY number",
      [](const Row& r) {
        return StretchRow{r.Uint(0), r.Uint(1), r.Uint(2)};
      },
      job);
}

absl::StatusOr<ClockRow> SqliteReader::Clock() {
  ClockRow row;
  LULL_RETURN_IF_ERROR(
      db_.Query("SELECT now_ns, realtime_ns, boottime_ns, boot_id FROM clock",
                [&row](const Row& r) {
                  row = {r.Uint(0), r.Uint(1), r.Uint(2), r.Text(3)};
                }));
  return row;
}

absl::StatusOr<bool> SqliteReader::IsBeingDeleted(const std::string& uuid) {
  bool deleting = false;
  LULL_RETURN_IF_ERROR(db_.Query(
      "SELECT deleting FROM jobs WHERE uuid=?",
      [&](const Row& r) { deleting = r.Int(0) != 0; }, uuid));
  return deleting;
}

absl::StatusOr<std::vector<ProcessRow>> SqliteReader::Processes(int64_t job) {
  return Collect<ProcessRow>(
      db_,
      "SELECT id, job, key, pid, parent_pid, start_ns, end_ns, command, executable,"
      "python_version, rank, local_rank, counters, judged_ns, late_operations,"
      "worker_of "
      "FROM processes WHERE job=? ORDER BY id",
      ReadProcess, job);
}

absl::StatusOr<std::vector<RingRow>> SqliteReader::Rings(int64_t process) {
  return Collect<RingRow>(
      db_,
      "SELECT ring, end_position, stored, skipped, committed, lost_full, lost_relay,"
      "self_ns, short_waits, short_waits_ns, thinned_launches FROM rings "
      "WHERE process=?",
      [](const Row& r) {
        return RingRow{r.Uint32(0), r.Uint(1), r.Uint(2), r.Uint(3),
                       r.Uint(4),   r.Uint(5), r.Uint(6), r.Uint(7),
                       r.Uint(8),   r.Uint(9), r.Uint(10)};
      },
      process);
}

absl::StatusOr<std::vector<ApiRow>> SqliteReader::Apis(int64_t job) {
  return Collect<ApiRow>(
      db_, "SELECT id, name, family FROM apis WHERE job=?",
      [](const Row& r) {
        return ApiRow{r.Uint32(0), r.Text(1), r.Text(2)};
      },
      job);
}

absl::StatusOr<std::vector<FrameRow>> SqliteReader::Frames(int64_t job) {
  return Collect<FrameRow>(
      db_, "SELECT id, function, file, line, module FROM frames WHERE job=?",
      [](const Row& r) {
        return FrameRow{
            r.Uint32(0),
            {r.Text(1), r.Text(2), static_cast<int32_t>(r.Int(3)), r.Text(4)}};
      },
      job);
}

absl::StatusOr<std::vector<StackRow>> SqliteReader::Stacks(int64_t job) {
  return Collect<StackRow>(
      db_, "SELECT id, native, truncated, frames FROM stacks WHERE job=?",
      [](const Row& r) {
        return StackRow{r.Uint32(0), r.Int(1) != 0, r.Int(2) != 0, ReadIds(r.Bytes(3))};
      },
      job);
}

absl::StatusOr<std::vector<RefRow>> SqliteReader::Refs(int64_t process) {
  return Collect<RefRow>(
      db_, "SELECT kind, ref, id FROM refs WHERE process=?",
      [](const Row& r) {
        return RefRow{static_cast<RefKind>(r.Int(0)), r.Uint32(1), r.Uint32(2)};
      },
      process);
}

absl::StatusOr<std::vector<SiteRow>> SqliteReader::Sites(int64_t job) {
  return Collect<SiteRow>(
      db_,
      "SELECT id, file, line, function, backward_of, forward FROM sites WHERE job=?",
      [](const Row& r) {
        return SiteRow{r.Uint32(0), r.Text(1),   static_cast<int32_t>(r.Int(2)),
                       r.Text(3),   r.Uint32(4), r.Uint32(5)};
      },
      job);
}

absl::StatusOr<std::vector<SeriesRow>> SqliteReader::AllSeries(int64_t process) {
  return Collect<SeriesRow>(
      db_,
      "SELECT id, type, variant, api, python_stack, native_stack, line_site,"
      "function_site, line_group, function_group, total_group, shape, gpu_stream,"
      "before_line, before_function, after_line, after_function FROM series "
      "WHERE process=? ORDER BY id",
      [](const Row& r) {
        return SeriesRow{r.Uint32(0),
                         {r.Enum<aggregate::EventType>(1),
                          static_cast<uint8_t>(r.Int(2)), r.Uint32(3), r.Uint32(4),
                          r.Uint32(5), r.Uint32(6), r.Uint32(7), r.Uint32(8),
                          r.Uint32(9), r.Uint32(10), r.Uint32(11), r.Uint32(12),
                          r.Uint32(13), r.Uint32(14), r.Uint32(15), r.Uint32(16)}};
      },
      process);
}

absl::StatusOr<SiteRow> SqliteReader::Site(int64_t job, uint32_t id) {
  SiteRow site;
  LULL_RETURN_IF_ERROR(db_.Query(
      "SELECT file, line, function, backward_of, forward FROM sites "
      "WHERE job=? AND id=?",
      [&](const Row& r) {
        site = {id,        r.Text(0),   static_cast<int32_t>(r.Int(1)),
                r.Text(2), r.Uint32(3), r.Uint32(4)};
      },
      job, id));
  return site;
}

absl::StatusOr<std::vector<aggregate::Frame>> SqliteReader::StackFrames(
    int64_t job, uint32_t stack) {
  std::vector<uint32_t> ids;
  LULL_RETURN_IF_ERROR(db_.Query(
      "SELECT frames FROM stacks WHERE job=? AND id=?",
      [&](const Row& r) { ids = ReadIds(r.Bytes(0)); }, job, stack));
  std::vector<aggregate::Frame> frames;
  for (uint32_t id : ids) {
    LULL_RETURN_IF_ERROR(db_.Query(
        "SELECT function, file, line, module FROM frames WHERE job=? AND id=?",
        [&](const Row& r) {
          frames.push_back(
              {r.Text(0), r.Text(1), static_cast<int32_t>(r.Int(2)), r.Text(3)});
        },
        job, id));
  }
  return frames;
}

absl::StatusOr<bool> SqliteReader::Chunk(const ChunkKey& key, CellChunk& chunk) {
  chunk.fill({});
  bool found = false;
  bool sound = true;
  LULL_RETURN_IF_ERROR(db_.Query(
      "SELECT data FROM cells WHERE process=? AND level=? AND bucket=? AND chunk=?",
      [&](const Row& row) {
        found = true;
        sound = DecodeChunk(
            row.Bytes(0),
            [&](uint32_t index, const aggregate::Cell& cell) { chunk[index] = cell; });
      },
      key.process, key.level, key.bucket, key.index));
  if (!sound) return CorruptDatabase(db_.path(), "a chunk of aggregates");
  return found;
}

absl::Status SqliteReader::Cells(int64_t process, uint32_t level, uint64_t first,
                                 uint64_t end, const CellCallback& callback) {
  bool sound = true;
  LULL_RETURN_IF_ERROR(db_.Query(
      "SELECT chunk, data FROM cells WHERE process=? AND level=? AND bucket>=? AND "
      "bucket<? ORDER BY bucket, chunk",
      [&](const Row& row) {
        uint32_t base = row.Uint32(0) * kChunkSeries;
        sound &=
            DecodeChunk(row.Bytes(1), [&](uint32_t index, const aggregate::Cell& cell) {
              callback(base + index, cell);
            });
      },
      process, level, Clamp(first), Clamp(end)));
  return sound ? absl::OkStatus()
               : CorruptDatabase(db_.path(), "a chunk of aggregates");
}

absl::Status SqliteReader::SeriesCells(int64_t process, uint32_t series, uint32_t level,
                                       uint64_t first, uint64_t end,
                                       const SeriesCallback& callback) {
  bool sound = true;
  LULL_RETURN_IF_ERROR(db_.Query(
      "SELECT bucket, data FROM cells WHERE process=? AND level=? AND bucket>=? AND "
      "bucket<? AND chunk=? ORDER BY bucket",
      [&](const Row& row) {
        sound &=
            DecodeChunk(row.Bytes(1), [&](uint32_t index, const aggregate::Cell& cell) {
              if (index == series % kChunkSeries) callback(row.Uint(0), cell);
            });
      },
      process, level, Clamp(first), Clamp(end), series / kChunkSeries));
  return sound ? absl::OkStatus()
               : CorruptDatabase(db_.path(), "a chunk of aggregates");
}

absl::Status SqliteReader::LiveBlocks(
    int64_t process,
    const std::function<void(const aggregate::BlockKey&, const aggregate::LiveBlock&)>&
        callback) {
  return db_.Query(
      "SELECT allocator, address, series, bytes, since_ns FROM live_blocks WHERE "
      "process=?",
      [&](const Row& r) {
        callback({static_cast<uint8_t>(r.Int(0)), r.Uint(1)},
                 {r.Uint32(2), r.Uint(3), r.Uint(4)});
      },
      process);
}

}  // namespace lull::storage
