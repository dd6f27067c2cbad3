"""Regions of a training that note themselves: regions.py plain|lightning FILE

record_function and NVTX ranges, one within the other, around a model on the device. FILE
gets {path: [[before, start, end, after, true], ...]}: CLOCK_MONOTONIC in ns just before each
region, just within it, at its end and just after it. lightning needs lightning beside PyTorch.
"""
import json
import logging
import os
import sys
import tempfile
import time
import warnings

import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import record_function
from torch.utils.data import DataLoader, TensorDataset

STEPS, BATCH = 40, 16
now = time.monotonic_ns
noted, stack = {}, []


class Region:
    """Notes where it lies, and for how long."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        stack.append(self.name)
        self.path = "/".join(stack)
        self.before = now()
        self.open()
        self.start = now()

    def __exit__(self, *error):
        end = now()
        self.close()
        after = now()
        stack.pop()
        noted.setdefault(self.path, []).append((self.before, self.start, end, after, True))


class Scope(Region):
    def open(self):
        self.inner = record_function(self.name)
        self.inner.__enter__()

    def close(self):
        self.inner.__exit__(None, None, None)


class Range(Region):
    def open(self):
        torch.cuda.nvtx.range_push(self.name)

    def close(self):
        torch.cuda.nvtx.range_pop()


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(64, 128), nn.Linear(128, 10)

    def forward(self, rows):
        with Scope("forward"):
            with Range("first layer"):
                hidden = F.relu(self.first(rows))
            with Range("second layer"):
                with Scope("matmul"):
                    return self.second(hidden)


def batches():
    rows = torch.randn(STEPS * BATCH, 64)
    return DataLoader(TensorDataset(rows, torch.randint(10, (len(rows),))), BATCH)


def plain():
    network = Network().cuda()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    with Range("epoch"):
        for rows, labels in batches():
            with Scope("step"):
                with Range("copy"):
                    rows, labels = rows.cuda(), labels.cuda()
                loss = F.cross_entropy(network(rows), labels)
                with Scope("backward"):
                    optimizer.zero_grad()
                    loss.backward()
                with Range("update"):
                    optimizer.step()


def lightning_trainer(folder):
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.network = Network()

        def training_step(self, batch, index):
            rows, labels = batch
            with Range("training_step"):
                with Scope("loss"):
                    return F.cross_entropy(self.network(rows), labels)

        def validation_step(self, batch, index):
            with Scope("validation_step"):
                self.network(batch[0])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=1e-3)

        # Lightning calls training_step within the optimizer's step, which is a region.
        def optimizer_step(self, *arguments, **named):
            stack.append("Optimizer.step#SGD.step")
            super().optimizer_step(*arguments, **named)
            stack.pop()

    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    trainer = lightning.Trainer(
        default_root_dir=folder, max_steps=STEPS, accelerator="gpu", devices=1, logger=False,
        limit_val_batches=5, val_check_interval=STEPS // 2, enable_progress_bar=False,
        num_sanity_val_steps=0, enable_model_summary=False, enable_checkpointing=False)
    with Scope("fit"):
        trainer.fit(Module(), batches(), batches())


def main():
    mode, path = sys.argv[1:]
    if mode == "plain":
        plain()
    else:
        with tempfile.TemporaryDirectory() as folder:
            lightning_trainer(folder)
    with open(path, "w") as file:
        json.dump(noted, file)


if __name__ == "__main__":
    main()
