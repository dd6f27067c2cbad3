"""Regions by record_function that note themselves: scopes.py FILE SCENARIO [SECONDS].

FILE gets {"torch": version, "regions": {path: [[before, start, end, after, here], ...]}}:
CLOCK_MONOTONIC in ns just before each region, just within it, at its end and just after it;
and whether the thread that began it ended it.
"""
import asyncio
import atexit
import contextlib
import gc
import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch
from torch.profiler import record_function

noted = {}
monotonic = time.monotonic_ns
ANY_TIME = (0, 1 << 62, 0, 1 << 62, True)  # nobody looked at a clock


class region:
    """A record_function, with its own clock read as near to it as Python can."""

    def __init__(self, path):
        self.path = path
        self.inner = record_function(path.split("/")[-1])

    def __enter__(self):
        self.thread = threading.get_ident()
        self.before = monotonic()
        self.inner.__enter__()
        self.start = monotonic()

    def __exit__(self, *error):
        end = monotonic()
        self.inner.__exit__(*error)
        after = monotonic()
        here = self.thread == threading.get_ident()
        noted.setdefault(self.path, []).append((self.before, self.start, end, after, here))


def nap(ms=1.0):
    time.sleep(ms / 1e3)


def nested():
    with region("epoch"):
        for _ in range(20):
            with region("epoch/step"):
                with region("epoch/step/forward"):
                    nap()
                with region("epoch/step/backward"):
                    nap()


def exceptions():
    for number in range(30):
        with contextlib.suppress(ValueError):
            with region("outer"):
                with region("outer/inner"):
                    if number % 3 == 0:
                        raise ValueError
                nap(0.2)
    with region("after"):
        pass


def threads():
    def work(name):
        for _ in range(50):
            with region(name):
                with region(f"{name}/part of {name}"):
                    nap(0.2)

    with region("main"):
        workers = [threading.Thread(target=work, args=(f"thread{c}",)) for c in "abcd"]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()


def deep():
    regions = [region("/".join(f"d{i}x" for i in range(depth + 1))) for depth in range(100)]
    for one in regions:
        one.__enter__()
    for one in reversed(regions):
        one.__exit__(None, None, None)


def handed_over():
    for _ in range(10):
        with region("around"):
            first, second = region("around/first"), region("around/first/second")
            first.__enter__()
            second.__enter__()
            thread = threading.Thread(target=second.__exit__, args=(None, None, None))
            thread.start()
            thread.join()
            with region("around/first/third"):
                pass
            late = region("around/first/late")
            late.__enter__()
            first.__exit__(None, None, None)
            with region("around/late/fourth"):
                pass
            late.__exit__(None, None, None)
        with region("alone"):
            pass


def generators():
    def generator():
        with region("generator"):
            yield

    async def coroutine():
        await asyncio.sleep(0.001)
        with region("coroutine"):
            nap(0.1)

    async def many():
        await asyncio.gather(*(coroutine() for _ in range(10)))

    asyncio.run(many())
    for _ in range(5):
        one = generator()
        next(one)
        one.close()
    # Begun here, ended by another thread when the garbage is collected.
    one = generator()
    next(one)
    thread = threading.Thread(target=one.close)
    thread.start()
    thread.join()
    with region("after"):
        pass


def profiler():
    with region("before"):
        pass
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        for _ in range(10):
            with region("profiled"):
                torch.ones(3).add(1)
    (row,) = [row for row in profile.key_averages() if row.key == "profiled"]
    assert row.count == 10
    with region("after"):
        pass


def fork():
    with region("around"):
        child = os.fork()
        if child == 0:
            # Records nothing where a scope makes no tensors.
            with record_function("in_child"):
                pass
            os._exit(0)
        os.waitpid(child, 0)
        with region("around/inside"):
            pass


def numbers():
    for number in range(200):
        with region("step"):
            pass
    for number in range(200):
        with region(f"step {number}"):  # lull calls it "step" as well
            pass
        noted["step"] += noted.pop(f"step {number}")


def at_exit():
    with region("program"):
        nap()

    def late():
        with record_function("late"):
            pass

    atexit.register(late)
    noted["late"] = [ANY_TIME]

    class Finalized:
        def __del__(self):
            with record_function("later still"):
                pass

    sys.modules["finalized"] = Finalized()  # goes with the interpreter


def many():
    for number in range(20_000):
        with record_function(f"name {number:06d} of many"):
            pass


def never_ended():
    import nvtx
    ranges = nvtx.Ranges()
    for _ in range(1000):
        ranges.start(b"leak")
    with region("around"):
        for _ in range(10):
            with region("around/after"):
                pass


def tight(seconds):
    end = monotonic() + int(seconds) * 1_000_000_000
    opened = 0
    while monotonic() < end:
        for _ in range(1000):
            with record_function("tight"):
                pass
        opened += 1000
    print(opened)


def main():
    file, scenario, *arguments = sys.argv[1:]
    gc.collect()  # an occasion for the callback to come in
    globals()[scenario](*arguments)
    with open(file, "w") as told:
        json.dump({"torch": torch.__version__, "regions": noted}, told)


main()
