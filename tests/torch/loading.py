"""A loader whose workers spend their time in two known functions.

usage: loading.py fork|spawn|forkserver SECONDS
"""

import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset


def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def decode():
    spin(0.006)


def augment():
    spin(0.003)


class Pictures(Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        decode()
        augment()
        return torch.full((64,), float(index))


def main():
    loader = DataLoader(Pictures(), batch_size=4, num_workers=2,
                        multiprocessing_context=sys.argv[1])
    end = None
    for batch in loader:
        end = end or time.perf_counter() + float(sys.argv[2])
        torch.relu(batch).sum()
        if time.perf_counter() > end:
            break
    print("done")


if __name__ == "__main__":
    main()
