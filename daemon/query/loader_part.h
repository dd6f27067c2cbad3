// What a thread that loads was doing, by its stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/query/stacks.h"

namespace lull::query {

// The first four are values of lull.v1.LoaderPart.
enum class LoaderWork : uint8_t {
  kDataSet = 0,
  kCollate = 1,
  kTransfer = 2,
  kOther = 3,
  kWaiting = 4,  // for an order, or for a batch to hand over
  kNone = 5,     // it does not load
};
inline constexpr size_t kLoaderParts = 4;

struct LoaderAt {
  LoaderWork work = LoaderWork::kNone;
  size_t below = 0;  // so many of the innermost frames are what the loader called
};

// For a thread of a DataLoader worker. Files of PyTorch and the standard library
// decide; the only functions that count are those of multiprocessing's queue: get, put
// and _feed, in which a thread of the queue pickles what put was given.
LoaderAt AtInWorker(Stacks& stacks, const std::vector<uint32_t>& frames);
// For a thread that trains: within __next__ of a loader without workers. Where a loader
// may have workers (`others_load`), only frames below fetch are surely that.
LoaderAt AtInTraining(Stacks& stacks, const std::vector<uint32_t>& frames,
                      bool others_load);

// "_MultiProcessingDataLoaderIter" of the scope that is its __next__.
std::string LoaderClass(const std::vector<std::string>& scope_path);

}  // namespace lull::query
