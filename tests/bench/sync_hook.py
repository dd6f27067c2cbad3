#!/usr/bin/env python3
"""What a sync hook costs with 30 Python and 40 native frames (budget: 1.5 us): those of
30 functions, and of one that calls itself.

Run without arguments other than --lull and --frames: starts itself under `lull run`
with --inside, calls cudaStreamSynchronize below that many frames, hooked and direct
in turn, and prints the medians per call and their difference. The runtime does
nothing, so the difference is the hook: two clock reads, both stacks, the event.
"""
import argparse
import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
import time

PYTHON_FRAMES, NATIVE_FRAMES, CALLS, ROUNDS = 30, 40, 1000, 200


def below(frames, function):
    return function() if frames <= 1 else below(frames - 1, function)


def below_others(frames, function):
    """So many functions, this one among them, each of which calls the next."""
    source = ["def f1(function): return function()\n"]
    source += [f"def f{i}(function): return f{i - 1}(function)\n" for i in range(2, frames)]
    functions = {}
    for text in source:
        exec(compile(text, __file__, "exec"), functions)
    return functions[f"f{frames - 1}"](function)


def measure(library):
    sync = ctypes.CDLL(library).sync_frames
    sync.restype = ctypes.c_uint64
    for whose, go_below in (("30 functions", below_others), ("one function", below)):
        measure_below(sync, whose, go_below)


def measure_below(sync, whose, go_below):
    hooked, direct = [], []

    def rounds():
        for _ in range(ROUNDS):
            hooked.append(sync(NATIVE_FRAMES, CALLS, 1) / CALLS)
            direct.append(sync(NATIVE_FRAMES, CALLS, 0) / CALLS)
            time.sleep(0.003)  # the ring must not be full: a loss is cheaper

    go_below(PYTHON_FRAMES - 3, rounds)
    cost = statistics.median(hooked) - statistics.median(direct)
    print(f"sync hook, {PYTHON_FRAMES} Python frames of {whose} and {NATIVE_FRAMES} "
          f"native ones, warm: "
          f"{cost:.0f} ns (budget 1500 ns); call itself {statistics.median(direct):.1f} ns")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lull")
    parser.add_argument("--frames", help="libsync_frames.so", required=True)
    parser.add_argument("--inside", action="store_true")
    arguments = parser.parse_args()
    if arguments.inside:
        return measure(arguments.frames)
    with tempfile.TemporaryDirectory(prefix="lull-bench-") as folder:
        environment = dict(os.environ, LULL_RUNTIME_DIR=f"{folder}/runtime",
                           XDG_DATA_HOME=f"{folder}/data")
        # A budget that the bench cannot reach: thinning would leave stacks out.
        job = subprocess.run([arguments.lull, "run", "--overhead-budget", "100", "--",
                              sys.executable, __file__, "--inside",
                              "--frames", arguments.frames],
                             env=environment, stderr=subprocess.PIPE, text=True)
        print(*[line for line in job.stderr.splitlines() if "Cost of measuring" in line],
              sep="\n")
        return job.returncode


if __name__ == "__main__":
    sys.exit(main())
