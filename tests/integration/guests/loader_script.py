"""A DataLoader with two workers of each start method; prints what it delivered."""

import threading

import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((16,), float(index * index))


def main():
    torch.set_num_threads(1)
    for method in ("fork", "spawn"):
        loader = DataLoader(Squares(), batch_size=8, num_workers=2,
                            multiprocessing_context=method)
        print(method, [int(batch.sum()) for batch in loader])
    # The queues' feeder threads are daemons, and each may be the last to hold two
    # semaphores. Where the interpreter ends while one of them removes its own, CPython's
    # resource tracker warns that they leaked: without lull, too, about once in 300 runs.
    for thread in threading.enumerate():
        if thread is not threading.main_thread():
            thread.join()


if __name__ == "__main__":
    main()
