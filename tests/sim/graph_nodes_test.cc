// Graphs that are built node by node, and the driver's linker.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "tests/sim/driver/api.h"
#include "tests/sim/driver_fixture.h"

namespace lull::sim {
namespace {

// CUgraphNodeParams.
struct Node {
  int type;
  int reserved[3] = {};
  std::array<unsigned char, 240> bytes = {};

  explicit Node(int node_type) : type(node_type) {}
  template <typename Value>
  void put(size_t at, Value value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
};
static_assert(sizeof(Node) == 256);

class GraphNodes : public DriverTest {
 protected:
  GraphNodes() {
    find("cuGraphAddNode_v2", &add_);
    find("cuGraphExecNodeSetParams", &change_);
    find("cuGraphExecKernelNodeSetParams_v2", &change_kernel_);
    EXPECT_EQ(
        cu.cuLibraryLoadData(&library_, "", nullptr, nullptr, 0, nullptr, nullptr, 0),
        0);
  }

  template <typename Function>
  static void find(const char* name, Function* out) {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    *out = reinterpret_cast<Function>(dlsym(library, name));
    ASSERT_NE(*out, nullptr) << name;
  }

  Node kernel(unsigned blocks, unsigned threads = 32) {
    void* function = nullptr;
    EXPECT_EQ(cu.cuLibraryGetKernel(&function, library_, "node_kernel"), 0);
    Node node(0);
    node.put(0, function);
    const unsigned shape[] = {blocks, 1, 1, threads, 1, 1};
    std::memcpy(node.bytes.data() + 8, shape, sizeof shape);
    return node;
  }
  void* graph() {
    void* made = nullptr;
    EXPECT_EQ(cu.cuGraphCreate(&made, 0), 0);
    return made;
  }
  void* add(void* graph, Node node, std::vector<void*> after = {}) {
    void* made = nullptr;
    EXPECT_EQ(add_(&made, graph, after.data(), nullptr, after.size(), &node), 0);
    return made;
  }
  void* instantiate(void* graph) {
    void* exec = nullptr;
    EXPECT_EQ(cu.cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    return exec;
  }
  std::vector<uint32_t> blocks_of_kernels() {
    std::vector<uint32_t> all;
    for (const TruthRecord& record : kernels()) all.push_back(record.grid);
    return all;
  }

  int (*add_)(void**, void*, void* const*, const void*, size_t, Node*) = nullptr;
  int (*change_)(void*, void*, Node*) = nullptr;
  int (*change_kernel_)(void*, void*, const void*) = nullptr;
  void* library_ = nullptr;
};

TEST_F(GraphNodes, RunInTheOrderOfTheirDependencies) {
  void *g = graph(), *s = stream();
  void* first = add(g, kernel(1));
  void* left = add(g, kernel(2), {first});
  void* right = add(g, kernel(3), {first});
  add(g, kernel(4), {left, right});
  int (*roots)(void*, void**, size_t*) = nullptr;
  find("cuGraphGetRootNodes", &roots);
  void* root = nullptr;
  size_t count = 1;
  ASSERT_EQ(roots(g, &root, &count), 0);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(root, first);
  ASSERT_EQ(cu.cuGraphLaunch.legacy(instantiate(g), s), 0);
  auto all = kernels();
  ASSERT_EQ(all.size(), 4u);
  std::ranges::sort(all, {}, &TruthRecord::grid);
  EXPECT_EQ(all[1].start_ns, all[0].end_ns);
  EXPECT_EQ(all[2].start_ns, all[0].end_ns);
  EXPECT_EQ(all[3].start_ns, std::max(all[1].end_ns, all[2].end_ns));
}

TEST_F(GraphNodes, OfAnExecutableGraphCanBeChanged) {
  void *g = graph(), *s = stream();
  void* first = add(g, kernel(1));
  void* second = add(g, kernel(2), {first});
  void* exec = instantiate(g);
  Node other = kernel(20);
  ASSERT_EQ(change_(exec, second, &other), 0);
  Node another = kernel(10);
  ASSERT_EQ(change_kernel_(exec, first, another.bytes.data()), 0);
  ASSERT_EQ(cu.cuGraphLaunch.legacy(exec, s), 0);
  EXPECT_EQ(blocks_of_kernels(), (std::vector<uint32_t>{10, 20}));
  ASSERT_EQ(cu.cuGraphLaunch.legacy(instantiate(g), s), 0);
  EXPECT_EQ(blocks_of_kernels(), (std::vector<uint32_t>{10, 20, 1, 2}));
}

TEST_F(GraphNodes, OfAGraphWithinAGraphRunBetweenThoseAroundIt) {
  void *inner = graph(), *outer = graph(), *s = stream();
  void* of_inner = add(inner, kernel(2));
  add(inner, kernel(3), {of_inner});
  void* before = add(outer, kernel(1));
  int (*add_child)(void**, void*, void* const*, size_t, void*) = nullptr;
  find("cuGraphAddChildGraphNode", &add_child);
  void* within = nullptr;
  ASSERT_EQ(add_child(&within, outer, &before, 1, inner), 0);
  add(outer, kernel(4), {within});
  void* exec = instantiate(outer);
  ASSERT_EQ(cu.cuGraphLaunch.legacy(exec, s), 0);
  auto all = kernels();
  EXPECT_EQ(blocks_of_kernels(), (std::vector<uint32_t>{1, 2, 3, 4}));
  for (size_t i = 1; i < all.size(); ++i) EXPECT_EQ(all[i].start_ns, all[i - 1].end_ns);

  void* other = graph();
  add(other, kernel(20), {});
  Node changed(4);
  changed.put(0, other);
  EXPECT_EQ(change_(exec, within, &changed), 1) << "another number of nodes";
  add(other, kernel(30), {});
  ASSERT_EQ(change_(exec, within, &changed), 0);
  ASSERT_EQ(cu.cuGraphLaunch.legacy(exec, s), 0);
  EXPECT_EQ(blocks_of_kernels(), (std::vector<uint32_t>{1, 2, 3, 4, 1, 20, 30, 4}));
}

TEST_F(GraphNodes, CanBeCapturedIntoAGraphThatIsThere) {
  int (*capture)(void*, void*, void* const*, const void*, size_t, int) = nullptr;
  find("cuStreamBeginCaptureToGraph", &capture);
  void *g = graph(), *s = stream(), *ended = nullptr;
  void* first = add(g, kernel(5));
  ASSERT_EQ(capture(s, g, &first, nullptr, 1, 0), 0);
  ASSERT_EQ(launch(s, kMillisecond), 0);
  ASSERT_EQ(cu.cuStreamEndCapture.legacy(s, &ended), 0);
  EXPECT_EQ(ended, g);
  ASSERT_EQ(cu.cuGraphLaunch.legacy(instantiate(g), s), 0);
  auto all = kernels();
  EXPECT_EQ(blocks_of_kernels(), (std::vector<uint32_t>{5, 1}));
  EXPECT_EQ(all[1].start_ns, all[0].end_ns);
  EXPECT_EQ(capture(s, nullptr, nullptr, nullptr, 0, 0), 1);
}

TEST_F(GraphNodes, MoveAndSetBytes) {
  void *g = graph(), *s = stream();
  uint64_t device = device_memory(4096);
  auto* host = static_cast<unsigned char*>(pinned_memory(4096));
  Node set(2);
  set.put(0, device);
  set.put(16, 7u);  // the value, the size of an element, width and height
  set.put(20, 1u);
  set.put(24, uint64_t{100});
  set.put(32, uint64_t{1});
  void* filled = add(g, set);
  Copy3d copy = {};
  copy.src_type = 2;
  copy.src_device = device;
  copy.dst_type = 1;
  copy.dst_host = host;
  copy.width = 100;
  copy.height = copy.depth = 1;
  Node read(1);
  read.put(16, copy);
  add(g, read, {filled});
  ASSERT_EQ(cu.cuGraphLaunch.legacy(instantiate(g), s), 0);
  ASSERT_EQ(cu.cuStreamSynchronize.legacy(s), 0);
  EXPECT_EQ(host[99], 7);
  std::vector<uint16_t> kinds;
  for (const TruthRecord& record : ops()) kinds.push_back(record.kind);
  EXPECT_EQ(std::ranges::count(kinds, uint16_t{2}), 1) << "copies";
  EXPECT_EQ(std::ranges::count(kinds, uint16_t{3}), 1) << "memsets";
}

TEST_F(GraphNodes, AreRefusedWhereTheyMakeNoSense) {
  void *g = graph(), *made = nullptr;
  Node wide = kernel(1, 2048);
  EXPECT_EQ(add_(&made, g, nullptr, nullptr, 0, &wide), 1);
  Node conditional(13);
  EXPECT_EQ(add_(&made, g, nullptr, nullptr, 0, &conditional), 801);
  Node itself(4);
  itself.put(0, g);
  EXPECT_EQ(add_(&made, g, nullptr, nullptr, 0, &itself), 400);
}

TEST_F(GraphNodes, TheLinkerHandsBackWhatCameFirst) {
  int (*create)(unsigned, void*, void*, void**) = nullptr;
  int (*add_data)(void*, int, void*, size_t, const char*, unsigned, void*, void*) =
      nullptr;
  int (*complete)(void*, void**, size_t*) = nullptr;
  int (*destroy)(void*) = nullptr;
  find("cuLinkCreate_v2", &create);
  find("cuLinkAddData_v2", &add_data);
  find("cuLinkComplete", &complete);
  find("cuLinkDestroy", &destroy);
  void *state = nullptr, *image = nullptr;
  size_t size = 0;
  char first[] = "image", second[] = "library";
  ASSERT_EQ(create(0, nullptr, nullptr, &state), 0);
  ASSERT_EQ(add_data(state, 0, first, sizeof first, "a", 0, nullptr, nullptr), 0);
  ASSERT_EQ(add_data(state, 0, second, sizeof second, "b", 0, nullptr, nullptr), 0);
  ASSERT_EQ(complete(state, &image, &size), 0);
  EXPECT_EQ(std::string(static_cast<char*>(image), size),
            std::string(first, sizeof first));
  EXPECT_EQ(destroy(state), 0);
  EXPECT_EQ(destroy(state), 400);
}

}  // namespace
}  // namespace lull::sim
