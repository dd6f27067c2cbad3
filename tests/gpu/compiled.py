#!/usr/bin/env python3
"""torch.compile: Triton compiles kernels, with processes of its own, and launches them."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 256), nn.GELU(), nn.LayerNorm(256), nn.Linear(256, 16)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
compiled = torch.compile(model)
batch = torch.randn(128, 256, device="cuda")
for step in range(40):
    loss = compiled(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 10 == 0:
        print(f"{step}: {loss.item():.4f}")
print("done")
