"""A training that is sensitive to everything: attached_script.py STEPS|FILE [LIBRARY]

Runs for so many steps, or until FILE is gone (and no longer than two minutes). Each step
goes on with a chaotic map, of which the last bit of any rounding changes all that
follows, makes garbage, and, with LIBRARY (tests/puppets/work.cu), works on the GPU. 64
threads compute, sleep, wait, allocate and hash beside it, and check what comes out; a
timer's signals interrupt all of them. Ends with status 7 and says what it found.
"""

import ctypes
import hashlib
import os
import queue
import signal
import sys
import threading
import time

THREADS = 64
SECONDS_AT_MOST = 120


def iterate(x, times):
    for _ in range(times):
        x = 3.9876543210123 * x * (1.0 - x)
    return x


BLOCK = bytes(range(256)) * 1024
DIGEST = hashlib.sha256(BLOCK).digest()
CHUNK = iterate(0.4321, 500)

stop = threading.Event()
wrong = []
alarms = [0]


def check(name, ok):
    if not ok:
        wrong.append(name)


def compute():
    check("compute", iterate(0.4321, 500) == CHUNK)


def sleep():
    start = time.monotonic()
    time.sleep(0.004)
    check("sleep", time.monotonic() - start >= 0.004)


def wait():
    start = time.monotonic()
    try:
        queue.Queue().get(timeout=0.005)
        wrong.append("wait")
    except queue.Empty:
        check("wait", time.monotonic() - start >= 0.005)


def allocate():
    blocks = [bytearray(n * 1000) for n in range(1, 60)]
    check("allocate", sum(map(len, blocks)) == 1770000)


def hashes():
    check("hash", hashlib.sha256(BLOCK).digest() == DIGEST)


def repeat(what):
    while not stop.is_set():
        what()
        time.sleep(0.02)


class Node(object):
    def __init__(self):
        self.me = self


def main():
    until = sys.argv[1]
    steps = int(until) if until.isdigit() else None
    library = ctypes.CDLL(sys.argv[2]) if len(sys.argv) > 2 else None
    if library is not None:
        library.work_begin()
    signal.signal(signal.SIGALRM, lambda *_: alarms.__setitem__(0, alarms[0] + 1))
    signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
    kinds = (compute, sleep, wait, allocate, hashes)
    threads = [threading.Thread(target=repeat, args=(kinds[i % len(kinds)],))
               for i in range(THREADS)]
    for thread in threads:
        thread.start()
    x, done, start = 0.123456789, 0, time.monotonic()
    print("training", flush=True)
    while (done < steps if steps is not None else
           os.path.exists(until) and time.monotonic() < start + SECONDS_AT_MOST):
        x = iterate(x, 40)
        done += 1
        garbage = [Node() for _ in range(20)]
        if library is not None:
            library.work_step(3)
        if steps is None and done % 8 == 0:
            time.sleep(0.001)
        del garbage
    stop.set()
    for thread in threads:
        thread.join()
    signal.setitimer(signal.ITIMER_REAL, 0)
    check("alarms", alarms[0] > 0)
    print(done, x.hex(), sorted(set(wrong)))
    sys.exit(7)


main()
