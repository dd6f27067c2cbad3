#!/usr/bin/env python3
"""What host samples cost the program that is looked at: the same Python loop under
`lull run` and `lull run --no-samples`, in pairs (ABBA), by its own clocks.

usage: host_samples.py [PAIRS [SECONDS]]     LULL_BIN names another lull
"""

import os
import statistics
import subprocess
import sys
import tempfile

LULL = os.environ.get("LULL_BIN", "lull")
LOOP = r"""
import resource, sys, time
def leaf(n): return sum(range(n))
def work():
    for _ in range(200): leaf(50)
end = time.perf_counter() + float(sys.argv[1])
rounds = 0
begin = time.process_time()
time.sleep(0.001)
while time.perf_counter() < end:
    work()
    rounds += 1
used = resource.getrusage(resource.RUSAGE_SELF)
print((time.process_time() - begin) / rounds * 1e6, used.ru_nivcsw)
"""


def run(environment, seconds, *options):
    done = subprocess.run([LULL, "run", "--quiet", *options, "--", sys.executable, "-c", LOOP,
                           str(seconds)], env=environment, capture_output=True, text=True,
                          check=True)
    micros, switches = done.stdout.split()
    return float(micros), int(switches)


def main():
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 2
    with tempfile.TemporaryDirectory(prefix="lull-bench-") as state:
        environment = {**os.environ, "LULL_RUNTIME_DIR": os.path.join(state, "run"),
                       "XDG_DATA_HOME": os.path.join(state, "data")}
        ratios = []
        for i in range(pairs):
            order = ((), ("--no-samples",)) if i % 2 == 0 else (("--no-samples",), ())
            cost = {options: run(environment, seconds, *options)[0] for options in order}
            ratios.append(cost[()] / cost[("--no-samples",)])
        middle = statistics.median(ratios)
        spread = statistics.stdev(ratios) / len(ratios) ** 0.5 if pairs > 1 else 0
        print(f"CPU time of a round with samples / without: median {middle:.4f}, "
              f"mean {statistics.mean(ratios):.4f} +- {spread:.4f} ({pairs} pairs)")


if __name__ == "__main__":
    main()
