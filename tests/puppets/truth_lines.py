"""Known shares of time in known lines, in the gaps of a GPU and beside its work:

    truth_lines.py FILE SECONDS SEED random|locked
    truth_lines.py FILE SECONDS SEED asleep|fixed

A kernel of 1.5 ms is launched, some lines run beside it, and others when it is over, until
the next one is launched; nothing ever waits for the device. Some lines compute, and some are
asleep in the kernel. With "random" each line takes
another time in each step, as SEED has it; with "locked" every step lasts 10 ms exactly,
from launch to launch. "asleep" has steps of 10 ms of which all lines sleep, and no device.
"fixed" does the same work on every machine, about SECONDS of it, to see what it takes.

FILE gets {"spans": {name: [[start, end], ...]}, "delayed_ms": n, "wall_s": s, "cpu_s": s}:
CLOCK_MONOTONIC in ns around each line, what the thread waited for a processor meanwhile,
and what all of it took. CPython 3.8 to 3.14.
"""

import ctypes
import json
import os
import platform
import random
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from patterns import Device  # noqa: E402

now = time.monotonic_ns
STEP_NS = 10_000_000
VALUES = list(range(200_000))
SYSCALL = ctypes.CDLL(None).syscall
NANOSLEEP = {"x86_64": 35, "aarch64": 101}[platform.machine()]


def statistics(work):
    return sum(range(work))  # SITE: statistics


def nap(work):
    time.sleep(work)  # SITE: nap


def decode(work):
    return sum(range(work))  # SITE: decode


def augment(work):
    return sorted(VALUES[:work], key=lambda value: value * value % 977)  # SITE: augment


def collate(work):
    return sum(value & 3 for value in VALUES[:work])  # SITE: collate


# Asleep in the kernel, and not by a function that lull watches.
def fetch(work):
    SYSCALL(ctypes.c_long(NANOSLEEP), (ctypes.c_long * 2)(0, int(work * 1e9)), None)  # SITE: fetch


def store(work):
    SYSCALL(ctypes.c_long(NANOSLEEP), (ctypes.c_long * 2)(0, int(work * 1e9)), None)  # SITE: store


def twice(value): return 2 * value  # SITE: twice


def encode(work):
    return sum(map(twice, VALUES[:work]))  # SITE: encode


def pace(until):
    while now() < until: pass  # SITE: pace


def early(until):
    time.sleep(max(0, until - now()) / 1e9)  # SITE: early


def late(until):
    time.sleep(max(0, until - now()) / 1e9)  # SITE: late


# What each line takes of a step, in ms.
PARTS = ((statistics, 0.5), (nap, 0.4), (decode, 0.9), (augment, 0.8), (fetch, 1.9),
         (collate, 0.8), (encode, 0.7), (store, 1.5))
ASLEEP = (nap, fetch, store)


class Clock:
    def __init__(self):
        self.spans = {}

    def run(self, line, work):
        start = now()
        line(work)
        self.spans.setdefault(line.__name__, []).append((start, now()))


def work_of_a_millisecond(line):
    """What to ask of the line that it takes 1 ms on this machine, when nobody disturbs."""
    if line in ASLEEP:
        return 0.001
    work, best = 20_000, None
    for _ in range(20):
        start = now()
        line(work)
        took = now() - start
        best = took if best is None else min(best, took)
    return work * 1e6 / best


def repeat(clock, seconds):
    """As many steps, whatever they take."""
    device = Device()
    works = {statistics: 60_000, decode: 60_000, augment: 8_000, collate: 20_000,
             encode: 20_000, nap: 0.001, fetch: 0.001, store: 0.001}
    for _ in range(int(seconds * 1e9 / STEP_NS)):
        device.launch("long_kernel")
        for line, ms in PARTS:
            clock.run(line, works[line] * ms if line in ASLEEP else int(works[line] * ms))
    device.synchronize()


def train(clock, seconds, choose, locked):
    works = {line: work_of_a_millisecond(line) for line, _ in PARTS}
    device = Device()
    first = step = now()
    while step < first + seconds * 1e9:
        device.launch("long_kernel")
        for line, ms in PARTS:
            work = works[line] * ms * (0.8 if locked else choose.uniform(0.4, 1.6))
            clock.run(line, work if line in ASLEEP else int(work))
        # A step that took too long is followed by the next one in the same rhythm.
        step += STEP_NS * max(1, (now() - step) // STEP_NS + 1) if locked else now() - step
        if locked:
            clock.run(pace, step)
    device.synchronize()


def sleep(clock, seconds):
    """The first part of each step is asleep in one line, and the rest in another."""
    first = step = now() // STEP_NS * STEP_NS  # in step with all others, too
    while step < first + seconds * 1e9:
        clock.run(early, step + STEP_NS * 3 // 10)
        step += STEP_NS * max(1, (now() - step) // STEP_NS + 1)
        clock.run(late, step)


def delayed_ns():
    with open("/proc/self/schedstat") as file:  # of the main thread
        return int(file.read().split()[1])


def main():
    path, seconds, seed, pattern = sys.argv[1:]
    clock, before = Clock(), delayed_ns()
    wall, cpu = time.perf_counter(), time.thread_time()
    if pattern == "asleep":
        sleep(clock, float(seconds))
    elif pattern == "fixed":
        repeat(clock, float(seconds))
    else:
        train(clock, float(seconds), random.Random(int(seed)), pattern == "locked")
    with open(path, "w") as file:
        json.dump({"spans": clock.spans, "delayed_ms": (delayed_ns() - before) / 1e6,
                   "wall_s": time.perf_counter() - wall, "cpu_s": time.thread_time() - cpu},
                  file)


if __name__ == "__main__":
    main()
