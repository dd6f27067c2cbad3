"""A training to attach to: attached.py FOLDER. Trains while FOLDER/training is there, then
frees something old, allocates something new, writes to FOLDER/changed what PyTorch's own
statistics say, and waits for FOLDER/alive to go. Removes FOLDER/touch once it has allocated
and freed something more."""

import json
import os
import sys
import time

import torch

MIB = 1 << 20
BYTES = {"dtype": torch.uint8, "device": "cuda"}


def live():
    return torch.cuda.memory_stats()["allocated_bytes.all.current"]


def main():
    folder = sys.argv[1]
    here = lambda name: os.path.exists(os.path.join(folder, name))
    old = [torch.empty(300 * MIB, **BYTES), torch.empty(100 * MIB, **BYTES)]
    model = torch.nn.Linear(256, 256, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    print("training", flush=True)
    steps = []
    while here("training"):
        loss = model(torch.zeros(64, 256, device="cuda")).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        float(loss)  # SITE: loss
        steps.append(live())
        time.sleep(0.002)
    del old[1], loss
    new = torch.empty(50 * MIB, **BYTES)  # SITE: new
    torch.cuda.synchronize()
    with open(os.path.join(folder, "changing"), "w") as file:
        json.dump({"live": live(), "least": steps[-1],
                   "peak": torch.cuda.max_memory_allocated()}, file)
    os.rename(file.name, os.path.join(folder, "changed"))
    while here("alive"):
        time.sleep(0.01)
        if here("touch"):
            torch.empty(MIB, **BYTES)
            os.remove(os.path.join(folder, "touch"))
    print("trained", len(old), new.numel())
    sys.exit(7)


if __name__ == "__main__":
    main()
