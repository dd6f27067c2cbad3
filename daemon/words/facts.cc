#include "daemon/words/facts.h"

namespace lull {

bool HasGpuTruth(const v1::Gpu& gpu) {
  return gpu.traced_ns() > 0 && gpu.missing().empty();
}

uint64_t RecordedNs(const v1::Job& job) {
  return job.partly_recorded() ? job.recorded_ns() : job.duration_ns();
}

uint64_t RecordedNs(const v1::ProcessRow& process) {
  return process.has_recorded_ns() ? process.recorded_ns() : process.duration_ns();
}

uint64_t WatchedNs(const v1::ProcessRow& process) {
  return RecordedNs(process) + process.rested_ns();
}

bool AreStepsSampled(const v1::Job& job) {
  return job.steps_sampled() || job.settings().sample_steps();
}

}  // namespace lull
