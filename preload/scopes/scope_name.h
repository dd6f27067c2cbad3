// A scope's name, made fit for a table of regions.
#pragma once

#include <cstddef>

#include "preload/abi/event.h"

namespace lull {

// A longer name is cut at its end.
inline constexpr size_t kMostScopeName = 120;

struct ScopeName {
  const char* text;   // no terminator
  size_t size;        // 1 to kMostScopeName
  bool of_loader;     // __next__ of a torch.utils.data.DataLoader's iterator
  bool of_optimizer;  // step() of a torch.optim.Optimizer
};

// Pure. A number at the end that only counts is cut off, with the space, '#', '=' or
// ':' before it: "step 17" and "ProfilerStep#17" are the same region as the one before.
// What counts is a number behind one of these, or of three digits or more; "layer_3"
// and "block12" keep theirs. `name` may be nullptr.
//
// The loader's is "enumerate(DataLoader)#CLASS.__next__" in PyTorch 1.13 to 2.15
// (torch/utils/data/dataloader.py, _BaseDataLoaderIter.__next__).
// The optimizer's is "Optimizer.step#CLASS.step" (torch/optim/optimizer.py).
ScopeName judge_scope_name(const char* name);

}  // namespace lull
