#!/usr/bin/env python3
"""What the driver does, which no simulation can know: facts.py. Prints JSON; times in us.

How long cudaMalloc and cudaFree block while kernels run, which "asynchronous" copies of pageable
memory block by size, what a launch and the reading of an event cost the host."""

import ctypes
import json
import statistics
import time

import torch

from mapped import mapped


def us(call, times=1):
    took = []
    for _ in range(times):
        start = time.perf_counter_ns()
        call()
        took.append((time.perf_counter_ns() - start) / 1e3)
    return {"median": statistics.median(took), "least": min(took), "most": max(took)}


def main():
    cudart = mapped("libcudart.so")
    pointer = ctypes.c_void_p()
    a = torch.randn(4096, 4096, device="cuda")
    result = {"device": torch.cuda.get_device_name(), "torch": torch.__version__,
              "cuda": torch.version.cuda}

    def busy(times=8):
        for _ in range(times):
            a @ a

    busy()
    torch.cuda.synchronize()
    result["busy_stretch"] = us(lambda: (busy(), torch.cuda.synchronize()), 5)

    def malloc(size):
        if cudart.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)) != 0:
            raise SystemExit("facts: cudaMalloc failed")

    for size in (1 << 20, 64 << 20, 1 << 30):
        rows = {"idle": {}, "busy": {}}
        for state in ("idle", "busy"):
            took = {"cudaMalloc": [], "cudaFree": []}
            for _ in range(5):
                torch.cuda.synchronize()
                if state == "busy":
                    busy()
                took["cudaMalloc"].append(us(lambda: malloc(size))["median"])
                torch.cuda.synchronize()
                if state == "busy":
                    busy()
                took["cudaFree"].append(us(lambda: cudart.cudaFree(pointer))["median"])
            rows[state] = {name: statistics.median(times) for name, times in took.items()}
        result[f"alloc_{size >> 20}_mib"] = rows

    copies = {}
    for kind in ("pageable", "pinned"):
        for direction in ("to", "from"):
            for size in (256, 1 << 10, 16 << 10, 64 << 10, 65 << 10, 256 << 10, 1 << 20, 16 << 20):
                here = torch.zeros(size, dtype=torch.uint8)
                here = here.pin_memory() if kind == "pinned" else here
                there = torch.zeros(size, dtype=torch.uint8, device="cuda")
                target, source = (there, here) if direction == "to" else (here, there)
                for state in ("idle", "busy"):
                    took = []
                    for _ in range(5):
                        torch.cuda.synchronize()
                        if state == "busy":
                            busy()
                        took.append(us(lambda: target.copy_(source, non_blocking=True))["median"])
                    copies[f"{kind} {direction} {size} {state}"] = statistics.median(took)
    result["copies"] = copies

    small = torch.zeros(16, device="cuda")

    def launches():
        for _ in range(1000):
            small.add_(1)

    launches()
    torch.cuda.synchronize()
    result["add__1000"] = us(lambda: (launches(), torch.cuda.synchronize()), 20)
    event = torch.cuda.Event()
    result["event_record"] = us(event.record, 1000)
    torch.cuda.synchronize()
    result["event_query"] = us(event.query, 1000)
    result["synchronize_idle"] = us(torch.cuda.synchronize, 1000)
    result["item_idle"] = us(small.sum().item, 200)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
