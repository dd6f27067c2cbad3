#!/usr/bin/env python3
"""NCCL with one rank: all-reduces of its own streams, as DDP uses them."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
store = dist.TCPStore("127.0.0.1", 0, 1, is_master=True)
dist.init_process_group("nccl", store=store, rank=0, world_size=1)
torch.manual_seed(0)
model = DistributedDataParallel(
    nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 16)).cuda(), device_ids=[0])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batch = torch.randn(128, 256, device="cuda")
for step in range(200):
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    dist.all_reduce(loss)
    if step % 50 == 0:
        print(f"{step}: {loss.item():.4f}")
dist.barrier()
dist.destroy_process_group()
print("done")
