"""A training that keeps a tensor of every step, and then fragments the device's memory
(memory_gib=1): on standard output, as JSON, what PyTorch's own statistics say."""

import json
import os

import torch

MIB = 1 << 20
STEPS = 70
KEPT = 2 * MIB
BYTES = {"dtype": torch.uint8, "device": "cuda"}


def statistics():
    stats = torch.cuda.memory_stats()
    return {name: stats[f"{what}_bytes.all.{when}"]
            for name, what, when in (("live", "allocated", "current"),
                                     ("peak", "allocated", "peak"),
                                     ("reserved", "reserved", "current"),
                                     ("reserved_peak", "reserved", "peak"))} | {
        "retries": stats["num_alloc_retries"]}


def main():
    model = torch.nn.Linear(64, 64, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    kept, steps = [], []
    for _ in range(STEPS):
        scratch = torch.empty(64 * MIB, **BYTES)  # SITE: scratch
        kept.append(torch.empty(KEPT, **BYTES))  # SITE: kept
        model(torch.zeros(8, 64, device="cuda")).sum().backward()
        optimizer.step()
        steps.append(statistics())
        optimizer.zero_grad()
        del scratch
    segment = torch.empty(400 * MIB, **BYTES)
    del segment
    large = torch.empty(600 * MIB, **BYTES)  # SITE: large
    torch.cuda.synchronize()
    print(json.dumps({"steps": steps, "end": statistics()}), flush=True)
    os._exit(0)  # what the interpreter frees on its way out is nobody's business


if __name__ == "__main__":
    main()
