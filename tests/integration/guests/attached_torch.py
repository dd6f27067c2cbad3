"""A small training on the CPU with PyTorch: attached_torch.py STEPS|FILE. Runs for so many
steps, or until FILE is gone; in the end prints the loss of each step to the last bit."""

import os
import sys
import time

import torch
import torch.utils.data


class Pictures(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randn(3, 16, 16, generator=generator), index % 10


def main():
    torch.manual_seed(1)
    torch.set_num_threads(2)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3),
        torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 12 * 12, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loader = torch.utils.data.DataLoader(Pictures(), batch_size=8, num_workers=1)
    print("training", flush=True)
    until, losses = sys.argv[1], []
    for pictures, labels in loader:
        if (len(losses) == int(until) if until.isdigit() else not os.path.exists(until)):
            break
        loss = torch.nn.functional.cross_entropy(model(pictures), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item().hex())
        if not until.isdigit():
            time.sleep(0.03)  # few steps to repeat
    print(len(losses), *losses)
    sys.exit(7)


if __name__ == "__main__":
    main()
