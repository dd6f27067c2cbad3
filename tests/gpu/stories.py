#!/usr/bin/env python3
"""Trainings with one known trouble each, on a GPU; stories.py NAME [--steps N].

Each prints a line of JSON: when the steps that count began and ended (CLOCK_MONOTONIC), what
its own stopwatch saw on the host, and how long the device stood still, by events of CUDA's that
were recorded before and after: a clock that no profiler has touched.

  gap_ms         between the end of what a step launched and the begin of what the next one did
  stopwatch_ms   in the line that is marked SITE
"""

import argparse
import gc
import json
import math
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from captured import captured
from turns import turn

SIZE = 2048


class Stopwatch:
    def __init__(self):
        self.ms, self.calls, self._begin = 0.0, 0, 0

    def __enter__(self):
        self._begin = time.monotonic_ns()

    def __exit__(self, *_):
        self.ms += (time.monotonic_ns() - self._begin) / 1e6
        self.calls += 1


class Gaps:
    """The stretches in which the device had nothing to do, by events on its stream. An event
    that is recorded while the device is idle is stamped at once, so that the end of a gap is
    told from the end of the first operation after it, which takes `first_ms`."""

    def __init__(self, first_ms):
        self._first_ms, self._pairs, self._opened = first_ms, [], None

    def closed(self):
        """Right after the first launch of a step."""
        if self._opened is not None:
            self._pairs.append((self._opened, now_on_device()))

    def opens(self):
        """Right after the last launch of a step."""
        self._opened = now_on_device()

    def ms(self):
        torch.cuda.synchronize()
        return sum(opened.elapsed_time(end) - self._first_ms for opened, end in self._pairs)


def now_on_device():
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


class Story:
    def __init__(self):
        self.a = torch.randn(SIZE, SIZE, device="cuda") / math.sqrt(SIZE)
        self.x = torch.randn(SIZE, SIZE, device="cuda")
        self.start_over()

    def start_over(self):
        self.watch, self.gaps = Stopwatch(), Gaps(self.product_ms())

    def product_ms(self):
        x = self.a @ self.x
        begin = now_on_device()
        for _ in range(20):
            x = self.a @ x
        end = now_on_device()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / 20

    def work(self, times=4):
        """Some milliseconds of the device's."""
        x = self.a @ self.x
        self.gaps.closed()
        for _ in range(times - 1):
            x = self.a @ x
        loss = x.sum()
        self.gaps.opens()
        return loss


class Item(Story):
    """The loss is read in each step."""

    def step(self, _):
        loss = self.work()
        with self.watch:
            loss.item()  # SITE: item


class Sleep(Story):
    def step(self, _):
        self.work().item()
        with self.watch:
            time.sleep(0.004)  # SITE: sleep


class Python(Story):
    """Some milliseconds of computing in Python."""

    def step(self, _):
        self.work().item()
        with self.watch:
            sum(math.sqrt(i) for i in range(50_000))  # SITE: python


