#!/usr/bin/env python3
"""Replays a CUDA graph while kinds of CUPTI's activities are enabled and disabled again that were
not when the graph was made (docs/decisions/no_graph_trace.md): older_graph.py KIND[,KIND...]. With
graph_trace among them it is expected to die; lull is not in the process."""

import sys

import torch

from cupti_cost import KINDS, Cupti
from train import Training

WINDOWS = 40


def main():
    kinds = list(KINDS) if sys.argv[1] == "all" else sys.argv[1].split(",")
    training = Training("resnet18", graph=True)
    torch.cuda.synchronize()
    cupti = Cupti()
    cupti.call("cuptiActivityRegisterCallbacks", cupti.requested, cupti.completed)
    for _ in range(WINDOWS):
        for kind in kinds:
            cupti.call("cuptiActivityEnable", KINDS[kind])
        for _ in range(5):
            training.step()
            torch.cuda.synchronize()
        for kind in reversed(kinds):
            cupti.call("cuptiActivityDisable", KINDS[kind])
        cupti.call("cuptiActivityFlushAll", 0)
        for _ in range(20):
            training.step()
        torch.cuda.synchronize()
    print("done:", ", ".join(kinds), f"{cupti.bytes} bytes of records")


if __name__ == "__main__":
    main()
