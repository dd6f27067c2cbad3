#include "daemon/aggregate/site.h"

#include <gtest/gtest.h>

namespace lull::aggregate {
namespace {

std::vector<const Frame*> Pointers(const std::vector<Frame>& frames) {
  std::vector<const Frame*> pointers;
  for (const Frame& frame : frames) pointers.push_back(&frame);
  return pointers;
}

std::string SiteOf(const std::vector<Frame>& python, const std::vector<Frame>& native) {
  const Frame* site = SelectSite(Pointers(python), Pointers(native));
  return site == nullptr ? "none" : SiteFunction(*site);
}

TEST(Site, IsTheInnermostFrameOfTheUsersCode) {
  EXPECT_EQ(
      SiteOf({{"backward", "/usr/lib/python3/dist-packages/torch/_tensor.py", 9, ""},
              {"wait", "/usr/lib/python3.11/threading.py", 5, ""},
              {"<module>", "<string>", 1, ""},
              {"train", "/home/u/train.py", 40, ""},
              {"main", "/home/u/main.py", 3, ""}},
             {}),
      "train");
}

TEST(Site, IsTheInnermostFrameWhenAllAreInfrastructure) {
  EXPECT_EQ(SiteOf({{"_load", "<frozen importlib._bootstrap>", 9, ""},
                    {"run", "/usr/lib/python3.11/runpy.py", 5, ""}},
                   {}),
            "_load");
}

TEST(Site, IsNativeOnlyWithoutAPythonStack) {
  std::vector<Frame> native = {{"cudaStreamSynchronize", "", 0, "/opt/libcudart.so.12"},
                               {"__libc_read", "", 0, "/lib/libc.so.6"},
                               {"hook", "", 0, "/opt/lull/lib/liblull.so"},
                               {"step", "train.cu", 12, "/home/u/train"}};
  EXPECT_EQ(SiteOf({}, native), "step");
  EXPECT_EQ(SiteOf({{"f", "a.py", 1, ""}}, native), "f");
  native.pop_back();
  EXPECT_EQ(SiteOf({}, native), "cudaStreamSynchronize");
}

TEST(Site, IsTheNodeOfTheBackwardGraphOnItsThread) {
  const std::string torch = "/opt/torch/lib/libtorch_cpu.so";
  std::vector<Frame> native = {
      {"c10::cuda::CUDACachingAllocator::Native::malloc(void**)", "", 0,
       "/opt/torch/lib/libc10_cuda.so"},
      {"at::_ops::zeros::call(c10::ArrayRef<c10::SymInt>)", "", 0, torch},
      {"torch::autograd::generated::SelectBackward0::apply(std::vector<at::Tensor>&&)",
       "", 0, torch},
      {"torch::autograd::Node::operator()(std::vector<at::Tensor>&&)", "", 0, torch},
      {"torch::autograd::Engine::thread_main(std::shared_ptr<int> const&)", "", 0,
       torch},
      {"execute_native_thread_routine", "", 0, "/usr/lib/libstdc++.so.6"},
      {"start_thread", "", 0, "/lib/libc.so.6"}};
  EXPECT_EQ(SiteOf({}, native), "SelectBackward0");
  EXPECT_EQ(SiteOf({{"f", "a.py", 1, ""}}, native), "f");
  native[2].function = "torch::autograd::AccumulateGrad::apply(std::vector<int>&&)";
  EXPECT_EQ(SiteOf({}, native), "AccumulateGrad");
  native[2].function = "at::native::apply(int)";
  EXPECT_EQ(SiteOf({}, native), native[1].function);
  native.push_back({"step", "train.cc", 12, "/home/u/train"});
  EXPECT_EQ(SiteOf({}, native), "step");
}

TEST(Site, IsWhatPyTorchDoesBetweenTwoNodesOfTheBackwardGraph) {
  const std::string torch = "/opt/torch/lib/libtorch_cpu.so";
  std::vector<Frame> native = {
      {"void at::native::gpu_kernel_impl_nocast<int>(at::TensorIteratorBase&)", "", 0,
       "/opt/torch/lib/libtorch_cuda.so"},
      {"torch::autograd::VariableType::(anonymous namespace)::add__Tensor(int)", "", 0,
       torch},
      {"at::_ops::add__Tensor::call(at::Tensor&)", "", 0, torch},
      {"torch::autograd::accumulate(std::vector<at::Tensor>&, unsigned long)", "", 0,
       torch},
      {"torch::autograd::InputBuffer::add(unsigned long)", "", 0, torch},
      {"torch::autograd::Engine::thread_main(std::shared_ptr<int> const&)", "", 0,
       torch}};
  EXPECT_EQ(SiteOf({}, native), "torch::autograd::accumulate");
  native.erase(native.begin() + 3, native.begin() + 5);
  EXPECT_EQ(SiteOf({}, native), native[0].function);
}

TEST(Site, IsNoneWithoutFrames) { EXPECT_EQ(SiteOf({}, {}), "none"); }

TEST(Site, TellsPythonInfrastructureFromPackagesOfTheUser) {
  for (const char* file :
       {"/usr/lib/python3.11/threading.py", "/opt/conda/lib/python3.10/json/decoder.py",
        "/usr/lib/python311.zip/abc.py", "/opt/lib64/python3.13t/queue.py",
        "/venv/lib/python3.9/site-packages/torch/nn/modules/module.py",
        "/usr/lib/python3/dist-packages/torch/optim/sgd.py",
        "/v/lib/python3.11/site-packages/cupy/_creation/from_data.py",
        "/v/lib/python3.11/site-packages/numba_cuda/numba/cuda/cudadrv/driver.py",
        "/v/lib/python3.11/site-packages/cuda/core/_launcher.py",
        "/v/lib/python3.11/site-packages/jax/_src/interpreters/pxla.py",
        "<frozen runpy>", "<string>"}) {
    EXPECT_TRUE(IsPythonInfrastructure(file)) << file;
  }
  for (const char* file :
       {"/home/u/train.py", "/venv/lib/python3.9/site-packages/transformers/trainer.py",
        "/usr/lib/python3/dist-packages/numpy/core.py", "<stdin>", "",
        "/venv/lib/python3.9/site-packages/torchvision/io.py", "/home/python3/train.py",
        "/home/u/torch/train.py", "/srv/lib/python3", "/home/u/jax/train.py",
        "/v/lib/python3.11/site-packages/jax.py",
        "/v/lib/python3.11/site-packages/optax/_src/update.py"}) {
    EXPECT_FALSE(IsPythonInfrastructure(file)) << file;
  }
}

}  // namespace
}  // namespace lull::aggregate
