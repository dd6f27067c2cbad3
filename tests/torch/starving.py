#!/usr/bin/env python3
"""A small network on images that lie on disk one file each and have to be unpacked. With
one worker the loader cannot keep up, and the GPU waits for data. `--waits` has the
program note when it did wait, in a file of its own."""

import argparse
import json
import os
import tempfile
import time
import zlib

import numpy
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLASSES, SIDE = 10, 96


class ImagesOnDisk(Dataset):
    def __init__(self, folder, count):
        self.paths = []
        random = numpy.random.default_rng(0)
        for number in range(count):
            image = random.integers(0, 32, (SIDE, SIDE, 3), dtype=numpy.uint8)
            self.paths.append(os.path.join(folder, f"{number}.z"))
            with open(self.paths[-1], "wb") as file:
                file.write(zlib.compress(image.tobytes(), 9))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with open(self.paths[index], "rb") as file:
            image = numpy.frombuffer(zlib.decompress(file.read()), dtype=numpy.uint8)
        image = image.reshape(SIDE, SIDE, 3).astype(numpy.float32) / 255
        return torch.from_numpy((image - image.mean((0, 1))) / image.std((0, 1))), index % CLASSES


# In a string, so that it is not this script that waits, as a debugger would see it.
NOTE_WAITS = """
def noting(function, waits):
    def wrapper(*arguments):
        start = monotonic_ns()
        try:
            return function(*arguments)
        finally:
            waits.append((start, monotonic_ns()))
    return wrapper
"""


def note_waits():
    """Lists that get (start, end) in CLOCK_MONOTONIC ns of each next() of the loader."""
    names = {"monotonic_ns": time.monotonic_ns}
    exec(NOTE_WAITS, names)
    lists = {"next": []}
    kind = torch.utils.data.dataloader._MultiProcessingDataLoaderIter
    kind.__next__ = names["noting"](kind.__next__, lists["next"])
    return lists


def network():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, CLASSES))


def train(folder, arguments):
    device = torch.device("cuda")
    model = network().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(ImagesOnDisk(folder, arguments.steps * arguments.batch),
                        arguments.batch, num_workers=arguments.workers)
    for images, labels in loader:  # SITE: loader
        images = images.to(device).permute(0, 3, 1, 2)
        loss = F.cross_entropy(model(images), labels.to(device))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--waits")
    arguments = parser.parse_args()
    waits = note_waits() if arguments.waits else None
    with tempfile.TemporaryDirectory() as folder:
        train(folder, arguments)
    if arguments.waits:
        with open(arguments.waits, "w") as file:
            json.dump(waits, file)
    print("done")


if __name__ == "__main__":
    main()
