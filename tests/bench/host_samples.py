#!/usr/bin/env python3
"""What host samples cost the program that is looked at: the same steps under `lull run` and
`lull run --no-samples`, in pairs (ABBA), by the program's own clocks: processor time of its
thread, which others on the machine disturb little, and the median step by the wall clock.
With the default schedule of windows (10 and 200 looks a second), and traced all the time
(200). The ratios of the pairs have the bootstrap's 95 % interval.

usage: host_samples.py [PAIRS [SECONDS]]
LULL_BIN names another lull; without LULL_SIM, the folder of the simulated libraries, the
program uses no device, and nothing is traced.
"""

import os
import random
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LULL = os.environ.get("LULL_BIN", "lull")
SIM = os.environ.get("LULL_SIM")
RESAMPLES = 4000
LOOP = r"""
import statistics, sys, time
sys.path.insert(0, sys.argv[2])
device = None
if sys.argv[3]:
    from patterns import Device
    device = Device()
def leaf(n): return sum(range(n))
def step():
    for _ in range(1000): leaf(50)
    if device:
        for _ in range(5): device.launch("short_kernel")
time.sleep(0.001)
end = time.perf_counter() + float(sys.argv[1])
walls = []
begin = time.thread_time()
while (start := time.perf_counter()) < end:
    step()
    walls.append(time.perf_counter() - start)
print((time.thread_time() - begin) / len(walls) * 1e6, statistics.median(walls) * 1e6)
"""


def run(environment, seconds, *options):
    done = subprocess.run(
        [LULL, "run", "--quiet", *options, "--", sys.executable, "-c", LOOP, str(seconds),
         os.path.join(os.path.dirname(HERE), "puppets"), SIM or ""],
        env=environment, capture_output=True, text=True, check=True)
    return [float(micros) for micros in done.stdout.split()]


def bootstrap(values):
    """Mean, and the 95 % interval of it."""
    choose = random.Random(1)
    means = sorted(statistics.fmean(choose.choices(values, k=len(values)))
                   for _ in range(RESAMPLES))
    return statistics.fmean(values), means[RESAMPLES // 40], means[-RESAMPLES // 40]


def compare(title, environment, pairs, seconds, *options):
    ratios = {"CPU time of a step": [], "median step": []}
    for i in range(pairs):
        order = ((), ("--no-samples",)) if i % 2 == 0 else (("--no-samples",), ())
        told = {sampling: run(environment, seconds, *options, *sampling) for sampling in order}
        for name, a, b in zip(ratios, told[()], told[("--no-samples",)]):
            ratios[name].append(a / b)
    for name, values in ratios.items():
        mean, low, high = bootstrap(values)
        print(f"{title}: {name} with samples / without: {mean:.4f} [{low:.4f}, {high:.4f}], "
              f"median {statistics.median(values):.4f} ({pairs} pairs of {seconds:.0f} s, "
              f"load {os.getloadavg()[0]:.1f})", flush=True)


def main():
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 6
    with tempfile.TemporaryDirectory(prefix="lull-bench-") as state:
        environment = {**os.environ, "LULL_RUNTIME_DIR": os.path.join(state, "run"),
                       "XDG_DATA_HOME": os.path.join(state, "data")}
        if SIM:
            environment.update(LD_LIBRARY_PATH=SIM, LULL_SIM_CONFIG="kernel_us=5")
        compare("default schedule", environment, pairs, seconds)
        if SIM:
            compare("traced all the time", environment, pairs, seconds, "--gpu", "continuous")


if __name__ == "__main__":
    main()
