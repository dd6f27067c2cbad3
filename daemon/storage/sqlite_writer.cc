#include "daemon/storage/sqlite_writer.h"

#include <string>

#include "daemon/base/status.h"
#include "daemon/storage/cell_codec.h"
#include "daemon/storage/varint.h"

namespace lull::storage {

absl::Status SqliteWriter::Begin() { return db_->Execute("BEGIN IMMEDIATE"); }

absl::Status SqliteWriter::Commit() {
  absl::Status status = db_->Execute("COMMIT");
  if (!status.ok()) Rollback();
  return status;
}

void SqliteWriter::Rollback() {
  // SQLite rolls back by itself on some errors, for example on a full disk.
  if (db_->in_transaction()) (void)db_->Execute("ROLLBACK");
}

absl::Status SqliteWriter::PutJob(JobRow& row) {
  return db_->Query(
      "INSERT INTO jobs(uuid, name, command, host, user, lull_version, start_ns,"
      "start_realtime_ns, budget, ended, exit_status_known, exit_status, end_ns,"
      "relay_cpu_ns, last_event_ns, touched_ns, gpu_mode, gpu_schedule,"
      "dormant, attached, unrecorded, cut_off, set_aside, unreachable_ns,"
      "no_host_samples) "
      "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,"
      "?21,?22,?23,?24,?25) "
      "ON CONFLICT(uuid) DO UPDATE SET name=?2, command=?3, host=?4, user=?5,"
      "lull_version=?6, start_ns=?7, start_realtime_ns=?8, budget=?9, ended=?10,"
      "exit_status_known=?11, exit_status=?12, end_ns=?13, relay_cpu_ns=?14,"
      "last_event_ns=?15, touched_ns=?16, gpu_mode=?17, gpu_schedule=?18,"
      "dormant=?19, attached=?20, unrecorded=?21, cut_off=?22,"
      "set_aside=?23, unreachable_ns=?24, no_host_samples=?25 "
      "RETURNING id",
      [&row](const Row& r) { row.id = r.Int(0); }, row.uuid, row.name, row.command,
      row.host, row.user, row.lull_version, row.start_ns, row.start_realtime_ns,
      row.overhead_budget_percent, row.ended, row.exit_status_known, row.exit_status,
      row.end_ns, row.relay_cpu_ns, row.last_event_ns, row.touched_ns, row.gpu_mode,
      row.gpu_schedule, row.dormant, row.attached, row.unrecorded_processes,
      row.cut_off, row.batches_set_aside, row.unreachable_ns, row.no_host_samples);
}

absl::Status SqliteWriter::PutClock(const ClockRow& row) {
  return db_->Execute("REPLACE INTO clock VALUES(1,?,?,?,?)", row.now_ns,
                      row.realtime_ns, row.boottime_ns, row.boot_id);
}

absl::Status SqliteWriter::PutStretch(int64_t job, const StretchRow& row) {
  return db_->Execute("REPLACE INTO stretches VALUES(?,?,?,?)", job, row.number,
                      row.start_ns, row.end_ns);
}

absl::Status SqliteWriter::PutProcess(ProcessRow& row) {
  std::string counters = row.counters.SerializeAsString();
  return db_->Query(
      "INSERT INTO processes(job, key, pid, parent_pid, start_ns, end_ns, command,"
      "executable, python_version, rank, local_rank, counters, judged_ns,"
      "late_operations, worker_of) "
      "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15) "
      "ON CONFLICT(job, key) DO UPDATE SET pid=?3, parent_pid=?4, start_ns=?5,"
      "end_ns=?6, command=?7, executable=?8, python_version=?9, rank=?10,"
      "local_rank=?11, counters=?12, judged_ns=?13, late_operations=?14,"
      "worker_of=?15 RETURNING id",
      [&row](const Row& r) { row.id = r.Int(0); }, row.job, row.key, row.pid,
      row.parent_pid, row.start_ns, row.end_ns, row.command, row.executable,
      row.python_version, row.rank, row.local_rank, Blob{counters}, row.judged_ns,
      row.late_operations, row.worker_of);
}

absl::Status SqliteWriter::PutRing(int64_t process, const RingRow& row) {
  return db_->Execute("REPLACE INTO rings VALUES(?,?,?,?,?,?,?,?,?,?,?,?)", process,
                      row.ring, row.end_position, row.stored, row.skipped,
                      row.committed, row.lost_full, row.lost_relay, row.self_ns,
                      row.short_waits, row.short_waits_ns, row.thinned_launches);
}

absl::Status SqliteWriter::PutApi(int64_t job, const ApiRow& row) {
  return db_->Execute("REPLACE INTO apis VALUES(?,?,?,?)", job, row.id, row.name,
                      row.family);
}

absl::Status SqliteWriter::PutFrame(int64_t job, const FrameRow& row) {
  return db_->Execute("REPLACE INTO frames VALUES(?,?,?,?,?,?)", job, row.id,
                      row.frame.function, row.frame.file, row.frame.line,
                      row.frame.module);
}

absl::Status SqliteWriter::PutStack(int64_t job, const StackRow& row) {
  std::string ids;
  for (uint32_t id : row.frames) PutVarint(ids, id);
  return db_->Execute("REPLACE INTO stacks VALUES(?,?,?,?,?)", job, row.id, row.native,
                      row.truncated, Blob{ids});
}

absl::Status SqliteWriter::PutRef(int64_t process, const RefRow& row) {
  return db_->Execute("REPLACE INTO refs VALUES(?,?,?,?)", process,
                      static_cast<int>(row.kind), row.ref, row.id);
}

absl::Status SqliteWriter::PutSite(int64_t job, const SiteRow& row) {
  return db_->Execute("REPLACE INTO sites VALUES(?,?,?,?,?,?,?)", job, row.id, row.file,
                      row.line, row.function, row.backward_of, row.forward);
}

absl::Status SqliteWriter::PutSeries(int64_t process, const SeriesRow& row) {
  const aggregate::Series& s = row.series;
  return db_->Execute("REPLACE INTO series VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                      process, row.id, static_cast<int>(s.type), s.variant, s.api,
                      s.python_stack, s.native_stack, s.line_site, s.function_site,
                      s.line_group, s.function_group, s.total_group, s.shape,
                      s.gpu_stream, s.before_line, s.before_function, s.after_line,
                      s.after_function);
}

absl::Status SqliteWriter::PutChunk(const ChunkKey& key, const CellChunk& chunk) {
  std::string data = EncodeChunk(chunk);
  return db_->Execute(
      "INSERT INTO cells VALUES(?1,?2,?3,?4,?5) "
      "ON CONFLICT(process, level, bucket, chunk) DO UPDATE SET data=?5",
      key.process, key.level, key.bucket, key.index, Blob{data});
}

absl::Status SqliteWriter::PutLiveBlock(int64_t process, const aggregate::BlockKey& key,
                                        const aggregate::LiveBlock& block) {
  return db_->Execute("REPLACE INTO live_blocks VALUES(?,?,?,?,?,?)", process,
                      key.allocator, key.address, block.series, block.bytes,
                      block.since_ns);
}

absl::Status SqliteWriter::DeleteLiveBlock(int64_t process,
                                           const aggregate::BlockKey& key) {
  return db_->Execute(
      "DELETE FROM live_blocks WHERE process=? AND allocator=? AND address=?", process,
      key.allocator, key.address);
}

absl::Status SqliteWriter::DeleteLiveBlocks(int64_t process) {
  return db_->Execute("DELETE FROM live_blocks WHERE process=?", process);
}

absl::StatusOr<uint64_t> SqliteWriter::UsedBytes() {
  LULL_ASSIGN_OR_RETURN(int64_t pages, db_->Value("PRAGMA page_count"));
  LULL_ASSIGN_OR_RETURN(int64_t free, db_->Value("PRAGMA freelist_count"));
  LULL_ASSIGN_OR_RETURN(int64_t size, db_->Value("PRAGMA page_size"));
  return static_cast<uint64_t>((pages - free) * size);
}

}  // namespace lull::storage
