"""Training loops that waste a GPU in one known way each: patterns.py PATTERN [STEPS].

Kernels have no code: the simulated device runs them for the time that it is told.
On standard output: JSON with what the program knows of itself.
"""

import ctypes
import gc
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from trainer import DEVICE_TO_HOST, HOST_TO_DEVICE, Kernel, check  # noqa: E402


class Device(object):
    def __init__(self):
        self.cuda = ctypes.CDLL("libcudart.so.12")
        self.kernels = {name: Kernel(self.cuda, name.encode())
                        for name in ("long_kernel", "short_kernel")}
        self.stream = ctypes.c_void_p()
        check(self.cuda.cudaStreamCreate(ctypes.byref(self.stream)))
        self.memory = ctypes.c_void_p()
        check(self.cuda.cudaMalloc(ctypes.byref(self.memory), ctypes.c_size_t(1 << 20)))
        self.pinned = ctypes.c_void_p()
        check(self.cuda.cudaMallocHost(ctypes.byref(self.pinned), ctypes.c_size_t(1 << 20)))

    def launch(self, name):
        self.kernels[name].launch(self.stream)

    def item(self):
        value = ctypes.c_float()
        check(self.cuda.cudaMemcpyAsync(ctypes.byref(value), self.memory, ctypes.c_size_t(4), DEVICE_TO_HOST, self.stream))
        check(self.cuda.cudaStreamSynchronize(self.stream))
        return value.value

    def upload(self):
        check(self.cuda.cudaMemcpyAsync(self.memory, self.pinned, ctypes.c_size_t(1 << 20), HOST_TO_DEVICE, self.stream))

    def synchronize(self):
        check(self.cuda.cudaDeviceSynchronize())


def compute(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def compute_bound(device, steps):
    """The device always has work: the host is far ahead."""
    for _ in range(steps):
        for _ in range(40):
            device.launch("long_kernel")


def launch_bound(device, steps):
    """Kernels are over before the next one has been launched."""
    spans = []
    for _ in range(steps):
        start = time.monotonic_ns()
        for _ in range(400):
            device.launch("short_kernel")
        device.item()
        spans.append((start, time.monotonic_ns()))
    return {"steps": spans}


def sync_bound(device, steps):
    """Host and device take turns."""
    for _ in range(steps * 20):
        device.launch("long_kernel")
        device.item()  # SITE: item
        compute(0.0004)


class Items(object):
    """A data set of which each item takes a while."""

    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        time.sleep(0.016)
        return index


def not_waited(schedstat):
    """For how long this thread has run so far, or stood in a run queue. In ns."""
    return time.thread_time_ns() + int(os.pread(schedstat, 100, 0).split()[1])


def data_bound(device, steps):
    """A real DataLoader with one worker that is slower than the device."""
    import torch.utils.data

    # Batches that are plain lists: next() does little but wait.
    loader = iter(torch.utils.data.DataLoader(Items(), batch_size=4, num_workers=1,
                                              collate_fn=list))
    waits, running, uploads = [], [], []
    schedstat = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
    for _ in range(steps * 3):
        before, start = not_waited(schedstat), time.monotonic_ns()
        next(loader)  # SITE: loader
        waits.append((start, time.monotonic_ns()))
        running.append(not_waited(schedstat) - before)
        uploads.append(time.monotonic_ns())
        device.upload()
        for _ in range(8):
            device.launch("long_kernel")
            for _ in range(12):
                device.launch("short_kernel")
        device.item()
    return {"waits": waits, "running": running, "uploads": uploads}


class Decoded(object):
    """A data set of which each item takes the processor for a while."""

    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        until = time.monotonic_ns() + 1_000_000
        while time.monotonic_ns() < until:  # SITE: decode
            pass
        return index


def regions(device, steps):
    """Steps in regions, with a DataLoader that computes in this process: how long each
    region was, just within and just around it."""
    import torch.utils.data
    from torch.profiler import record_function

    loader = iter(torch.utils.data.DataLoader(Decoded(), batch_size=4, collate_fn=list))
    spans = {}

    class Region(object):
        def __init__(self, name):
            self.name, self.inner = name, record_function(name)

        def __enter__(self):
            self.before = time.monotonic_ns()
            self.inner.__enter__()
            self.start = time.monotonic_ns()

        def __exit__(self, *error):
            end = time.monotonic_ns()
            self.inner.__exit__(*error)
            spans.setdefault(self.name, []).append(
                (self.before, self.start, end, time.monotonic_ns()))

    for _ in range(3):  # tracing begins
        device.launch("short_kernel")
        device.item()
    for _ in range(steps):
        with Region("step"):
            with Region("load"):
                next(loader)  # SITE: region_loader
            with Region("forward"):
                for _ in range(6):
                    device.launch("long_kernel")
            with Region("loss"):
                device.item()
    return {"spans": spans}


class Node(object):
    def __init__(self):
        self.me = self


def garbage(device, steps):
    """Collections of a large heap in the middle of steps."""
    heap = [Node() for _ in range(300000)]
    gc.disable()
    pauses = []
    for _ in range(steps):
        device.launch("long_kernel")
        start = time.perf_counter()
        gc.collect()  # SITE: collect
        pauses.append(time.perf_counter() - start)
        device.launch("long_kernel")
        device.item()
    return {"gc_ms": 1e3 * sum(pauses), "heap": len(heap)}


PATTERNS = {"compute": compute_bound, "launch": launch_bound, "sync": sync_bound,
            "data": data_bound, "garbage": garbage, "regions": regions}


def main():
    pattern = PATTERNS[sys.argv[1]]
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    if pattern in (data_bound, regions):
        import torch.utils.data  # a second or more, before the device is in use
    device = Device()
    known = pattern(device, steps) or {}
    device.synchronize()
    with open("/proc/self/schedstat") as file:
        known["delayed_ms"] = int(file.read().split()[1]) / 1e6
    print(json.dumps(known))


if __name__ == "__main__":
    main()
