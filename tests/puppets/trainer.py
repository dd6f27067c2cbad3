"""The training of trainer.cu in Python: ctypes instead of a framework.

Usage: trainer.py [12|13] [SLEEP_MS]   which libcudart (default 13), and how long a
data loader pretends to work in each step. Any CPython from 3.8; needs the simulated
runtime, because its kernels have no code.
"""

import ctypes
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from expected import expected  # noqa: E402

E = expected()
HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2


class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


def check(error):
    if error != 0:
        raise RuntimeError("CUDA error %d" % error)


class Kernel(object):
    """A kernel registered as nvcc's start-up code does it."""

    def __init__(self, runtime, name):
        self.runtime = runtime
        self.stub = ctypes.create_string_buffer(16)
        self.image = ctypes.create_string_buffer(16)
        register = runtime["__cudaRegisterFatBinary"]
        register.restype = ctypes.c_void_p
        binary = ctypes.c_void_p(register(self.image))
        none = ctypes.c_void_p()
        runtime["__cudaRegisterFunction"](
            binary, self.stub, none, name, -1, none, none, none, none, none
        )
        runtime["__cudaRegisterFatBinaryEnd"](binary)

    def launch(self, stream):
        launch = self.runtime.cudaLaunchKernel
        check(launch(self.stub, Dim3(64, 1, 1), Dim3(256, 1, 1), None, ctypes.c_size_t(0), stream))  # SITE: launch


class Trainer(object):
    def __init__(self, runtime):
        self.cuda = runtime
        self.forward_kernel = Kernel(runtime, b"forward_kernel")
        self.backward_kernel = Kernel(runtime, b"backward_kernel")
        self.optimizer_kernel = Kernel(runtime, b"optimizer_kernel")
        self.model = self.malloc(E["kWorkspaceBytes"])
        self.batch = self.malloc(E["kBatchBytes"])
        self.pinned = ctypes.c_void_p()
        check(runtime.cudaMallocHost(ctypes.byref(self.pinned), ctypes.c_size_t(E["kBatchBytes"])))
        self.pageable = ctypes.create_string_buffer(E["kBatchBytes"])
        self.stream = ctypes.c_void_p()
        self.begin, self.end = ctypes.c_void_p(), ctypes.c_void_p()
        check(runtime.cudaStreamCreate(ctypes.byref(self.stream)))
        check(runtime.cudaEventCreate(ctypes.byref(self.begin)))
        check(runtime.cudaEventCreate(ctypes.byref(self.end)))
        self.memset(self.model, E["kWorkspaceBytes"])

    def malloc(self, size):
        pointer = ctypes.c_void_p()
        check(self.cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)))  # SITE: malloc
        return pointer

    def memset(self, pointer, size):
        check(self.cuda.cudaMemsetAsync(pointer, 0, ctypes.c_size_t(size), self.stream))

    def load_batch(self, pause):
        if pause:
            time.sleep(pause)  # SITE: data_wait
        size = ctypes.c_size_t(E["kBatchBytes"])
        check(self.cuda.cudaMemcpyAsync(self.batch, self.pageable, size, HOST_TO_DEVICE, self.stream))  # SITE: pageable_upload
        check(self.cuda.cudaMemcpyAsync(self.batch, self.pinned, size, HOST_TO_DEVICE, self.stream))  # SITE: pinned_upload

    def forward(self):
        for _ in range(E["kForwardKernels"]):
            self.forward_kernel.launch(self.stream)  # SITE: forward

    def backward(self):
        for _ in range(E["kBackwardKernels"]):
            self.backward_kernel.launch(self.stream)  # SITE: backward

    def optimizer_step(self):
        for _ in range(E["kOptimizerKernels"]):
            self.optimizer_kernel.launch(self.stream)  # SITE: optimizer

    def loss_item(self):
        loss = ctypes.c_float(-1)
        check(self.cuda.cudaMemcpyAsync(ctypes.byref(loss), self.model, ctypes.c_size_t(4), DEVICE_TO_HOST, self.stream))  # SITE: loss_copy
        check(self.cuda.cudaStreamSynchronize(self.stream))  # SITE: loss_sync
        return loss.value

    def use_workspace(self):
        workspace = self.malloc(E["kWorkspaceBytes"])  # SITE: workspace_malloc
        self.memset(workspace, E["kWorkspaceBytes"])
        check(self.cuda.cudaFree(workspace))  # SITE: workspace_free

    def log_metrics(self):
        check(self.cuda.cudaDeviceSynchronize())  # SITE: device_sync

    def train_step(self, step, pause):
        self.load_batch(pause)
        self.forward()
        self.backward()
        self.optimizer_step()
        if step % E["kAllocationPeriod"] == 0:
            self.use_workspace()
        loss = self.loss_item()
        if step % E["kDeviceSyncPeriod"] == 0:
            self.log_metrics()
        return loss

    def train(self, pause):
        loss = 0.0
        for step in range(E["kSteps"]):
            last = step + 1 == E["kSteps"]
            if last:
                check(self.cuda.cudaEventRecord(self.begin, self.stream))
            loss = self.train_step(step, pause)
            if last:
                check(self.cuda.cudaEventRecord(self.end, self.stream))
        check(self.cuda.cudaEventSynchronize(self.end))  # SITE: event_sync
        check(self.cuda.cudaDeviceSynchronize())  # SITE: last_sync
        return loss

    def tear_down(self):
        check(self.cuda.cudaEventDestroy(self.begin))
        check(self.cuda.cudaEventDestroy(self.end))
        check(self.cuda.cudaStreamDestroy(self.stream))
        check(self.cuda.cudaFreeHost(self.pinned))
        check(self.cuda.cudaFree(self.batch))
        check(self.cuda.cudaFree(self.model))


def main():
    major = sys.argv[1] if len(sys.argv) > 1 else "13"
    pause = float(sys.argv[2]) / 1000 if len(sys.argv) > 2 else 0.0
    trainer = Trainer(ctypes.CDLL("libcudart.so." + major))
    print("loss %.1f" % trainer.train(pause))
    trainer.tear_down()


if __name__ == "__main__":
    main()
