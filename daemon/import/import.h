// Files of other profilers as one job: read, translated, and laid down as the spool of
// a relay, which then goes the way of all spools.
//
// All or nothing: a spool is one only once it says whose it is (Spool::WriteHello),
// which comes last. The job's id is the hash of the files, and what is made of them
// depends on nothing but their order, so whoever delivers it twice delivers it once.
// (Two hosts that import the same files at once in another order would mix them.)
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ingest.pb.h"

namespace lull::imports {

// Called now and then while a file is read, by any one thread: its place among the
// files, and the share of it that has been read. False: nothing shall be made of the
// files.
using OnProgress = std::function<bool(size_t file, double share)>;
// Called before the first thing is laid down (of a trace of torch.profiler or a
// snapshot when it has been read), and once more when nobody else can lay it down any
// more. An error: nothing is.
using Confirm = std::function<absl::Status()>;

// Makes the spool `directory` of the job `job`, whose id, name, command, host and user
// are set; the rest is filled in. Errors name the file; nothing is left behind then.
// CANCELLED: `on_progress` said so. What `confirm` says. UNAVAILABLE: another process
// lays down the same files, or delivers what it made of them. ALREADY_EXISTS: another
// left the spool whole; it stays. RESOURCE_EXHAUSTED: the spool would take more than
// `most_bytes`. Of real traces it is smaller than the text that they unpack to; one of
// 100 KiB that was made for it would fill a disk.
absl::Status WriteSpool(const std::vector<std::string>& files,
                        const std::string& directory, const OnProgress& on_progress,
                        const Confirm& confirm, lull::v1::JobInfo* job,
                        uint64_t most_bytes);

// Removes what imports left below `parent` that were killed while they wrote.
void RemoveUnfinished(const std::string& parent);

// For WriteSpool(): what no real trace of that size needs.
absl::StatusOr<uint64_t> MostSpoolBytes(const std::vector<std::string>& files);

}  // namespace lull::imports
