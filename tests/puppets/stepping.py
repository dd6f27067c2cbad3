"""Steps of a known number of launches: stepping.py STEPS. Each is a range of NVTX, "step".
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
    for _ in range(int(sys.argv[1])):
        ranges.push(b"step")
        for _ in range(LAUNCHES):
            kernel.launch(stream)
        ranges.pop()
    check(cuda.cudaDeviceSynchronize())


if __name__ == "__main__":
    main()
