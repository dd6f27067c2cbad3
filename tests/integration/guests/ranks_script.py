"""Two ranks over gloo average their gradients, and gather them."""

import os
import sys

import torch
import torch.distributed as dist


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    for step in range(5):
        model.zero_grad()
        model(torch.full((2, 4), float(rank + step))).sum().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= ranks
    gathered = [torch.zeros(4) for _ in range(ranks)]
    dist.all_gather(gathered, model.weight.grad.flatten())
    if rank == 0:
        print([gradient.tolist() for gradient in gathered])
    dist.barrier()
    sys.stdout.flush()
    # Not by the usual way out: PyTorch 1.13 joins gloo's thread while it holds the
    # GIL that this thread may be waiting for.
    os._exit(0)


if __name__ == "__main__":
    main()
