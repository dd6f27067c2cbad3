// A training in miniature: what a PyTorch training asks of the runtime, from
// functions with names, at lines that a test can find (SITE).
// A call and its SITE mark stay on one line:
// clang-format off
#include "tests/puppets/cuda.h"
#include "tests/puppets/expected.h"

#include <vector>

namespace puppets = lull::puppets;

#define NOINLINE __attribute__((noinline))

KERNEL(forward_kernel, { data[threadIdx.x] += 1; })
KERNEL(backward_kernel, { data[threadIdx.x] -= 1; })
KERNEL(optimizer_kernel, { data[threadIdx.x] *= 2; })

struct Trainer {
  float* model = nullptr;
  float* batch = nullptr;
  float* pinned = nullptr;
  std::vector<char> pageable = std::vector<char>(puppets::kBatchBytes);
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
};

NOINLINE void set_up(Trainer* t) {
  CHECK(cudaMalloc(&t->model, puppets::kWorkspaceBytes));
  CHECK(cudaMalloc(&t->batch, puppets::kBatchBytes));
  CHECK(cudaMallocHost(&t->pinned, puppets::kBatchBytes));
  CHECK(cudaStreamCreate(&t->stream));
  CHECK(cudaEventCreate(&t->begin));
  CHECK(cudaEventCreate(&t->end));
  CHECK(cudaMemsetAsync(t->model, 0, puppets::kWorkspaceBytes, t->stream));
}

NOINLINE void load_batch(Trainer* t) {
  CHECK(cudaMemcpyAsync(t->batch, t->pageable.data(), puppets::kBatchBytes, cudaMemcpyHostToDevice, t->stream));  // SITE: pageable_upload
  CHECK(cudaMemcpyAsync(t->batch, t->pinned, puppets::kBatchBytes, cudaMemcpyHostToDevice, t->stream));  // SITE: pinned_upload
}

NOINLINE void forward(Trainer* t) {
  for (int i = 0; i < puppets::kForwardKernels; ++i) {
    LAUNCH(forward_kernel, 64, 256, t->stream, t->model);  // SITE: forward
  }
}

NOINLINE void backward(Trainer* t) {
  for (int i = 0; i < puppets::kBackwardKernels; ++i) {
    LAUNCH(backward_kernel, 64, 256, t->stream, t->model);  // SITE: backward
  }
}

NOINLINE void optimizer_step(Trainer* t) {
  LAUNCH(optimizer_kernel, 64, 256, t->stream, t->model);  // SITE: optimizer
}

// loss.item(): a copy of four bytes to pageable memory, then a stream sync.
NOINLINE float loss_item(Trainer* t) {
  float loss = -1;
  CHECK(cudaMemcpyAsync(&loss, t->model, sizeof loss, cudaMemcpyDeviceToHost, t->stream));  // SITE: loss_copy
  CHECK(cudaStreamSynchronize(t->stream));  // SITE: loss_sync
  return loss;
}

NOINLINE void use_workspace(Trainer* t) {
  float* workspace = nullptr;
  CHECK(cudaMalloc(&workspace, puppets::kWorkspaceBytes));  // SITE: workspace_malloc
  CHECK(cudaMemsetAsync(workspace, 0, puppets::kWorkspaceBytes, t->stream));
  CHECK(cudaFree(workspace));  // SITE: workspace_free
}

NOINLINE void log_metrics() {
  CHECK(cudaDeviceSynchronize());  // SITE: device_sync
}

NOINLINE float train_step(Trainer* t, int step) {
  load_batch(t);
  forward(t);
  backward(t);
  optimizer_step(t);
  if (step % puppets::kAllocationPeriod == 0) use_workspace(t);
  float loss = loss_item(t);
  if (step % puppets::kDeviceSyncPeriod == 0) log_metrics();
  return loss;
}

int main() {
  Trainer t;
  set_up(&t);
  float loss = 0;
  for (int step = 0; step < puppets::kSteps; ++step) {
    bool last = step + 1 == puppets::kSteps;
    if (last) CHECK(cudaEventRecord(t.begin, t.stream));
    loss = train_step(&t, step);
    if (last) CHECK(cudaEventRecord(t.end, t.stream));
  }
  CHECK(cudaEventSynchronize(t.end));  // SITE: event_sync
  float milliseconds = 0;
  CHECK(cudaEventElapsedTime(&milliseconds, t.begin, t.end));
  CHECK(cudaDeviceSynchronize());  // SITE: last_sync
  CHECK(cudaGetLastError());
  std::printf("loss %.1f, last step %.3f ms\n", static_cast<double>(loss),
              static_cast<double>(milliseconds));
  CHECK(cudaEventDestroy(t.begin));
  CHECK(cudaEventDestroy(t.end));
  CHECK(cudaStreamDestroy(t.stream));
  CHECK(cudaFreeHost(t.pinned));
  CHECK(cudaFree(t.batch));
  CHECK(cudaFree(t.model));
  return 0;
}
