#!/usr/bin/env python3
"""A detector with non-maximum suppression written as a loop over the boxes: overlaps
are computed on the GPU, and each box is decided upon on the CPU. Every round crosses
from the GPU to the CPU and back, and the GPU waits."""

import argparse

import torch
from torch import nn

THRESHOLD = 0.5


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU())
        self.head = nn.Conv2d(64, 5, 3, 2, 1)

    def forward(self, images):
        """(boxes as corners, scores) of each image"""
        found = self.head(self.body(images)).flatten(2).transpose(1, 2)
        corners, sizes = found[..., 0:2], found[..., 2:4].abs()
        return torch.cat((corners, corners + sizes), -1), found[..., 4]


def area(sides):
    return sides[..., 0] * sides[..., 1]


def overlaps(box, others):
    """Intersection over union of one box with each of the others."""
    low = torch.maximum(box[:2], others[:, :2])
    high = torch.minimum(box[2:], others[:, 2:])
    common = area((high - low).clamp(min=0))
    return common / (area(box[2:] - box[:2]) + area(others[:, 2:] - others[:, :2]) - common)


def suppress(boxes, scores):
    order = scores.argsort(descending=True)
    kept = []
    while len(order) > 0:
        best = order[0].item()  # SITE: best
        kept.append(best)
        others = order[1:]
        ratios = overlaps(boxes[best], boxes[others]).cpu()  # SITE: ratios
        survivors = (ratios <= THRESHOLD).nonzero().flatten()
        order = others[survivors.to(boxes.device)]  # SITE: survivors
    return kept


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--size", type=int, default=64)
    arguments = parser.parse_args()

    device = torch.device("cuda")
    detector = Detector().to(device)
    images = torch.rand(1, 3, arguments.size, arguments.size, device=device)
    kept = 0
    for _ in range(arguments.steps):
        boxes, scores = detector(images)
        kept += len(suppress(boxes[0], scores[0]))
    print(f"kept {kept}")


if __name__ == "__main__":
    main()
