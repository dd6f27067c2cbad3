"""Programs whose memory grows by a known amount in each step: memory.py device|tensors.

`device` allocates from the simulated device (memory_gib=1) and then runs it out of
memory as PyTorch's caching allocator does; `tensors` keeps CPU tensors in a list. The
first of the KEPT steps only begins the steps: step k ends with k + 2 blocks kept.
"""

import ctypes
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import nvtx  # noqa: E402

MIB = 1 << 20
STEPS = 81
KEPT = 2 * MIB  # by each step, for good
SCRATCH = 16 * MIB  # by each step, until it ends
SEGMENT, LARGE = 512 * MIB, 600 * MIB  # do not fit beside each other
HANDED_OUT = 100 * MIB  # of the segment
CUDA_0 = 1  # c10::Device(CUDA, 0), as it lies in a register


def step_by_step(work):
    ranges = nvtx.Ranges()
    for _ in range(STEPS):
        ranges.push(b"step")
        work()
        ranges.pop()


class Device(object):
    def __init__(self):
        self.cuda = ctypes.CDLL("libcudart.so.12")
        self.kept = []

    def malloc(self, size):
        pointer = ctypes.c_void_p()
        error = self.cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size))  # SITE: malloc
        return None if error else pointer

    def free(self, pointer):
        if self.cuda.cudaFree(pointer) != 0:
            raise RuntimeError("cudaFree failed")

    def step(self):
        scratch = ctypes.c_void_p()
        self.cuda.cudaMalloc(ctypes.byref(scratch), ctypes.c_size_t(SCRATCH))  # SITE: scratch
        kept = ctypes.c_void_p()
        self.cuda.cudaMalloc(ctypes.byref(kept), ctypes.c_size_t(KEPT))  # SITE: kept
        self.kept.append(kept)
        self.free(scratch)


def report(block, size, allocated, reserved):
    """What PyTorch's allocator says of a block; nobody listens without lull."""
    listener = getattr(ctypes.CDLL(None),
                       "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE", None)
    if listener is not None:
        listener(ctypes.c_void_p(block), ctypes.c_int64(size), ctypes.c_size_t(allocated),
                 ctypes.c_size_t(reserved), ctypes.c_uint16(CUDA_0))


def run_out_of_memory(device):
    segment = device.malloc(SEGMENT)
    report(segment.value, HANDED_OUT, HANDED_OUT, SEGMENT)  # SITE: block
    report(segment.value, -HANDED_OUT, 0, SEGMENT)
    if device.malloc(LARGE) is not None:
        raise RuntimeError("there was room")
    device.free(segment)
    large = device.malloc(LARGE)
    report(large.value, HANDED_OUT // 2, HANDED_OUT // 2, LARGE)


def tensors():
    import torch

    kept = []

    def step():
        scratch = torch.empty(SCRATCH, dtype=torch.uint8)  # SITE: scratch_tensor
        kept.append(torch.empty(KEPT, dtype=torch.uint8))  # SITE: kept_tensor
        del scratch

    step_by_step(step)


def main():
    if sys.argv[1] == "tensors":
        return tensors()
    device = Device()
    step_by_step(device.step)
    run_out_of_memory(device)


if __name__ == "__main__":
    main()
