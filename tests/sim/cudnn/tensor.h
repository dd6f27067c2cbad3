// cudnnTensorDescriptor_t and cudnnFilterDescriptor_t.
#pragma once

#include <vector>

namespace lull::sim {

struct Tensor {
  int type = 0;    // cudnnDataType_t
  int format = 0;  // of a filter
  std::vector<int> extents, strides;

  double bytes() const;
};

}  // namespace lull::sim
