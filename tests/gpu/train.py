#!/usr/bin/env python3
"""A training to be measured on a GPU: ResNet-18 or a small transformer, eager or as a
CUDA graph. Prints one line of JSON: when the measured steps began and ended, how long
they took, and with --profile what torch.profiler saw of them."""

import argparse
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

from captured import captured


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                                          nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


def resnet18():
    layers, inputs = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()], 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(inputs, outputs, stride), Block(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


class Transformer(nn.Module):
    def __init__(self, width=256, depth=4, heads=4):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleDict({"norm1": nn.LayerNorm(width), "qkv": nn.Linear(width, 3 * width),
                           "out": nn.Linear(width, width), "norm2": nn.LayerNorm(width),
                           "up": nn.Linear(width, 4 * width),
                           "down": nn.Linear(4 * width, width)}) for _ in range(depth))
        self.head = nn.Linear(width, 10)
        self.heads = heads

    def forward(self, x):
        batch, length, width = x.shape
        for layer in self.layers:
            q, k, v = (part.reshape(batch, length, self.heads, -1).transpose(1, 2)
                       for part in layer["qkv"](layer["norm1"](x)).chunk(3, -1))
            weights = torch.softmax(q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5, -1)
            mixed = (weights @ v).transpose(1, 2).reshape(batch, length, width)
            x = x + layer["out"](mixed)
            x = x + layer["down"](F.gelu(layer["up"](layer["norm2"](x))))
        return self.head(x.mean(1))


MODELS = {"resnet18": (resnet18, (64, 3, 32, 32)), "transformer": (Transformer, (32, 128, 256))}


class Training:
    def __init__(self, model, graph):
        make, shape = MODELS[model]
        self.model = make().cuda()
        self.x = torch.randn(shape, device="cuda")
        self.y = torch.randint(0, 10, shape[:1], device="cuda")
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.graph = None
        for _ in range(5):
            self.step()
        if graph:
            self.graph, _ = captured(self.forward_and_backward)

    def forward_and_backward(self):
        self.optimizer.zero_grad(set_to_none=False)
        F.cross_entropy(self.model(self.x), self.y).backward()

    def step(self):
        if self.graph is None:
            self.forward_and_backward()
        else:
            self.graph.replay()
        self.optimizer.step()


def union_ms(spans):
    total, reach = 0, float("-inf")
    for start, end in sorted(spans):
        total += max(0, end - max(start, reach))
        reach = max(reach, end)
    return total / 1e3


def profile(training, steps):
    """(kernels, ms in which the device was busy)"""
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiler:
        for _ in range(steps):
            training.step()
        torch.cuda.synchronize()
    # Ranges of the program are drawn on the device's rows, too.
    events = [event for event in profiler.events()
              if event.device_type == torch.autograd.DeviceType.CUDA
              and not event.name.startswith("Optimizer.")]
    spans = [(event.time_range.start, event.time_range.end) for event in events]
    kernels = [event for event in events
               if not event.name.startswith(("Memcpy", "Memset"))]
    return {"kernels": len(kernels), "busy_ms": union_ms(spans)}


def serve(training):
    for line in sys.stdin:
        start = time.monotonic_ns()
        for _ in range(int(line)):
            training.step()
            torch.cuda.synchronize()  # as by a loop that reads its loss
        print((time.monotonic_ns() - start) / 1e6, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--graph", action="store_true")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--serve", action="store_true",
                        help="trains as many steps as each line of the standard input says, and "
                             "answers with the milliseconds that they took")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = False
    training = Training(options.model, options.graph)
    torch.cuda.synchronize()
    result = {"device": torch.cuda.get_device_name(), "torch": torch.__version__,
              "cuda": torch.version.cuda}
    if options.serve:
        print(json.dumps(result), flush=True)
        serve(training)
        return
    if options.profile:
        result.update(profile(training, options.steps))
    else:
        took = []
        time.sleep(0.05)  # a gap in which a report may begin
        result["begin_ns"] = time.monotonic_ns()
        for _ in range(options.steps):
            start = time.monotonic_ns()
            training.step()
            torch.cuda.synchronize()
            took.append((time.monotonic_ns() - start) / 1e6)
        result["end_ns"] = time.monotonic_ns()
        time.sleep(0.05)
        training.step()  # the gap at the end is one, and may be cut
        torch.cuda.synchronize()
        result["step_ms"] = statistics.median(took)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
