#!/usr/bin/env python3
"""A training whose loss is no number from step 7 on. Nobody looks at the loss but a log
line, which reads it back at every step."""

import argparse

import torch

EXPLODES_AT = 7


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10)
    arguments = parser.parse_args()

    device = torch.device("cuda")
    weight = torch.nn.Parameter(torch.zeros(4, device=device))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for step in range(arguments.steps):
        # Kernels compute nothing on the simulated device, but what is copied arrives.
        loss = torch.tensor(float("nan") if step >= EXPLODES_AT else 0.5).to(device)
        weight.grad = torch.zeros_like(weight)
        optimizer.step()
        print(f"step {step}: {loss.item()}")  # SITE: log


if __name__ == "__main__":
    main()
