#!/usr/bin/env python3
"""What the relay of a host with 8 ranks and 32 DataLoader workers takes of a processor, by
its threads, over the default schedule of windows: with host samples, without, and with
nothing recorded at all (a job that sleeps), in turn.

usage: relay_of_ranks.py [ROUNDS [SECONDS]]
Needs what tests/torch/install installs. LULL_BIN and LULL_SIM name lull and the simulated libraries, LULL_RANKS=8, LULL_WORKERS=4 (of
a rank), LULL_STEP_MS=50, LULL_LAUNCHES=20 (of a step) the load.
"""

import collections
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LULL = os.environ.get("LULL_BIN", "lull")
RANKS, WORKERS, STEP_MS, LAUNCHES = (
    os.environ.get(name, default) for name, default in
    (("LULL_RANKS", "8"), ("LULL_WORKERS", "4"), ("LULL_STEP_MS", "50"),
     ("LULL_LAUNCHES", "20")))
WARM_UP = 20  # imports, first batches, symbols
VARIANTS = {"with samples": (), "--no-samples": ("--no-samples",), "asleep": ("--dormant",)}


def relay_workers(job):
    """pids below `job` that read rings."""
    children = collections.defaultdict(list)
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as stat, open(f"/proc/{entry}/cmdline") as command:
                parent = int(stat.read().rpartition(")")[2].split()[1])
                children[parent].append((int(entry), command.read()))
        except OSError:
            continue
    found, todo = [], [job]
    while todo:
        for pid, command in children[todo.pop()]:
            todo.append(pid)
            if "relay-worker" in command:
                found.append(pid)
    return found


def cpu_of_threads(pid):
    """{name: seconds} so far, by the kernel's own count."""
    used = collections.Counter()
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/schedstat") as stat, \
                open(f"/proc/{pid}/task/{tid}/comm") as comm:
            name = "main" if tid == str(pid) else comm.read().strip()
            used[name] += int(stat.read().split()[0]) / 1e9
    return used


def measure(options, seconds):
    with tempfile.TemporaryDirectory(prefix="lull-bench-") as state:
        environment = {**os.environ, "LULL_RUNTIME_DIR": os.path.join(state, "run"),
                       "XDG_DATA_HOME": os.path.join(state, "data"),
                       "LULL_SIM_CONFIG": "kernel_us=20"}
        environment.pop("RANK", None)
        job = subprocess.Popen(
            [LULL, "run", "--quiet", *options, "--",
             os.path.join(os.path.dirname(HERE), "torch", "run_on_sim"), "python", "-W", "ignore",
             os.path.join(os.path.dirname(HERE), "puppets", "ranks.py"),
             str(seconds + WARM_UP), RANKS, WORKERS, STEP_MS, LAUNCHES],
            env=environment, stdout=subprocess.PIPE, text=True)
        time.sleep(WARM_UP)
        (relay,) = relay_workers(job.pid)
        start, before = time.monotonic(), cpu_of_threads(relay)
        time.sleep(seconds)
        used = cpu_of_threads(relay)
        used.subtract(before)
        elapsed = time.monotonic() - start
        steps = sum(map(int, job.communicate()[0].split()))
        if job.returncode != 0:
            raise RuntimeError(f"{options}: the job ended with {job.returncode}")
        return {name: 100 * cpu / elapsed for name, cpu in used.items()}, steps


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 60
    totals = collections.defaultdict(list)
    for number in range(rounds):
        variants = list(VARIANTS.items())
        for name, options in variants[number % len(variants):] + variants[:number % len(variants)]:
            threads, steps = measure(options, seconds)
            totals[name].append(sum(threads.values()))
            largest = sorted(threads.items(), key=lambda item: -item[1])[:5]
            print(f"{name}: {totals[name][-1]:.2f} % of a core ("
                  + ", ".join(f"{thread} {percent:.2f}" for thread, percent in largest)
                  + f"), {steps} steps, load {os.getloadavg()[0]:.1f}", flush=True)
    for name, percents in totals.items():
        print(f"{name}: median {statistics.median(percents):.2f} % of a core "
              f"({min(percents):.2f} to {max(percents):.2f}), {RANKS} ranks with {WORKERS} "
              f"workers each, {rounds} x {seconds:.0f} s")


if __name__ == "__main__":
    main()
