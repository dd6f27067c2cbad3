#!/usr/bin/env python3
"""A small, real training job: a CNN over a folder of PNG files, on the CPU.

It knows nothing of lull. It measures by itself what lull is to find out without
its help, and writes it to --result as JSON: the time spent inside next(loader),
and the number and duration of the garbage collector's runs.
"""

import gc
import sys
import time

# Before anything else is imported, so that no collection goes by unmeasured.
collections = {"count": 0, "total_s": 0.0, "before_timer": 0}
collections["before_timer"] = sum(s["collections"] for s in gc.get_stats())


def time_collection(phase, info, clock=time.perf_counter, began=[0.0]):
    if sys.is_finalizing():
        return  # what the interpreter collects on its way out is no pause of the job
    if phase == "start":
        began[0] = clock()
        return
    collections["total_s"] += clock() - began[0]
    collections["count"] += 1
    if rewrite_result is not None:
        rewrite_result()  # other atexit handlers, which run later, may collect too


rewrite_result = None
gc.callbacks.append(time_collection)

import argparse
import atexit
import json
import os
from pathlib import Path

import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset


class PngFolder(Dataset):
    """One sample per file; the label is the file's number modulo ten."""

    def __init__(self, folder, side):
        self.files = sorted(Path(folder).glob("*.png"))
        self.side = side

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        with Image.open(self.files[index]) as image:
            small = image.convert("RGB").resize((self.side, self.side), Image.BILINEAR)
        pixels = torch.frombuffer(bytearray(small.tobytes()), dtype=torch.uint8)
        pixels = pixels.reshape(self.side, self.side, 3).permute(2, 0, 1)
        return pixels.float() / 255.0, index % 10


def step_back(_worker):
    os.nice(2)  # the training loop comes first where there are few processors


class SmallCnn(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4),
            nn.Flatten(), nn.Linear(32 * 16, 10))


class Record:
    """A log entry that knows its batch, which knows its entries: a cycle."""

    def __init__(self, batch, index):
        self.batch, self.index = batch, index


def remember(history, batch_number, keep):
    batch = {"number": batch_number}
    batch["records"] = [Record(batch, i) for i in range(4000)]
    history.append(batch)
    del history[:-keep]  # what falls out is garbage that only the collector finds


def train(args):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(PngFolder(args.data, args.side), batch_size=args.batch,
                        shuffle=True, num_workers=args.workers,
                        worker_init_fn=step_back)
    model = SmallCnn()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    loss_function = nn.CrossEntropyLoss()
    history, batches, data_wait_s, loss = [], 0, 0.0, None
    for epoch in range(args.epochs):
        batch_iterator = iter(loader)
        while True:
            began = time.perf_counter()
            batch = next(batch_iterator, None)
            data_wait_s += time.perf_counter() - began
            if batch is None:
                break
            images, labels = batch
            optimizer.zero_grad()
            loss = loss_function(model(images), labels)
            loss.backward()
            optimizer.step()
            batches += 1
            remember(history, batches, args.keep)
        print(f"epoch {epoch + 1}/{args.epochs}: loss {loss.item():.3f}", flush=True)
    return {"batches": batches, "data_wait_s": data_wait_s, "final_loss": loss.item()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder of PNG files")
    parser.add_argument("--result", required=True, help="JSON file to write")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--side", type=int, default=64, help="pixels after resizing")
    parser.add_argument("--keep", type=int, default=40, help="batches to remember")
    args = parser.parse_args()

    began = time.perf_counter()
    result = train(args)
    result["train_s"] = time.perf_counter() - began

    def write_result(dumps=json.dumps, pid=os.getpid(), getpid=os.getpid):
        if getpid() == pid:
            with open(args.result, "w") as file:
                file.write(dumps({**result, "workers": args.workers, "gc": collections}))

    def last_word():
        global rewrite_result
        write_result()
        rewrite_result = write_result

    atexit.register(last_word)


if __name__ == "__main__":
    main()