class Numbers(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.tensor([math.sqrt(i + index) for i in range(2_000)])  # SITE: sample


class Loader(Story):
    """A DataLoader without workers."""

    def __init__(self):
        super().__init__()
        self.batches = iter(DataLoader(Numbers(1 << 20), batch_size=16))

    def step(self, _):
        self.work().item()
        with self.watch:
            next(self.batches)  # SITE: loader


class Malloc(Story):
    """Memory goes back to the driver in each step, and is asked for again."""

    def step(self, _):
        self.work().item()
        with self.watch:
            torch.cuda.empty_cache()  # SITE: free
            y = torch.empty(64 << 20, device="cuda", dtype=torch.uint8)  # SITE: malloc
        del y


class Garbage(Story):
    def step(self, index):
        self.work().item()
        if index % 5 == 0:
            cycles = [[] for _ in range(50_000)]
            for cycle in cycles:
                cycle.append(cycle)
            del cycle, cycles
            with self.watch:
                gc.collect()  # SITE: gc


class Launches(Story):
    """Kernels that are shorter than their launches."""

    def __init__(self):
        super().__init__()
        self.small = torch.zeros(64, device="cuda")

    def step(self, _):
        for _ in range(500):
            self.small.add_(1)  # SITE: small
        torch.cuda.synchronize()


class Compute(Story):
    """The host is ahead by some steps; the device is never idle."""

    def __init__(self):
        super().__init__()
        self.done = []

    def step(self, _):
        self.work(20)
        event = torch.cuda.Event()
        event.record()
        self.done.append(event)
        if len(self.done) > 3:
            with self.watch:
                self.done.pop(0).synchronize()  # SITE: behind


class Copies(Story):
    """Copies of both kinds of memory; those of pageable memory block."""

    def __init__(self):
        super().__init__()
        self.pageable = torch.zeros(16 << 20, dtype=torch.uint8)
        self.pinned = torch.zeros(16 << 20, dtype=torch.uint8).pin_memory()

    def step(self, _):
        self.work()
        with self.watch:
            self.pageable.to("cuda", non_blocking=True)  # SITE: pageable
        self.work()
        self.pinned.to("cuda", non_blocking=True)  # SITE: pinned
        torch.cuda.synchronize()


class Side(Story):
    """The next batch comes on a stream of its own while the device computes."""

    def __init__(self):
        super().__init__()
        self.pinned = torch.zeros(64 << 20, dtype=torch.uint8).pin_memory()
        self.side = torch.cuda.Stream()

    def step(self, _):
        with torch.cuda.stream(self.side):
            batch = self.pinned.to("cuda", non_blocking=True)
        self.work(2)
        torch.cuda.current_stream().wait_stream(self.side)
        batch.record_stream(torch.cuda.current_stream())
        batch.sum(dtype=torch.int64).item()


class Nan(Story):
    """The loss becomes NaN in the middle."""

    def step(self, index):
        loss = self.work() * (float("nan") if index == 10 else 1.0)
        with self.watch:
            loss.item()  # SITE: nan


class Training(Story):
    """A small network, trained: a backward pass, an optimizer, a loss that is logged."""

    def __init__(self):
        super().__init__()
        layers = []
        for _ in range(8):
            layers += [nn.Linear(512, 512), nn.ReLU(), nn.LayerNorm(512)]
        self.model = nn.Sequential(*layers, nn.Linear(512, 10)).cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.batch = torch.randn(256, 512, device="cuda")
        self.labels = torch.randint(0, 10, (256,), device="cuda")

    def step(self, _):
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(self.batch), self.labels)
        loss.backward()  # SITE: backward
        self.optimizer.step()
        with self.watch:
            loss.item()  # SITE: loss


class Graphs(Training):
    """The same, captured once and replayed."""

    def __init__(self):
        super().__init__()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4)
        self.graph, self.loss = captured(self.forward_and_backward)

    def forward_and_backward(self):
        self.optimizer.zero_grad(set_to_none=False)
        loss = nn.functional.cross_entropy(self.model(self.batch), self.labels)
        loss.backward()
        return loss

    def step(self, _):
        self.graph.replay()  # SITE: replay
        self.optimizer.step()
        with self.watch:
            self.loss.item()  # SITE: graph loss


STORIES = {story.__name__.lower(): story for story in
           (Item, Sleep, Python, Loader, Malloc, Garbage, Launches, Compute, Copies, Side, Nan,
            Training, Graphs)}


def profiled(story, steps):
    """torch.profiler's view of the same steps, for a run of its own."""
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=kinds) as profiler:
        for index in range(steps):
            story.step(index)
        torch.cuda.synchronize()
    return profiler


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("story", choices=STORIES)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--trace", help="profile it with torch.profiler, to this file")
    options = parser.parse_args()
    torch.manual_seed(0)
    story = STORIES[options.story]()
    for _ in range(5):
        story.step(1)
    story.start_over()
    result = {"story": options.story, "steps": options.steps,
              "device": torch.cuda.get_device_name(), "torch": torch.__version__,
              "cuda": torch.version.cuda}
    with turn():
        time.sleep(0.05)  # a gap in which a report may begin
        profiler = profiled(story, options.steps) if options.trace else None
        result["begin_ns"] = time.monotonic_ns()
        for index in range(0 if options.trace else options.steps):
            story.step(index)
        torch.cuda.synchronize()
        result["end_ns"] = time.monotonic_ns()
        result.update(gap_ms=story.gaps.ms(), stopwatch_ms=story.watch.ms,
                      calls=story.watch.calls)
        time.sleep(0.05)
        story.step(1)  # the gap at the end is one, and may be cut
        torch.cuda.synchronize()
    if profiler is not None:
        profiler.export_chrome_trace(options.trace)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
