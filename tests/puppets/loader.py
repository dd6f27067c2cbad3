"""A training loop on the CPU that measures its DataLoader with its own clock.

    loader.py --workers N --start METHOD --file FILE

FILE gets {"next": [[start, end], ...], "class": ..., "torch": ...}: CLOCK_MONOTONIC in ns
around each next(), the one that ends the loop included; and "delayed_ms", which the main
thread waited for a processor meanwhile. A dataset that computes, waits
and reads, so that part of the time in next() is of each kind.
"""
import argparse
import gc
import json
import os
import time

import torch
from torch.utils.data import DataLoader, Dataset

BATCHES, BATCH = 24, 4


class Images(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return BATCHES * BATCH

    def __getitem__(self, index):
        with open(self.paths[index % len(self.paths)], "rb") as file:
            data = file.read()
        until = time.perf_counter() + 0.004  # decoding
        while time.perf_counter() < until:
            sum(data[:256])
        if index % 4 == 0:
            time.sleep(0.002)
        return torch.frombuffer(bytearray(data[:1024]), dtype=torch.uint8).float()


def drop_caches(paths):
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def delayed_ns():
    with open("/proc/self/schedstat") as file:  # of the main thread
        return int(file.read().split()[1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--start", default=None)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--file", required=True)
    arguments = parser.parse_args()

    folder = os.path.dirname(os.path.abspath(arguments.file))
    paths = [os.path.join(folder, f"image{i}") for i in range(16)]
    for path in paths:
        with open(path, "wb") as file:
            file.write(os.urandom(256 << 10))
            os.fsync(file.fileno())
    if arguments.cold:
        drop_caches(paths)

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Linear(1024, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Images(paths), BATCH, num_workers=arguments.workers,
                        multiprocessing_context=arguments.start if arguments.workers else None)
    gc.collect()
    spans = []
    delayed_before = delayed_ns()
    batches = iter(loader)
    while True:
        start = time.monotonic_ns()
        batch = next(batches, None)  # SITE: next
        spans.append((start, time.monotonic_ns()))
        if batch is None:
            break
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
        time.sleep(0.003)
    with open(arguments.file, "w") as file:
        json.dump({"next": spans, "class": type(batches).__name__,
                   "delayed_ms": (delayed_ns() - delayed_before) / 1e6,
                   "torch": torch.__version__}, file)


if __name__ == "__main__":
    main()
