"""A training on the CPU whose data set measures itself with its own clock.

    loader_costs.py --workers N --start METHOD --seconds S --file FILE [--rest]

Each item says how long its three lines took, so that the sums come to the training with
the batches, whoever made them. FILE gets {"decode": s, "augment": s, "fetch": s,
"batches": n, "pace": s}: pace is the time that the training had for itself. With --rest
the lines sleep, so that no processor is needed, and a batch takes 0.12 s in a worker
against 0.04 s in the training: three workers keep up.
"""
import argparse
import json
import time

import torch
from torch.utils.data import DataLoader, Dataset

BATCH = 4


def pause(seconds, rest):
    if rest:
        time.sleep(seconds)
        return
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def decode(rest):
    pause(0.018, rest)  # SITE: decode


def augment(rest):
    pause(0.009, rest)  # SITE: augment


class Pictures(Dataset):
    def __init__(self, rest):
        self.rest = rest

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        begin = time.perf_counter()
        decode(self.rest)
        middle = time.perf_counter()
        augment(self.rest)
        end = time.perf_counter()
        pause(0.003, self.rest)  # SITE: rest of it
        return torch.tensor([middle - begin, end - middle, time.perf_counter() - begin],
                            dtype=torch.float64)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--start", default="fork")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rest", action="store_true")
    parser.add_argument("--file", required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    loader = DataLoader(
        Pictures(arguments.rest), BATCH, num_workers=arguments.workers,
        multiprocessing_context=arguments.start if arguments.workers else None)
    end = None
    sums, batches, pace = torch.zeros(3, dtype=torch.float64), 0, 0.0
    for batch in loader:
        begin = time.perf_counter()
        end = end or begin + arguments.seconds
        sums += batch.sum(0)
        batches += 1
        time.sleep(0.04)
        pace += time.perf_counter() - begin
        if time.perf_counter() > end:
            break
    decode_s, augment_s, fetch_s = sums.tolist()
    with open(arguments.file, "w") as file:
        json.dump({"decode": decode_s, "augment": augment_s, "fetch": fetch_s,
                   "batches": batches, "pace": pace}, file)


if __name__ == "__main__":
    main()
