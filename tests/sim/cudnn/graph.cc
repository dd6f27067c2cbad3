// The graph API (cudnnBackend*), which is how PyTorch runs convolutions: descriptors
// are bags, the heuristics know one engine, and executing a plan launches one kernel
// for each operation of its graph.
#include <algorithm>
#include <cstring>

#include "tests/sim/cudnn/api.h"
#include "tests/sim/cudnn/convolution.h"
#include "tests/sim/cudnn/descriptor.h"

using namespace lull::sim;

namespace {

constexpr int kDescriptorType = 15;  // CUDNN_TYPE_BACKEND_DESCRIPTOR

// Size of an element, by cudnnBackendAttributeType_t.
size_t element_size(int type) {
  switch (type) {
    case 0:  // handle
    case 3:  // int64
    case 5:  // double
    case 6:  // pointer
      return 8;
    case 2:   // boolean
    case 24:  // character
      return 1;
    case 26:  // fraction
      return 16;
    default:  // enumerations, float, int32
      return 4;
  }
}

Descriptor* as_descriptor(void* descriptor) {
  return static_cast<Descriptor*>(descriptor);
}

// What a plan executes: by way of its configuration, which came from the heuristics
// or names an engine.
const Bag* graph_of(const Bag& plan) {
  const Bag* config = plan.child(kPlanConfig);
  if (config == nullptr) return nullptr;
  if (const Bag* graph = config->child(kEngineGraph)) return graph;
  const Bag* engine = config->child(kConfigEngine);
  return engine != nullptr ? engine->child(kEngineGraph) : nullptr;
}

void get_descriptors(const Attribute& attribute, int64_t requested, void* const* out) {
  for (int64_t i = 0; i < requested && i < attribute.count; ++i) {
    if (out[i] != nullptr) {
      as_descriptor(out[i])->bag = attribute.bags[static_cast<size_t>(i)];
    }
  }
}

// Attributes that are computed, not set. False for all others.
bool computed(const Bag& bag, int name, int64_t requested, int64_t* count, void* out) {
  if (name == kPlanWorkspaceSize) {
    *count = 1;
    if (requested > 0) std::memset(out, 0, sizeof(int64_t));
    return true;
  }
  if (name == kHeuristicsResults) {
    *count = 1;
    auto graph = bag.attributes.find(kHeuristicsGraph);
    if (requested > 0 && graph != bag.attributes.end()) {
      as_descriptor(*static_cast<void**>(out))->bag->attributes[kEngineGraph] =
          graph->second;
    }
    return true;
  }
  return false;
}

}  // namespace

namespace lull::sim {

const Bag* Bag::child(int name) const {
  auto it = attributes.find(name);
  return it == attributes.end() || it->second.bags.empty() ? nullptr
                                                           : it->second.bags[0].get();
}

std::vector<int64_t> Bag::integers(int name) const {
  auto it = attributes.find(name);
  if (it == attributes.end()) return {};
  std::vector<int64_t> values(it->second.bytes.size() / sizeof(int64_t));
  std::memcpy(values.data(), it->second.bytes.data(), values.size() * sizeof(int64_t));
  return values;
}

int Bag::number(int name, int otherwise) const {
  auto it = attributes.find(name);
  if (it == attributes.end() || it->second.bytes.size() < sizeof(int)) return otherwise;
  int value;
  std::memcpy(&value, it->second.bytes.data(), sizeof value);
  return value;
}

}  // namespace lull::sim

SIM_EXPORT int cudnnBackendCreateDescriptor(int kind, void** out) {
  if (out == nullptr) return kCudnnBadParam;
  auto bag = std::make_shared<Bag>();
  bag->kind = kind;
  *out = new Descriptor{std::move(bag)};
  return kCudnnSuccess;
}
SIM_EXPORT int cudnnBackendDestroyDescriptor(void* descriptor) {
  delete as_descriptor(descriptor);
  return kCudnnSuccess;
}
SIM_EXPORT int cudnnBackendFinalize(void* descriptor) {
  return descriptor != nullptr ? kCudnnSuccess : kCudnnBadParam;
}

SIM_EXPORT int cudnnBackendSetAttribute(void* descriptor, int name, int type,
                                        int64_t count, const void* elements) {
  if (descriptor == nullptr || count < 0 || (count > 0 && elements == nullptr)) {
    return kCudnnBadParam;
  }
  Attribute attribute;
  attribute.count = count;
  if (type == kDescriptorType) {
    auto* const* named = static_cast<void* const*>(elements);
    for (int64_t i = 0; i < count; ++i) {
      if (named[i] == nullptr) return kCudnnBadParam;
      attribute.bags.push_back(as_descriptor(named[i])->bag);
    }
  } else {
    const char* bytes = static_cast<const char*>(elements);
    attribute.bytes.assign(bytes,
                           bytes + static_cast<size_t>(count) * element_size(type));
  }
  as_descriptor(descriptor)->bag->attributes[name] = std::move(attribute);
  return kCudnnSuccess;
}

SIM_EXPORT int cudnnBackendGetAttribute(void* descriptor, int name, int type,
                                        int64_t requested, int64_t* count, void* out) {
  if (descriptor == nullptr) return kCudnnBadParam;
  const Bag& bag = *as_descriptor(descriptor)->bag;
  int64_t unused;
  if (count == nullptr) count = &unused;
  if (computed(bag, name, requested, count, out)) return kCudnnSuccess;
  auto it = bag.attributes.find(name);
  *count = it != bag.attributes.end() ? it->second.count : 0;
  if (*count == 0 || requested <= 0 || out == nullptr) return kCudnnSuccess;
  if (type == kDescriptorType) {
    get_descriptors(it->second, requested, static_cast<void**>(out));
  } else {
    size_t wanted = static_cast<size_t>(requested) * element_size(type);
    std::memcpy(out, it->second.bytes.data(),
                std::min(wanted, it->second.bytes.size()));
  }
  return kCudnnSuccess;
}

SIM_EXPORT int cudnnBackendExecute(void* handle, void* plan, void* variants) {
  if (handle == nullptr || plan == nullptr || variants == nullptr) {
    return kCudnnBadParam;
  }
  const Bag* graph = graph_of(*as_descriptor(plan)->bag);
  if (graph == nullptr) return kCudnnBadParam;
  auto operations = graph->attributes.find(kGraphOperations);
  if (operations == graph->attributes.end()) return kCudnnBadParam;
  void* stream = static_cast<CudnnHandle*>(handle)->stream;
  for (const BagPtr& operation : operations->second.bags) {
    if (!launch_operation(*operation, stream)) return kCudnnExecutionFailed;
  }
  return kCudnnSuccess;
}
