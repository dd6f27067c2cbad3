-- Makes a database of schema 7 of one of schema 17; what its jobs are is forgotten.
ALTER TABLE steps DROP COLUMN rested_ns;
DROP INDEX jobs_by_run;
ALTER TABLE jobs DROP COLUMN run;
DROP TABLE clock_readings;
ALTER TABLE jobs DROP COLUMN marks;
DROP TABLE sources;
ALTER TABLE jobs DROP COLUMN job_info;
ALTER TABLE jobs DROP COLUMN job_end;
ALTER TABLE jobs ADD COLUMN name TEXT;
ALTER TABLE jobs ADD COLUMN command TEXT;
ALTER TABLE jobs ADD COLUMN host TEXT;
ALTER TABLE jobs ADD COLUMN user TEXT;
ALTER TABLE jobs ADD COLUMN lull_version TEXT;
ALTER TABLE jobs ADD COLUMN start_ns INT;
ALTER TABLE jobs ADD COLUMN budget REAL;
ALTER TABLE jobs ADD COLUMN exit_status_known INT;
ALTER TABLE jobs ADD COLUMN exit_status INT;
ALTER TABLE jobs ADD COLUMN end_ns INT;
ALTER TABLE jobs ADD COLUMN relay_cpu_ns INT;
ALTER TABLE jobs ADD COLUMN gpu_mode INT;
ALTER TABLE jobs ADD COLUMN gpu_schedule TEXT;
ALTER TABLE jobs ADD COLUMN dormant INT NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN attached INT NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN unrecorded INT NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN cut_off INT NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN unreachable_ns INT NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN no_host_samples INT NOT NULL DEFAULT 0;
ALTER TABLE processes DROP COLUMN process_info;
ALTER TABLE processes ADD COLUMN pid INT;
ALTER TABLE processes ADD COLUMN parent_pid INT;
ALTER TABLE processes ADD COLUMN start_ns INT;
ALTER TABLE processes ADD COLUMN command TEXT;
ALTER TABLE processes ADD COLUMN executable TEXT;
ALTER TABLE processes ADD COLUMN python_version TEXT;
ALTER TABLE processes ADD COLUMN rank INT;
ALTER TABLE processes ADD COLUMN local_rank INT;
ALTER TABLE processes ADD COLUMN worker_of INT NOT NULL DEFAULT 0;
DROP TABLE rings;
CREATE TABLE rings(
  process INT, ring INT, end_position INT, stored INT, skipped INT, committed INT,
  lost_full INT, lost_relay INT, self_ns INT, short_waits INT, short_waits_ns INT,
  thinned_launches INT, PRIMARY KEY(process, ring)) WITHOUT ROWID;
DROP TABLE gpu_devices;
CREATE TABLE gpu_devices(process INT, device INT, name TEXT, multiprocessors INT,
  max_threads INT, max_blocks INT, max_registers INT, max_shared INT,
  warp_size INT, compute_capability INT, total_bytes INT,
  PRIMARY KEY(process, device)) WITHOUT ROWID;
ALTER TABLE sites DROP COLUMN backward_of;
ALTER TABLE sites DROP COLUMN forward;
ALTER TABLE jobs DROP COLUMN no_host_samples;
ALTER TABLE processes DROP COLUMN worker_of;
DROP TABLE clock;
ALTER TABLE jobs RENAME COLUMN touched_ns TO touched_realtime_ns;
ALTER TABLE jobs DROP COLUMN cut_off;
ALTER TABLE jobs DROP COLUMN set_aside;
ALTER TABLE jobs DROP COLUMN unreachable_ns;
ALTER TABLE jobs DROP COLUMN unrecorded;
ALTER TABLE processes DROP COLUMN counters;
ALTER TABLE processes ADD COLUMN lost_no_ring INT;
ALTER TABLE processes ADD COLUMN stacks_rejected INT;
ALTER TABLE processes ADD COLUMN reentered INT;
ALTER TABLE processes ADD COLUMN gpu_calls INT;
ALTER TABLE processes ADD COLUMN torch_allocations INT;
ALTER TABLE processes ADD COLUMN native_stacks INT;
ALTER TABLE processes ADD COLUMN gc_hook INT;
ALTER TABLE processes ADD COLUMN thinning INT;
ALTER TABLE processes ADD COLUMN corrupt INT;
ALTER TABLE processes ADD COLUMN as_of_ns INT;
ALTER TABLE processes ADD COLUMN cupti_state INT;
ALTER TABLE processes ADD COLUMN cupti_version INT;
ALTER TABLE processes ADD COLUMN cupti_result INT;
ALTER TABLE processes ADD COLUMN step_hook INT;
ALTER TABLE processes ADD COLUMN cupti_dropped INT;
ALTER TABLE processes ADD COLUMN gpu_records_lost INT;
ALTER TABLE processes ADD COLUMN gpu_records_bad INT;
ALTER TABLE processes ADD COLUMN gpu_self_ns INT;
PRAGMA user_version=7;
