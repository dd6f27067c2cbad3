#include "daemon/relay/deliver/refused_batches.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "daemon/base/logging.h"
#include "daemon/base/runtime_directory.h"
#include "ingest.pb.h"

namespace lull::relay {
namespace {

// How often a batch that is refused can be made smaller.
constexpr int kMostReductions = 2;

// Best effort: without room they are lost.
void Keep(const std::string& spool, uint64_t sequence, const std::string& body) {
  namespace fs = std::filesystem;
  fs::path folder = fs::path(spool).parent_path() / "refused";
  if (!MakePrivateDirectory(folder.string()).ok()) return;
  std::error_code error;
  std::map<fs::file_time_type, std::pair<fs::path, uint64_t>> kept;
  uint64_t bytes = body.size();
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    uint64_t size = entry.file_size(error);
    bytes += size;
    kept[entry.last_write_time(error)] = {entry.path(), size};
  }
  for (auto oldest = kept.begin(); oldest != kept.end() && bytes > kMaxRefusedBytes;
       ++oldest) {
    fs::remove(oldest->second.first, error);
    bytes -= oldest->second.second;
  }
  fs::path file = folder / absl::StrCat(fs::path(spool).filename().string(), "-",
                                        sequence, ".batch");
  std::ofstream(file, std::ios::binary | std::ios::trunc) << body;
  LogError(absl::StrCat("batch ", sequence, " is set aside: ", file.string()));
}

}  // namespace

bool RefusedBatches::Add(uint64_t sequence, const std::string& body) {
  const int times = ++times_[sequence];
  if (times == 1) Keep(spool_, sequence, body);
  return times <= kMostReductions;
}

std::string RefusedBatches::WhatIsLeft(uint64_t sequence, std::string body) const {
  auto refused = times_.find(sequence);
  if (refused == times_.end()) return body;
  lull::v1::Batch batch;
  if (!batch.ParseFromString(body)) batch.Clear();
  lull::v1::Batch left;
  left.set_sequence(sequence);
  left.set_set_aside(static_cast<uint64_t>(std::distance(times_.begin(), refused)) + 1);
  if (refused->second == 1) {
    left.mutable_processes()->Swap(batch.mutable_processes());
    left.mutable_counters()->Swap(batch.mutable_counters());
    left.mutable_process_ends()->Swap(batch.mutable_process_ends());
    left.mutable_stretches()->Swap(batch.mutable_stretches());
  }
  if (refused->second <= kMostReductions && batch.has_job_end()) {
    *left.mutable_job_end() = batch.job_end();
  }
  return left.SerializeAsString();
}

}  // namespace lull::relay
