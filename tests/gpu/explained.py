#!/usr/bin/env python3
"""Explained idle (docs/explained_idle.md) of whole programs on a GPU; explained.py [PROGRAM ...]
of tests/torch/explained, without .py. Prints the table of that page.

LULL_GPU_PYTHON  a Python with a CUDA build of PyTorch and with what the programs need (python3)
LULL_BIN         lull"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "torch"))
import explained_test
from explained_test import guest
from gpu_test import PYTHON, checks

FOLDER = os.path.join(os.path.dirname(HERE), "torch", "explained")


def main(names):
    host = guest.Host()
    os.environ.update(host.environment)
    print("| program | idle | data | code | of which without a processor | samples in code | "
          "explained | first line |")
    print("|---|---|---|---|---|---|---|---|")
    try:
        for name in names:
            done = guest.execute(
                [guest.LULL, "run", "--quiet", "--gpu", "continuous", "--overhead-budget", "100",
                 "--name", name, "--", *PYTHON, os.path.join(FOLDER, f"{name}.py")],
                host.environment, timeout=600)
            if done.status != 0:
                last = (done.stderr.strip().splitlines() or [f"status {done.status}"])[-1]
                print(f"| {name} | not told: {last} |", flush=True)
                continue
            guest.wait_until(lambda: checks.query(guest.LULL, "gaps", name)["job"]["ended"], 120)
            row = explained_test.row_of(explained_test.steady_gaps(name))
            print("|", name, "|", " | ".join(row), "|", flush=True)
    finally:
        host.close()


if __name__ == "__main__":
    main(sys.argv[1:] or list(explained_test.PROGRAMS))
