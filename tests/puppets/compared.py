"""A training of which two versions are compared: compared.py STEPS, with `metrics.py` in
the folder that METRICS names. Steps are ranges of NVTX, "step"; the simulated device runs
eight kernels in each."""

import os
import sys

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.environ["METRICS"]]
import metrics  # noqa: E402
import nvtx  # noqa: E402
from patterns import Device  # noqa: E402


def train(steps):
    device = Device()
    mean = metrics.Mean(device)
    ranges = nvtx.Ranges()
    for step in range(steps):
        ranges.push(b"step")
        for _ in range(8):
            device.launch("long_kernel")
        mean.update(step)
        ranges.pop()
    device.item()


if __name__ == "__main__":
    train(int(sys.argv[1]))
