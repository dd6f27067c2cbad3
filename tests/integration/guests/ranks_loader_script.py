"""Ranks over gloo, each fed by a DataLoader with two workers, until a file is gone.

Usage: ranks_loader_script.py FILE [FOLDER]   where each rank leaves its workers' pids
"""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.full((16,), float(index))


def goes_on(path, rank):
    """Rank 0 looks; all do the same number of rounds."""
    flag = torch.tensor([1.0 if rank == 0 and os.path.exists(path) else 0.0])
    dist.broadcast(flag, 0)
    return flag.item() != 0


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = torch.nn.Linear(16, 1)
    loader = DataLoader(Squares(), batch_size=4, num_workers=2, persistent_workers=True)
    rounds = 0
    while goes_on(sys.argv[1], rank):
        for batch in loader:
            model.zero_grad()
            model(batch).sum().backward()
            dist.all_reduce(model.weight.grad)
        rounds += 1
        if rounds == 1:
            workers = [worker.pid for worker in loader._iterator._workers]
            with open(os.path.join(sys.argv[2], f"workers.{rank}"), "w") as file:
                print(os.getpid(), *workers, file=file)
    dist.barrier()
    if rank == 0:
        print("trained")
    sys.stdout.flush()
    # As ranks_script.py: PyTorch 1.13 joins gloo's thread while it holds the GIL.
    for worker in loader._iterator._workers:
        worker.terminate()
    os._exit(0)


if __name__ == "__main__":
    main()
