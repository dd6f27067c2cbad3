#!/usr/bin/env python3
"""The job of trainer_cost.py: an eager trainer that nobody has tuned. Twelve blocks, AdamW, about
440 launches and 1 200 allocator events a step.

    trainer.py OUT --steps N [--warm-up N] [--workers N] [--profiler]

Waits for a line on its standard input before the steps that count, and once more after them, so
that whoever measures can look at the processes meanwhile; --steps 0: it steps until that second
line comes, or the end of its input. Writes what it saw of itself to OUT.
--workers: batches come from a DataLoader whose workers compute. --profiler: torch.profiler in its
usual schedule, wait 20, warmup 1, active 5.
"""
import argparse
import contextlib
import json
import resource
import sys
import threading
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

WIDTH, TOKENS, BATCH, BLOCKS = 64, 16, 4, 12


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.inner = nn.Linear(WIDTH, 4 * WIDTH)
        self.outer = nn.Linear(4 * WIDTH, WIDTH)
        self.gate = nn.Linear(WIDTH, WIDTH)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        h = self.inner(self.norm(x))
        h = h * torch.sigmoid(1.702 * h)
        return x + 0.5 * torch.tanh(self.gate(x)) * self.dropout(self.outer(h))


class Samples(Dataset):
    """What takes a worker some tenths of a millisecond of computing."""

    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        x = torch.full((TOKENS, WIDTH), float(index % 7))
        for _ in range(20):
            x = torch.sin(x) + 1
        return x


def batches(workers, device):
    if workers == 0:
        x = torch.zeros(BATCH, TOKENS, WIDTH, device=device)
        while True:
            yield x
    torch.set_num_threads(1)
    for x in DataLoader(Samples(), BATCH, num_workers=workers, pin_memory=True):
        yield x.to(device, non_blocking=True)


def usage():
    now = resource.getrusage(resource.RUSAGE_SELF)
    return {"cpu_s": now.ru_utime + now.ru_stime, "waits": now.ru_nvcsw,
            "preemptions": now.ru_nivcsw}


def profiler():
    kinds = torch.profiler.ProfilerActivity
    return torch.profiler.profile(
        activities=[kinds.CPU, kinds.CUDA],
        schedule=torch.profiler.schedule(wait=20, warmup=1, active=5),
        on_trace_ready=lambda profile: None)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--warm-up", type=int, default=20)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--profiler", action="store_true")
    arguments = parser.parse_args()
    device = torch.device("cuda")
    torch.manual_seed(1)
    model = nn.Sequential(*(Block() for _ in range(BLOCKS))).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    source = batches(arguments.workers, device)
    with (profiler() if arguments.profiler else contextlib.nullcontext()) as profile:

        def step():
            loss = model(next(source)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if profile is not None:
                profile.step()

        for _ in range(arguments.warm_up):
            step()
        torch.cuda.synchronize()
        print("warm", flush=True)
        sys.stdin.readline()
        ends = [time.monotonic_ns()]
        before = usage()
        stop = threading.Event()
        if arguments.steps == 0:
            threading.Thread(target=lambda: (sys.stdin.readline(), stop.set())).start()
        while len(ends) <= arguments.steps or arguments.steps == 0 and not stop.is_set():
            step()
            ends.append(time.monotonic_ns())
        after = usage()
        print("done", flush=True)
        sys.stdin.readline()
    with open(arguments.out, "w") as file:
        json.dump({"ends_ns": ends, **{key: after[key] - before[key] for key in after}}, file)


if __name__ == "__main__":
    main()
