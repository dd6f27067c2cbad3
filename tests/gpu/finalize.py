#!/usr/bin/env python3
"""Is cuptiFinalize() safe while a program works? finalize.py [--windows N]

It would take back what windows of tracing leave on each launch (docs/gpu_results.md). A training
replays a graph, runs backward passes on the engine's thread and has a second thread that launches
on a stream of its own, while CUPTI is enabled, disabled and finalised again and again, without
lull. On the simulated device, which computes nothing, results are always wrong. Prints whether the losses are those of a training that was left alone, and how long the calls
took. A crash is an answer, too."""

import argparse
import statistics
import threading

import torch
from torch import nn

from cupti_cost import KINDS, WINDOW, Cupti


class Work:
    """A few steps of everything; the same each time."""

    def __init__(self):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)).cuda()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.batch = torch.randn(64, 256, device="cuda")
        self.total = torch.zeros(1, device="cuda")
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.total.add_(1)
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            for _ in range(8):
                self.total.add_(1)

    def steps(self, times=4):
        for _ in range(times):
            self.optimizer.zero_grad()
            loss = self.model(self.batch).square().mean()
            loss.backward()
            self.optimizer.step()
            self.graph.replay()
        return loss.item(), self.total.item()


class Beside:
    """A thread that launches all the time, and counts."""

    def __init__(self):
        self.launches, self._over = 0, threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        with torch.cuda.stream(torch.cuda.Stream()):
            x = torch.zeros(16, device="cuda")
            while not self._over.is_set():
                x.add_(1)
                self.launches += 1
                if self.launches % 1000 == 0:
                    torch.cuda.current_stream().synchronize()
            torch.cuda.current_stream().synchronize()
            self.right = bool((x == self.launches).all())

    def stop(self):
        self._over.set()
        self._thread.join()
        return self.right


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=int, default=200)
    windows = parser.parse_args().windows
    alone = Work()
    expected = [alone.steps() for _ in range(2 * windows)]
    work, beside, cupti, took = Work(), Beside(), Cupti(), []
    found = []
    for _ in range(windows):
        cupti.call("cuptiActivityRegisterCallbacks", cupti.requested, cupti.completed)
        for kind in WINDOW:
            cupti.call("cuptiActivityEnable", KINDS[kind])
        found.append(work.steps())
        for kind in reversed(WINDOW):
            cupti.call("cuptiActivityDisable", KINDS[kind])
        cupti.call("cuptiActivityFlushAll", 1)
        took.append(cupti.call("cuptiFinalize"))
        cupti.buffers.clear()
        found.append(work.steps())
    right = beside.stop()
    print(f"{windows} windows: losses {'as' if found == expected else 'NOT as'} without CUPTI, "
          f"the other thread's {beside.launches} launches {'right' if right else 'WRONG'}; "
          f"cuptiFinalize {statistics.median(took):.0f} us, at most {max(took):.0f}")


if __name__ == "__main__":
    main()
