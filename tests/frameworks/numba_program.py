"""A few steps on Numba's CUDA target: kernels on two streams, copies in both directions from
pageable and pinned memory, and the ways to wait that programs use."""

import os
import time
import warnings

import numpy as np
from numba import cuda
from numba.core.errors import NumbaPerformanceWarning

PAUSE_S = float(os.environ.get("PAUSE_S", "0"))
STEPS = 5
SIZE = 1 << 16

warnings.simplefilter("ignore", NumbaPerformanceWarning)


@cuda.jit
def axpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] += a * x[i]


@cuda.jit
def square(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= x[i]


def step(batch, pinned, total, stream):
    x = cuda.to_device(batch)  # SITE: upload
    axpy[SIZE // 256, 256](2.0, x, total)  # SITE: axpy
    y = cuda.to_device(pinned, stream=stream)  # SITE: pinned upload
    square[SIZE // 256, 256, stream](y)  # SITE: square
    done = cuda.event()
    done.record(stream)
    done.synchronize()  # SITE: event
    y.copy_to_host(pinned, stream=stream)  # SITE: pinned download
    stream.synchronize()  # SITE: stream
    return total.copy_to_host()  # SITE: download


def main():
    total = cuda.device_array(SIZE, np.float32)  # SITE: total
    pinned = cuda.pinned_array(SIZE, np.float32)  # SITE: pinned
    pinned[:] = 1
    batch = np.ones(SIZE, np.float32)
    stream = cuda.stream()
    for _ in range(STEPS):
        back = step(batch, pinned, total, stream)
        time.sleep(PAUSE_S)
    cuda.synchronize()  # SITE: device
    print(f"loss {back.sum():.1f}, {back.shape}")
    del total
    cuda.current_context().deallocations.clear()  # SITE: free


main()
