#!/usr/bin/env python3
"""A training that profiles itself for a few steps in the middle, twice, with
torch.profiler, and writes the traces that people look at: TRACE.0 and TRACE.1."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import ProfilerActivity

BATCH, WIDTH = 32, 64


class Training:
    def __init__(self, device):
        self.model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.LayerNorm(WIDTH),
                                   nn.Linear(WIDTH, 10)).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.labels = torch.zeros(BATCH, dtype=torch.long, device=device)
        self.device = device

    def step(self):
        images = torch.rand(BATCH, WIDTH).to(self.device)
        loss = F.cross_entropy(self.model(images), self.labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def run(self, steps):
        for _ in range(steps):
            self.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trace")
    parser.add_argument("--between", type=int, default=300, help="steps not profiled")
    parser.add_argument("--profiled", type=int, default=20)
    arguments = parser.parse_args()

    training = Training(torch.device("cuda"))
    training.run(arguments.between)
    for session in range(2):
        torch.cuda.synchronize()
        with torch.profiler.profile(
                activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profile:
            training.run(arguments.profiled)
        profile.export_chrome_trace(f"{arguments.trace}.{session}")
        training.run(arguments.between)
    torch.cuda.synchronize()
    print("done")


if __name__ == "__main__":
    main()
