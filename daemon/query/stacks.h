// All stacks of one job at once: whoever looks at every sample needs thousands of them.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/storage/store.h"
#include "query.pb.h"

namespace lull::query {

// Files in the stack of a loader that show what it was doing.
enum class LoaderFile : uint8_t {
  kNone,
  kFetch,      // torch/utils/data/_utils/fetch.py
  kCollate,    // .../collate.py
  kWorker,     // .../worker.py
  kStorage,    // torch/storage.py
  kIterator,   // torch/utils/data/dataloader.py
  kQueue,      // multiprocessing/queues.py
  kThreading,  // threading.py of the standard library
};

// Ids of frames; 0 is none. Two frames of one line are one id.
class Stacks {
 public:
  // An error of the store is kept; there are no stacks then. Reads with the first look.
  Stacks(storage::StoreReader& reader, int64_t job) : reader_(reader), job_(job) {}

  // Innermost first; empty for an unknown id.
  const std::vector<uint32_t>& Frames(uint32_t stack);
  const aggregate::Frame& Frame(uint32_t frame);
  // One for all frames of a function of a file.
  uint32_t Function(uint32_t frame);

  // The frame whose line a report names: the innermost one outside of packages, PyTorch
  // and the standard library; else outside of the last two; else the innermost. 0:
  // there is none. Where a DataLoader fetches, only frames that it called count: a data
  // set may well be a package's.
  uint32_t UserFrame(const std::vector<uint32_t>& frames);
  // How many frames a DataLoader's fetch has called; 0 where none is at work.
  size_t BelowFetch(const std::vector<uint32_t>& frames);
  // The same of the `count` innermost frames alone.
  uint32_t UserFrame(const std::vector<uint32_t>& frames, size_t count);
  // Whether the frame belongs to the same kind of code as `user`: the program, or a
  // package.
  bool IsWritten(uint32_t frame, uint32_t user);
  // What `user`, one of the frames, was calling: the innermost frame that is not
  // infrastructure, else the innermost; 0 if that is `user` itself.
  uint32_t CalleeOf(const std::vector<uint32_t>& frames, uint32_t user);
  bool IsImporting(uint32_t frame) { return Find(frame).import; }
  LoaderFile FileOf(uint32_t frame) { return Find(frame).loader; }
  // The innermost outside of PyTorch and the standard library, or the innermost.
  uint32_t WrittenFrame(const std::vector<uint32_t>& frames);

  // How many frames there are without those of a node's forward line.
  size_t BeforeForward(const std::vector<uint32_t>& frames);

  void FillSite(uint32_t frame, lull::v1::Site* site);
  void FillStack(uint32_t stack,
                 google::protobuf::RepeatedPtrField<lull::v1::Frame>* frames);

  const absl::Status& status() const { return status_; }

 private:
  enum class Owner : uint8_t { kUser, kPackage, kInfrastructure };
  struct Known {
    aggregate::Frame frame;
    uint32_t function = 0;
    Owner owner = Owner::kUser;
    bool import = false;  // of importlib, as the interpreter has it
    LoaderFile loader = LoaderFile::kNone;
  };
  absl::Status Read();
  void Load();
  const Known& Find(uint32_t frame);
  uint32_t First(const std::vector<uint32_t>& frames, size_t count, Owner at_most);

  storage::StoreReader& reader_;
  const int64_t job_;
  bool loaded_ = false;
  absl::Status status_;
  absl::flat_hash_map<uint32_t, Known> frames_;
  absl::flat_hash_map<uint32_t, std::vector<uint32_t>> stacks_;
};

}  // namespace lull::query
