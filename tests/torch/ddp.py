"""DistributedDataParallel over NCCL, a rank on a device of its own; rank 1 is late in every
fifth step.

    torchrun --nproc_per_node 2 ddp.py [--steps N]"""

import argparse
import time

import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel

EVERY, PAUSE_S = 5, 0.05


def augment(step, rank):
    if rank == 1 and step % EVERY == EVERY - 1:
        time.sleep(PAUSE_S)  # SITE: late


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    steps = parser.parse_args().steps
    torch.distributed.init_process_group("nccl")
    rank = torch.distributed.get_rank()
    torch.cuda.set_device(0)
    layers = [torch.nn.Linear(256, 256) for _ in range(4)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batch = torch.randn(64, 256, device="cuda")
    for step in range(steps):
        augment(step, rank)
        optimizer.zero_grad()
        model(batch).pow(2).mean().backward()
        optimizer.step()
        torch.cuda.synchronize()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
