// What a thread that loads was at, told by its stack.
#pragma once

#include <cstddef>
#include <cstdint>
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

// Of a thread of a DataLoader worker. By files of PyTorch and the standard library; of
// functions only by those of multiprocessing's queue: get, put and _feed, in which a
// thread of the queue's own pickles what put was given.
LoaderAt AtInWorker(Stacks& stacks, const std::vector<uint32_t>& frames);
// Of a thread that trains: within __next__ of a loader without workers. Where a loader
// may have some (`others_load`), only what lies below fetch is known to be that.
LoaderAt AtInTraining(Stacks& stacks, const std::vector<uint32_t>& frames,
                      bool others_load);

}  // namespace lull::query
