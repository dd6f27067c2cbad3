"""Steps of a known number of launches: stepping.py STEPS [OUT]. Each is a range of NVTX, "step".

OUT: a file for one character a step, 1 where a tracing library looked at its calls, else 0.
"""

import ctypes
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import nvtx  # noqa: E402
from trainer import Kernel, check  # noqa: E402

LAUNCHES = 100  # a step


def main():
    cuda = ctypes.CDLL("libcudart.so.12")
    kernel = Kernel(cuda, b"kernel")
    stream = ctypes.c_void_p()
    check(cuda.cudaStreamCreate(ctypes.byref(stream)))
    ranges = nvtx.Ranges()
    observed = []
    for _ in range(int(sys.argv[1])):
        ranges.push(b"step")
        for _ in range(LAUNCHES):
            kernel.launch(stream)
        observed.append(ctypes.CDLL("libcuda.so.1").lull_sim_observed())
        ranges.pop()
    check(cuda.cudaDeviceSynchronize())
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w") as file:
            file.write("".join(map(str, observed)))


if __name__ == "__main__":
    main()
