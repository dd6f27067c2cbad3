// Descriptors of the graph API: bags of attributes. Nothing is checked; what is set
// can be asked for again, and an attribute that was not set has no elements.
//
// A descriptor that is set as an attribute of another stays alive in it: programs
// destroy theirs as soon as the plan is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace lull::sim {

struct Bag;
using BagPtr = std::shared_ptr<Bag>;

struct Attribute {
  int64_t count = 0;
  std::vector<char> bytes;   // of any other type
  std::vector<BagPtr> bags;  // of the type "descriptor"
};

struct Bag {
  int kind = 0;  // cudnnBackendDescriptorType_t
  std::map<int, Attribute> attributes;

  // The first descriptor under `name`, or null.
  const Bag* child(int name) const;
  std::vector<int64_t> integers(int name) const;
  int number(int name, int otherwise) const;
};

// cudnnBackendDescriptor_t.
struct Descriptor {
  BagPtr bag;
};

// The names that are looked at (cudnnBackendAttributeName_t).
enum : int {
  kHeuristicsGraph = 201,
  kHeuristicsResults = 202,
  kConfigEngine = 300,
  kPlanConfig = 401,
  kPlanWorkspaceSize = 402,
  kForwardW = 703,
  kForwardX = 704,
  kForwardY = 705,
  kDataW = 709,
  kDataDx = 710,
  kDataDy = 711,
  kFilterDw = 715,
  kFilterX = 716,
  kFilterDy = 717,
  kGraphOperations = 801,
  kTensorType = 901,
  kTensorDimensions = 902,
  kEngineGraph = 1300,
};

}  // namespace lull::sim
