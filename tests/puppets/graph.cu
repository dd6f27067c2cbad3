// Captures a small step into a graph and replays it. The graph's copy brings back
// what its memset wrote. With a number: replays it so often more, once a millisecond.
#include <unistd.h>

#include "tests/puppets/cuda.h"
#include "tests/puppets/expected.h"

namespace puppets = lull::puppets;

KERNEL(graph_kernel, {})

int main(int argc, char** argv) {
  constexpr size_t kBytes = 4096;
  float* data = nullptr;
  unsigned char* result = nullptr;
  cudaStream_t stream;
  CHECK(cudaMalloc(&data, kBytes));
  CHECK(cudaMallocHost(&result, kBytes));
  CHECK(cudaStreamCreate(&stream));

  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaMemsetAsync(data, 7, kBytes, stream));
  for (int i = 0; i < puppets::kGraphKernels; ++i) {
    LAUNCH(graph_kernel, 1, 32, stream, data);
  }
  CHECK(cudaMemcpyAsync(result, data, kBytes, cudaMemcpyDeviceToHost, stream));
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  for (int i = 0; i < puppets::kGraphLaunches; ++i)
    CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  for (int more = argc > 1 ? std::atoi(argv[1]) : 0; more > 0; --more) {
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    usleep(1000);
  }

  bool right = result[0] == 7 && result[kBytes - 1] == 7;
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFreeHost(result));
  CHECK(cudaFree(data));
  return right ? 0 : 1;
}
