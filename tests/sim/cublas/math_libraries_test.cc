// The stand-ins for cuBLAS and cuDNN, opened and called as PyTorch does.
#include <dlfcn.h>

#include "tests/sim/driver_fixture.h"

namespace lull::sim {
namespace {

constexpr int64_t kStart = 2 * kMicrosecond;  // of any kernel

class MathLibraries : public DriverTest {
 protected:
  MathLibraries() {
    configure("tflops", "10", "50");
    configure("tensor_tflops", "100", "400");
    configure("d2d_gbps", "1e9", "1500");  // nothing is bound by memory
  }

  // A function of the library with the file name `file`.
  template <typename Function>
  Function* find(const char* file, const char* name) {
    void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
    auto* function = reinterpret_cast<Function*>(dlsym(library, name));
    EXPECT_NE(function, nullptr) << name;
    return function;
  }

  int64_t only_kernel_ns() {
    auto launched = kernels();
    EXPECT_EQ(launched.size(), 1u);
    return launched.empty() ? 0 : launched[0].end_ns - launched[0].start_ns;
  }
};

using Sgemm = int(void*, int, int, int, int, int, const void*, const void*, int,
                  const void*, int, const void*, void*, int);

TEST_F(MathLibraries, MultiplyOnTheStreamOfTheHandleInTheTimeThatItTakes) {
  constexpr char kFile[] = "libcublas.so.12";
  void* handle = nullptr;
  ASSERT_EQ(find<int(void**)>(kFile, "cublasCreate_v2")(&handle), 0);
  void* mine = stream();
  ASSERT_EQ(find<int(void*, void*)>(kFile, "cublasSetStream_v2")(handle, mine), 0);
  auto* gemm = find<Sgemm>(kFile, "cublasSgemm_v2");
  ASSERT_EQ(gemm(handle, 0, 1, 1000, 1000, 500, nullptr, nullptr, 1000, nullptr, 1000,
                 nullptr, nullptr, 1000),
            0);
  EXPECT_EQ(only_kernel_ns(), kStart + 100 * kMicrosecond);  // 1e9 operations
  ASSERT_EQ(cu.cuStreamSynchronize.legacy(mine), 0);
  EXPECT_EQ(find<int(void*)>(kFile, "cublasDestroy_v2")(handle), 0);
}

TEST_F(MathLibraries, RefuseWhatIsNotSimulated) {
  EXPECT_EQ(find<int()>("libcublas.so.12", "cublasStrsm_v2")(), 15);
  EXPECT_EQ(find<int()>("libcudnn.so.9", "cudnnCTCLoss")(), 3000);
}

// cublasLt: C (64 x 32) = A^T (16 x 64) B (16 x 32), in half precision.
TEST_F(MathLibraries, MultiplyByDescriptors) {
  constexpr char kFile[] = "libcublasLt.so.12";
  using LayoutCreate = int(void**, int, uint64_t, uint64_t, int64_t);
  using SetAttribute = int(void*, int, const void*, size_t);
  using Matmul = int(void*, void*, const void*, const void*, void*, const void*, void*,
                     const void*, const void*, void*, void*, void*, const void*, void*,
                     size_t, void*);
  void *operation = nullptr, *a = nullptr, *b = nullptr, *d = nullptr;
  ASSERT_EQ(
      find<int(void**, int, int)>(kFile, "cublasLtMatmulDescCreate")(&operation, 68, 0),
      0);
  int transpose = 1;
  ASSERT_EQ(find<SetAttribute>(kFile, "cublasLtMatmulDescSetAttribute")(
                operation, 3, &transpose, sizeof transpose),
            0);
  auto* layout = find<LayoutCreate>(kFile, "cublasLtMatrixLayoutCreate");
  constexpr int kHalf = 2;
  ASSERT_EQ(layout(&a, kHalf, 16000, 640, 16000), 0);
  ASSERT_EQ(layout(&b, kHalf, 16000, 320, 16000), 0);
  ASSERT_EQ(layout(&d, kHalf, 640, 320, 640), 0);
  ASSERT_EQ(find<Matmul>(kFile, "cublasLtMatmul")(
                nullptr, operation, nullptr, nullptr, a, nullptr, b, nullptr, nullptr,
                d, nullptr, d, nullptr, nullptr, 0, stream()),
            0);
  EXPECT_EQ(only_kernel_ns(), kStart + 65'536);  // 2 * 640 * 320 * 16000 at 1e14
  EXPECT_EQ(find<int(void*)>(kFile, "cublasLtMatmulDescDestroy")(operation), 0);
  auto* destroy = find<int(void*)>(kFile, "cublasLtMatrixLayoutDestroy");
  for (void* each : {a, b, d}) EXPECT_EQ(destroy(each), 0);
}

// cuDNN's graph API, with the descriptors gone before the plan is executed.
TEST_F(MathLibraries, ConvolveByAPlanOfTheGraphApi) {
  constexpr char kFile[] = "libcudnn.so.9";
  enum { kConfig = 3, kHeuristics = 4, kPlan = 5, kForward = 10, kGraph = 15 };
  enum { kVariants = 16, kTensor = 17 };
  constexpr int kInt64 = 3, kDescriptor = 15;
  auto* create = find<int(int, void**)>(kFile, "cudnnBackendCreateDescriptor");
  auto* destroy = find<int(void*)>(kFile, "cudnnBackendDestroyDescriptor");
  using Set = int(void*, int, int, int64_t, const void*);
  auto* set = find<Set>(kFile, "cudnnBackendSetAttribute");
  using Get = int(void*, int, int, int64_t, int64_t*, void*);
  auto* get = find<Get>(kFile, "cudnnBackendGetAttribute");
  std::vector<void*> made;
  auto descriptor = [&](int kind) {
    void* out = nullptr;
    EXPECT_EQ(create(kind, &out), 0);
    made.push_back(out);
    return out;
  };
  auto link = [&](void* from, int name, void* to) {
    EXPECT_EQ(set(from, name, kDescriptor, 1, &to), 0);
  };
  auto tensor = [&](std::vector<int64_t> extents) {
    void* out = descriptor(kTensor);
    EXPECT_EQ(
        set(out, 902, kInt64, static_cast<int64_t>(extents.size()), extents.data()), 0);
    return out;
  };
  void* operation = descriptor(kForward);
  link(operation, 703, tensor({64, 32, 3, 3}));   // filter
  link(operation, 704, tensor({8, 32, 34, 34}));  // input
  link(operation, 705, tensor({8, 64, 32, 32}));  // output
  void* graph = descriptor(kGraph);
  link(graph, 801, operation);
  void* heuristics = descriptor(kHeuristics);
  link(heuristics, 201, graph);
  void* config = descriptor(kConfig);
  int64_t count = 0;
  ASSERT_EQ(get(heuristics, 202, kDescriptor, 1, &count, &config), 0);
  ASSERT_EQ(count, 1);
  void *plan = nullptr, *variants = nullptr, *handle = nullptr;
  ASSERT_EQ(create(kPlan, &plan), 0);
  ASSERT_EQ(create(kVariants, &variants), 0);
  link(plan, 401, config);
  for (void* each : made) destroy(each);

  ASSERT_EQ(find<int(void**)>(kFile, "cudnnCreate")(&handle), 0);
  auto* execute = find<int(void*, void*, void*)>(kFile, "cudnnBackendExecute");
  ASSERT_EQ(execute(handle, plan, variants), 0);
  // Each of 8 * 64 * 32 * 32 outputs sums 32 * 3 * 3 products, on tensor cores.
  EXPECT_EQ(only_kernel_ns(), kStart + 3'020);
  destroy(plan);
  destroy(variants);
  EXPECT_EQ(find<int(void*)>(kFile, "cudnnDestroy")(handle), 0);
}

}  // namespace
}  // namespace lull::sim
