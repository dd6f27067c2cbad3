// A collector for tests: an Ingest service in this process that keeps what it gets
// as the real one must (each position of a ring once), and misbehaves on demand.
#pragma once

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "ingest.grpc.pb.h"

namespace lull::relay {

// What one relay delivered, by process key.
struct Collected {
  struct Ring {
    uint64_t end = 0;              // positions below are stored
    uint64_t skipped = 0;          // positions that never came
    std::vector<uint64_t> values;  // arg0 of each event, in order
    std::vector<uint32_t> tids;
    std::vector<uint32_t> types;
    std::vector<uint32_t> python_stacks;
  };
  std::map<std::pair<uint64_t, uint32_t>, Ring> rings;
  std::map<uint64_t, lull::v1::ProcessInfo> processes;
  std::map<uint64_t, lull::v1::ProcessCounters> counters;
  std::map<std::pair<uint64_t, uint32_t>, lull::v1::StackDef> stacks;
  std::map<std::pair<uint64_t, uint32_t>, lull::v1::KernelDef> kernels;
  std::map<std::pair<uint64_t, uint32_t>, lull::v1::GpuStreamDef> gpu_streams;
  std::map<std::pair<uint64_t, uint32_t>, lull::v1::GpuDeviceDef> gpu_devices;
  std::map<uint32_t, lull::v1::ApiName> apis;  // of batches, not of Hello
  std::set<uint64_t> ended;
  std::optional<lull::v1::JobEnd> job_end;
  lull::v1::Hello hello;
  uint64_t last_sequence = 0;
  uint64_t batches = 0;    // repeated ones included
  uint64_t set_aside = 0;  // as the relay said last
  int refused = 0;
  int streams = 0;
  std::optional<lull::v1::ArmState> arming;              // as it was told last
  std::map<uint64_t, lull::v1::ArmedStretch> stretches;  // by number
  std::vector<std::string> violations;  // of the contract in proto/ingest.proto
};

class FakeCollector final : public lull::v1::Ingest::Service {
 public:
  explicit FakeCollector(std::string address);  // "unix:/path"
  ~FakeCollector() override;

  void Start();
  void Stop();  // as a collector that is killed: streams break

  void RequireToken(std::string token);
  void StopAcknowledging(bool stop);
  // Breaks the stream without an acknowledgement after so many batches. 0: never.
  void BreakAfter(int batches);

  // Ends the stream with INVALID_ARGUMENT when such a batch comes, and takes nothing of
  // it.
  void Refuse(std::function<bool(const lull::v1::Batch&)> refuses);

  // Sends a command at the beginning of each stream, and with each reply, as long as
  // it is the last one.
  void Command(lull::v1::ArmCommand command);

  Collected collected() const;
  // Waits until a job's end has come; false after `timeout`.
  bool WaitForJobEnd(absl::Duration timeout) const;

  grpc::Status Stream(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<lull::v1::IngestReply, lull::v1::IngestRequest>* stream)
      override;

 private:
  using ReplyStream =
      grpc::ServerReaderWriter<lull::v1::IngestReply, lull::v1::IngestRequest>;
  bool commanded() const;
  void Send(ReplyStream* stream, uint64_t acknowledged);
  // Under mutex_:
  void Store(const lull::v1::Batch& batch);
  void StoreRing(const lull::v1::RingBatch& run);
  void CheckRefs(uint64_t key, const lull::v1::EventColumns& events, int index);

  const std::string address_;
  std::unique_ptr<grpc::Server> server_;
  // std::mutex and not absl's: TSan sees through it.
  mutable std::mutex mutex_;  // guards all below
  mutable std::condition_variable job_ended_;
  Collected collected_;
  std::string token_;
  std::optional<lull::v1::ArmCommand> command_;
  ReplyStream* stream_ = nullptr;  // the one that is open
  bool silent_ = false;
  int break_after_ = 0;
  std::function<bool(const lull::v1::Batch&)> refuses_;
};

}  // namespace lull::relay
