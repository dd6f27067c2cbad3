#!/usr/bin/env python3
"""What an attach costs a training loop: step time before, during and after, as ratios in
one run, and the longest step around each attach.

    attach_steps.py [ROUNDS]     needs LULL_BIN, LULL_PUPPETS and LULL_SIM

The job steps on the simulated device at about 1 000 steps a second: ten launches and a
read-back, twice, with a good half of a millisecond of Python in between.
"""

import ctypes
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 10
SECONDS = 1.0


def job(until, steps_path):
    work = ctypes.CDLL(os.path.join(os.environ["LULL_PUPPETS"], "libwork12.so"))
    work.work_begin()
    steps = []
    print("training", flush=True)
    while os.path.exists(until):
        for _ in range(100):
            begin = time.monotonic_ns()
            work.work_step(10)
            for _ in range(60000):  # always the same work
                pass
            work.work_step(10)
            steps.append((begin, time.monotonic_ns() - begin))
    with open(steps_path, "w") as file:
        file.writelines("%d %d\n" % step for step in steps)


def main():
    folder = tempfile.mkdtemp(prefix="lull-bench-")
    alive, steps_path = os.path.join(folder, "alive"), os.path.join(folder, "steps")
    open(alive, "w").close()
    environment = {**os.environ, "LULL_RUNTIME_DIR": folder + "/run",
                   "XDG_DATA_HOME": folder + "/data"}
    child = subprocess.Popen(
        [sys.executable, os.path.abspath(__file__), "--job", alive, steps_path],
        env={**environment, "LD_LIBRARY_PATH": os.environ["LULL_SIM"],
             "LULL_SIM_CONFIG": "kernel_us=5"}, stdout=subprocess.PIPE)
    child.stdout.readline()
    time.sleep(0.5)
    marks, stops = [], []
    for _ in range(ROUNDS):
        time.sleep(SECONDS)
        begin = time.monotonic_ns()
        done = subprocess.run(
            [os.environ["LULL_BIN"], "attach", str(child.pid), "--for", "%.1fs" % SECONDS,
             "--gpu", "host", "--name", "bench"], env=environment, stderr=subprocess.PIPE)
        text = done.stderr.decode()
        assert done.returncode == 0, text
        found = re.findall(r"(?:stopped for longer than|held for up to) ([\d.]+)(us|ms)", text)
        stops.append(max(float(time) * (1 if unit == "ms" else 1e-3) for time, unit in found))
        marks.append((begin, time.monotonic_ns()))
    time.sleep(SECONDS)
    os.remove(alive)
    child.wait()
    with open(steps_path) as file:
        steps = [tuple(map(int, line.split())) for line in file]

    def median(since, until):
        return statistics.median(ns for at, ns in steps if since <= at < until)

    second = int(SECONDS * 1e9)
    during, after, longest, usual = [], [], [], []
    for begin, end in marks:
        before = median(begin - second + 50000000, begin)
        middle = (begin + end) // 2
        during.append(median(middle - second // 4, middle + second // 4) / before)
        after.append(median(end + 50000000, end + second - 50000000) / before)
        longest.append(max(ns for at, ns in steps if begin <= at < end) / 1e6)
        usual.append(max(ns for at, ns in steps if begin - second <= at < begin) / 1e6)
    print("%d attachments to a job with steps of %.3f ms" % (
        ROUNDS, median(0, 1 << 62) / 1e6))

    def show(what, values, form):
        print(("  %-44s " + form + " (median; " + form + " to " + form + ")") % (
            what, statistics.median(values), min(values), max(values)))

    show("step time during / before", during, "%.4f")
    show("step time after / before", after, "%.4f")
    show("longest stop of a thread, ms", stops, "%.2f")
    show("longest step while lull came and went, ms", longest, "%.2f")
    show("longest step in the second before, ms", usual, "%.2f")


if __name__ == "__main__":
    job(*sys.argv[2:]) if sys.argv[1:2] == ["--job"] else main()
