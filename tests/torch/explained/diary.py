#!/usr/bin/env python3
"""A loop that says much of itself: it logs each step, keeps curves in Python lists, and
writes a checkpoint now and then."""

import json
import logging
import os
import statistics
import tempfile

import torch
import torch.nn.functional as F
from torch import nn

STEPS = 800


def summarise(losses):
    recent = losses[-50:]
    return {"mean": statistics.fmean(recent), "median": statistics.median(recent),
            "deciles": statistics.quantiles(recent, n=10) if len(recent) > 1 else []}


def write_checkpoint(model, optimizer, folder, step):
    path = os.path.join(folder, f"{step}.pt")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    os.unlink(path)


def train(folder):
    logging.basicConfig(filename=os.path.join(folder, "log"), level=logging.INFO)
    model = nn.Sequential(*[nn.Linear(256, 256) for _ in range(8)]).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for step in range(1, STEPS + 1):
        rows = torch.randn(64, 256)
        loss = F.mse_loss(model(rows.cuda()), torch.zeros(64, 256, device="cuda"))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        logging.info("step %d %s", step, json.dumps(summarise(losses)))
        if step % 50 == 0:
            write_checkpoint(model, optimizer, folder, step)
    torch.cuda.synchronize()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as its_folder:
        train(its_folder)
