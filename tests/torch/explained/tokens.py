#!/usr/bin/env python3
"""The loop of many trainings of language models: batches of tokens from a file that is
mapped into memory, and a small GPT."""

import os
import tempfile

import numpy
import torch
import torch.nn.functional as F
from torch import nn

STEPS, BATCH, LENGTH, VOCABULARY, WIDTH, HEADS, LAYERS = 300, 8, 64, 512, 128, 4, 3
TOKENS = 1 << 22


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.project = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(),
                                  nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (part.view(batch, length, HEADS, -1).transpose(1, 2)
                   for part in self.project(self.norm1(x)).split(WIDTH, dim=2))
        scores = (q @ k.transpose(-2, -1)) * (WIDTH // HEADS) ** -0.5
        mask = torch.ones(length, length, device=x.device).tril()
        scores = scores.masked_fill(mask == 0, float("-inf"))
        y = (F.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(batch, length, WIDTH)
        x = x + self.out(y)
        return x + self.feed(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(LENGTH, device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def batch_of(path):
    # Anew each time: a map that is kept holds every page that was ever touched.
    data = numpy.memmap(path, dtype=numpy.uint16, mode="r")
    starts = torch.randint(len(data) - LENGTH - 1, (BATCH,))
    rows = [torch.from_numpy(data[i:i + LENGTH + 1].astype(numpy.int64)) for i in starts]
    both = torch.stack(rows).pin_memory().to("cuda", non_blocking=True)
    return both[:, :-1], both[:, 1:]


def train(path):
    model = Gpt().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for step in range(1, STEPS + 1):
        tokens, targets = batch_of(path)
        loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 10 == 0:
            print(step, loss.item())
    torch.cuda.synchronize()


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tokens.bin")
        numpy.random.default_rng(0).integers(0, VOCABULARY, TOKENS, dtype=numpy.uint16).tofile(path)
        train(path)


if __name__ == "__main__":
    main()
