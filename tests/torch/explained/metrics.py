#!/usr/bin/env python3
"""A small network whose metrics are TorchMetrics', updated at each step and computed
now and then, the way most people write it."""

import torch
import torch.nn.functional as F
from torch import nn
from torchmetrics import Accuracy, F1Score, MeanMetric, MetricCollection, Precision

STEPS, BATCH, CLASSES = 2000, 64, 10


def main():
    device = torch.device("cuda")
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, CLASSES)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    mean = MeanMetric().to(device)
    others = MetricCollection([kind(task="multiclass", num_classes=CLASSES)
                               for kind in (Accuracy, Precision, F1Score)]).to(device)
    for step in range(1, STEPS + 1):
        rows = torch.randn(BATCH, 64).to(device)
        labels = torch.randint(CLASSES, (BATCH,)).to(device)
        logits = model(rows)
        loss = F.cross_entropy(logits, labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        mean.update(loss.detach())
        others.update(logits.detach(), labels)
        if step % 20 == 0:
            print(step, mean.compute().item(),
                  {name: value.item() for name, value in others.compute().items()})
            others.reset()
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
