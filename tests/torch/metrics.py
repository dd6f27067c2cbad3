#!/usr/bin/env python3
"""A small residual network on random images whose metrics are collected at every
step, the way most people write it. MeanMetric.update() then synchronises with the GPU
at two lines: its default weight, a Python float, becomes a tensor on the GPU, and
values and weights are searched for NaN. `--fixed` gives a weight that is on the GPU
already, and does without the search."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchmetrics import Accuracy, F1Score, MeanMetric, Precision, Recall

CLASSES = 10


class RandomImages(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.rand(3, 32, 32), index % CLASSES


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


def network():
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
        Block(64, 64, 1), Block(64, 128, 2), Block(128, 256, 2), Block(256, 512, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, CLASSES))


class TrustingMean(MeanMetric):
    """Without the search for NaN."""

    def _cast_and_nan_check_input(self, x, weight=None):
        return x, weight


class Metrics:
    def __init__(self, device, fixed):
        self.fixed = fixed
        self.loss = (TrustingMean() if fixed else MeanMetric()).to(device)
        self.others = [kind(task="multiclass", num_classes=CLASSES).to(device)
                       for kind in (Accuracy, Precision, Recall, F1Score)]

    def update(self, loss, logits, labels):
        if self.fixed:
            self.loss.update(loss, weight=torch.ones_like(loss))
        else:
            self.loss.update(loss)
        for metric in self.others:
            metric.update(logits, labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()

    device = torch.device("cuda")
    model = network().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    metrics = Metrics(device, arguments.fixed)
    loader = DataLoader(RandomImages(arguments.steps * arguments.batch), arguments.batch,
                        num_workers=arguments.workers, pin_memory=True)
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        logits = model(images)
        loss = F.cross_entropy(logits, labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        metrics.update(loss.detach(), logits.detach(), labels)
    torch.cuda.synchronize()
    print(f"loss {metrics.loss.compute().item():.3f}")


if __name__ == "__main__":
    main()
