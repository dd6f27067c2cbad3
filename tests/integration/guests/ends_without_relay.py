"""Stops whoever would read what is recorded, collects garbage until its ring has no room,
works on the GPU from many threads, so that CUPTI has a buffer for each, and ends. Prints
its own process id and the CLOCK_MONOTONIC time of its last line.

Usage: ends_without_relay.py LIBCUDART THREADS
"""

import ctypes
import gc
import os
import signal
import sys
import threading
import time

EVENTS_OF_A_RING = 1024 * 170  # preload/abi/ring.h

cuda = ctypes.CDLL(sys.argv[1])
memory = ctypes.c_void_p()
cuda.cudaMalloc(ctypes.byref(memory), 4096)
ready = threading.Barrier(int(sys.argv[2]) + 1)


def work(calls):
    for _ in range(calls):
        cuda.cudaMemsetAsync(memory, 0, 64, None)
    cuda.cudaDeviceSynchronize()


def stay():
    work(3)
    ready.wait()
    time.sleep(600)


def relay():
    """`lull run` and its children, without this process."""
    parent = os.getppid()
    with open(f"/proc/{parent}/task/{parent}/children") as file:
        return [parent] + [int(child) for child in file.read().split()
                           if int(child) != os.getpid()]


work(3)
for pid in relay():
    os.kill(pid, signal.SIGSTOP)
for _ in range(EVENTS_OF_A_RING + 1000):
    gc.collect(0)
for _ in range(int(sys.argv[2])):
    threading.Thread(target=stay, daemon=True).start()
ready.wait()
print(os.getpid(), time.monotonic_ns(), flush=True)
