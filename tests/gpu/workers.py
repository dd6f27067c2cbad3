#!/usr/bin/env python3
"""A DataLoader with worker processes and pinned memory, whose thread pins what they send."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Noise(Dataset):
    def __len__(self):
        return 64 * 60

    def __getitem__(self, index):
        return torch.full((3, 64, 64), float(index % 7))


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(16, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    total = 0.0
    for batch in DataLoader(Noise(), 64, num_workers=4, pin_memory=True, persistent_workers=True):
        loss = model(batch.cuda(non_blocking=True)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total += loss.item()
    print(f"{total:.2f}")


if __name__ == "__main__":
    main()
