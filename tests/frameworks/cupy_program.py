"""A few steps on CuPy: kernels of three kinds on two streams, copies in both directions,
memory from CuPy's pools, and the ways to wait that programs use."""

import os
import time

import cupy as cp
import numpy as np

PAUSE_S = float(os.environ.get("PAUSE_S", "0"))
STEPS = 5
SIZE = 256

double = cp.RawKernel(
    'extern "C" __global__ void twice(float* x, int n) {'
    "  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }",
    "twice")


def step(batch, weight, stream):
    x = cp.asarray(batch)  # SITE: upload
    with stream:
        double((SIZE,), (SIZE,), (x, x.size))  # SITE: raw kernel
        done = stream.record()
    done.synchronize()  # SITE: event
    y = cp.sqrt(x)  # SITE: elementwise
    z = y @ weight  # SITE: product
    loss = float(z.sum())  # SITE: read
    back = z.get()  # SITE: download
    return loss, back


def main():
    weight = cp.zeros((SIZE, SIZE), cp.float32)  # SITE: weight
    stream = cp.cuda.Stream(non_blocking=True)
    batch = np.ones((SIZE, SIZE), np.float32)
    for _ in range(STEPS):
        loss, back = step(batch, weight, stream)
        time.sleep(PAUSE_S)
    stream.synchronize()  # SITE: stream
    cp.cuda.Device().synchronize()  # SITE: device
    print(f"loss {loss:.1f}, {back.shape}")
    del weight, back
    cp.get_default_memory_pool().free_all_blocks()  # SITE: free


main()
