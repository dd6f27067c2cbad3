"""Ranks of a training on one host, each with DataLoader workers of its own, that mostly sleep:

    ranks.py SECONDS RANKS WORKERS [STEP_MS [LAUNCHES]]

Each step takes a batch, launches kernels on the simulated device and reads a value back; the
optimizer is PyTorch's on the CPU, so that steps are seen. Prints the number of steps of each
rank.
"""

import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def rank(seconds, workers, step_s, launches):
    import torch
    from torch.utils.data import DataLoader, Dataset

    from patterns import Device

    class Rows(Dataset):
        def __len__(self):
            return 1 << 30

        def __getitem__(self, index):
            time.sleep(0.3 * step_s * workers / 4)  # reading
            return torch.tensor([float(sum(range(2000)) % 7)])  # decoding

    torch.set_num_threads(1)
    device = Device()
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    loader = iter(DataLoader(Rows(), 4, num_workers=workers, multiprocessing_context="fork"))
    first = time.monotonic()
    steps = 0
    while time.monotonic() < first + seconds:
        batch = next(loader)
        for _ in range(launches):
            device.launch("short_kernel")
        device.item()
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
        steps += 1
        time.sleep(max(0, first + steps * step_s - time.monotonic()))
    print(steps, flush=True)


def main():
    seconds, ranks, workers = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    step_ms, launches = (sys.argv[4:] + ["50", "20"][len(sys.argv) - 4:])[:2]
    if "RANK" in os.environ:
        rank(seconds, workers, float(step_ms) / 1e3, int(launches))
        os._exit(0)  # the workers end with the processes that they are daemons of
    started = [subprocess.Popen([sys.executable, *sys.argv],
                                env={**os.environ, "RANK": str(one), "WORLD_SIZE": str(ranks),
                                     "LOCAL_RANK": str(one)})
               for one in range(ranks)]
    sys.exit(max(one.wait() for one in started))


if __name__ == "__main__":
    main()
