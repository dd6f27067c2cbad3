"""Two ranks over gloo: averages a gradient by DistributedDataParallel and gathers."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    for step in range(5):
        model.zero_grad()
        model(torch.full((2, 4), float(rank + step))).sum().backward()
    gathered = [torch.zeros(4) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, model.module.weight.grad.flatten())
    if rank == 0:
        print([gradient.tolist() for gradient in gathered])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
