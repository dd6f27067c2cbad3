#include "daemon/collector/ingest/job_state.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/run_kinds.h"
#include "daemon/base/status.h"
#include "daemon/collector/ingest/validate.h"

namespace lull::collector {

absl::StatusOr<std::unique_ptr<JobState>> JobState::Load(storage::StoreReader& reader,
                                                         const lull::v1::Hello& hello) {
  LULL_ASSIGN_OR_RETURN(bool deleting,
                        reader.catalogue().IsBeingDeleted(hello.job().id()));
  if (deleting) return absl::UnavailableError("the job is being deleted for its age");
  std::unique_ptr<JobState> job(new JobState);
  LULL_ASSIGN_OR_RETURN(auto known, reader.catalogue().FindJob(hello.job().id()));
  if (known.empty()) {
    job->tables_ = std::make_unique<JobTables>();
    job->row_.info = hello.job();
    *job->row_.marks.mutable_tags() = hello.job().tags();
    return job;
  }
  job->row_ = known.front();
  LULL_ASSIGN_OR_RETURN(job->tables_, JobTables::Load(reader, job->row_.id));
  LULL_ASSIGN_OR_RETURN(auto processes,
                        reader.catalogue().All<storage::ProcessRow>(job->row_.id));
  for (storage::ProcessRow& row : processes) {
    uint64_t key = row.info.key();
    auto process = std::make_unique<ProcessState>(
        std::move(row), *job->tables_, job->row_.info.start_ns(), job->Traces());
    LULL_RETURN_IF_ERROR(process->Load(reader));
    job->processes_[key] = std::move(process);
  }
  return job;
}

void JobState::Apply(const lull::v1::Hello& hello) {
  lull::v1::JobInfo info = hello.job();
  // What buckets count from the first Hello decides; of GPU tracing it is what the job
  // was armed with that counts, see ApplyStretch.
  info.set_start_ns(row_.info.start_ns());
  info.set_gpu_mode(row_.info.gpu_mode());
  info.set_gpu_schedule(row_.info.gpu_schedule());
  row_.info = std::move(info);
  if (row_.run.empty()) row_.run = row_.info.run_id();
  tables_->AddApis(hello.apis());
}

// What a person says comes first, then what the launcher of the first rank says: that
// of the relay itself may be one around it.
void JobState::NoteRun(const lull::v1::ProcessInfo& info) {
  if (info.rank() < 0 || info.run_id().empty()) return;
  const bool given = absl::StartsWith(row_.info.run_id(), kGivenRun);
  if (!given && row_.run == row_.info.run_id()) row_.run = info.run_id();
}

void JobState::Apply(const lull::v1::ClockReading& reading) {
  constexpr uint64_t kSecond = 1'000'000'000;
  new_readings_.push_back({reading.at_ns() / kSecond, reading});
}

ProcessState& JobState::ProcessOf(uint64_t key) {
  std::unique_ptr<ProcessState>& process = processes_[key];
  if (process == nullptr) {
    storage::ProcessRow row;
    row.info.set_key(key);
    row.info.set_rank(-1);
    row.info.set_local_rank(-1);
    process = std::make_unique<ProcessState>(std::move(row), *tables_,
                                             row_.info.start_ns(), Traces());
  }
  return *process;
}

void JobState::ApplyStacks(const lull::v1::Batch::Stacks& stacks) {
  ProcessState& process = ProcessOf(stacks.process_key());
  std::vector<uint32_t> frames;
  for (const lull::v1::Frame& frame : stacks.frames()) {
    frames.push_back(tables_->InternFrame(frame));
  }
  const uint32_t* number = stacks.frame_numbers().data();
  for (int i = 0; i < stacks.stacks_size(); ++i) {
    std::vector<uint32_t> more(stacks.depths_size() > 0 ? stacks.depths(i) : 0);
    for (uint32_t& frame : more) frame = frames[*number++];
    const lull::v1::StackDef& stack = stacks.stacks(i);
    process.ApplyRef(storage::RefKind::kStack, stack.ref(),
                     tables_->InternStack(stack, std::move(more)));
  }
}

void JobState::ApplyGpu(const lull::v1::Batch::Gpu& gpu) {
  using storage::RefKind;
  ProcessState& process = ProcessOf(gpu.process_key());
  for (const lull::v1::KernelDef& kernel : gpu.kernels()) {
    process.ApplyRef(RefKind::kKernel, kernel.ref(),
                     tables_->gpu().InternKernel(kernel));
  }
  for (const lull::v1::GpuStreamDef& stream : gpu.streams()) {
    process.ApplyRef(RefKind::kGpuStream, stream.ref(),
                     tables_->gpu().InternStream(stream));
  }
  for (const lull::v1::GpuDeviceDef& device : gpu.devices()) {
    process.ApplyDevice(device);
  }
}

// The report names the most that was asked of GPU tracing.
void JobState::ApplyStretch(const lull::v1::ArmedStretch& told) {
  new_stretches_.push_back({told.number(), told.start_ns(), told.end_ns()});
  for (auto& [key, process] : processes_) process->ApplyStretch(told.start_ns());
  if (told.gpu().mode() < row_.info.gpu_mode()) return;
  row_.info.set_gpu_mode(told.gpu().mode());
  row_.info.set_gpu_schedule(told.gpu().schedule());
  if (!Traces()) return;
  for (auto& [key, process] : processes_) process->StartBlame();
}

const uint32_t* JobState::UnnamedApi(const lull::v1::RingBatch& run) const {
  const auto& apis = run.events().api();
  auto unnamed = std::find_if(apis.begin(), apis.end(),
                              [this](uint32_t api) { return !tables_->HasApi(api); });
  return unnamed == apis.end() ? nullptr : &*unnamed;
}

std::vector<lull::v1::RejectedRun> JobState::Apply(const lull::v1::Batch& batch) {
  tables_->AddApis(batch.apis());
  std::vector<lull::v1::RejectedRun> rejected;
  std::vector<const lull::v1::RingBatch*> runs;
  for (const lull::v1::RingBatch& run : batch.rings()) {
    const uint32_t* api = UnnamedApi(run);
    if (api == nullptr) {
      runs.push_back(&run);
      continue;
    }
    rejected.push_back(
        Rejection(batch, run,
                  absl::StrCat("rings.events.api names ", *api,
                               ", which neither hello.apis nor apis does")));
  }
  for (const lull::v1::ProcessInfo& info : batch.processes()) {
    ProcessOf(info.key()).ApplyInfo(info);
    NoteRun(info);
  }
  for (const lull::v1::Batch::Stacks& stacks : batch.stacks()) ApplyStacks(stacks);
  for (const lull::v1::SourceDef& source : batch.sources()) tables_->AddSource(source);
  for (const lull::v1::Batch::Gpu& gpu : batch.gpus()) ApplyGpu(gpu);
  for (const lull::v1::RingBatch* run : runs) {
    ProcessOf(run->process_key()).ApplyTracing(run->ring(), run->events());
  }
  touched_.clear();
  for (const lull::v1::RingBatch* run : runs) {
    ProcessState& process = ProcessOf(run->process_key());
    uint64_t before = process.events_stored();
    process.ApplyEvents(run->ring(), run->events());
    events_stored_ += process.events_stored() - before;
    row_.last_event_ns = std::max(row_.last_event_ns, process.last_event_ns());
    touched_.insert(&process);
  }
  for (ProcessState* process : touched_) process->ApplyMemory();
  for (const lull::v1::ProcessCounters& counters : batch.counters()) {
    ProcessOf(counters.process_key()).ApplyCounters(counters);
  }
  for (const lull::v1::Batch::ProcessEnd& end : batch.process_ends()) {
    ProcessOf(end.process_key()).ApplyEnd(end.end_ns());
  }
  for (const lull::v1::ArmedStretch& told : batch.stretches()) {
    ApplyStretch(told);
  }
  row_.batches_set_aside = std::max(row_.batches_set_aside, batch.set_aside());
  if (batch.has_job_end()) {
    for (auto& [key, process] : processes_) process->ApplyJobEnd();
    row_.ended = true;
    row_.end = batch.job_end();
  }
  return rejected;
}

void JobState::PackFullRuns(storage::BlockEncoder& encoder) {
  for (ProcessState* process : touched_) process->PackFullRuns(encoder);
}

absl::Status JobState::Flush(storage::StoreWriter& writer, uint64_t now_ns) {
  row_.touched_ns = now_ns;
  LULL_RETURN_IF_ERROR(writer.catalogue().PutJob(row_));
  LULL_RETURN_IF_ERROR(writer.catalogue().PutAll(row_.id, new_stretches_));
  LULL_RETURN_IF_ERROR(writer.catalogue().PutAll(row_.id, new_readings_));
  LULL_RETURN_IF_ERROR(tables_->Flush(writer, row_.id));
  for (auto& [key, process] : processes_) {
    LULL_RETURN_IF_ERROR(process->Flush(writer, row_.id));
  }
  return absl::OkStatus();
}

}  // namespace lull::collector
