"""A small transformer that is trained with AdamW: each step does the same. With an argument
torch.profiler watches all of it, and its operators that made the GPU do something are on
standard output, as JSON: [name, pass, own operations, own us, operations, us]."""

import json
import sys

import torch
from torch.profiler import ProfilerActivity, profile

STEPS = 4


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(64, 32)
        self.layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        self.head = torch.nn.Linear(32, 64)

    def forward(self, tokens):
        return self.head(self.layer(self.embedding(tokens)))


def train():
    torch.manual_seed(1)
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    tokens = torch.randint(64, (8, 16))
    for _ in range(STEPS):
        batch = tokens.to("cuda")
        loss = torch.nn.functional.cross_entropy(model(batch).flatten(0, 1), batch.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()


def pass_of(event):
    while event is not None:
        if event.name.startswith("Optimizer.step#"):
            return "optimizer"
        if event.name.startswith("autograd::engine::evaluate_function"):
            return "backward"
        event = event.cpu_parent
    return "forward"


def is_operator(name):
    """And no scope that somebody named."""
    return "#" not in name and not name.startswith(("autograd::engine", "cuda", "cu"))


def told_by_profiler(events):
    rows = {}
    for event in events:
        if not event.kernels:
            continue
        where, own, names = pass_of(event), True, set()
        parent = event
        while parent is not None:
            if is_operator(parent.name) and parent.name not in names:
                names.add(parent.name)
                row = rows.setdefault((parent.name, where), [0, 0, 0, 0])
                for kernel in event.kernels:
                    row[2] += 1
                    row[3] += kernel.duration
                    if own:
                        row[0] += 1
                        row[1] += kernel.duration
                own = False
            parent = parent.cpu_parent
    return [[*key, *row] for key, row in rows.items()]


def main():
    if len(sys.argv) == 1:
        return train()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as watch:
        train()
    json.dump(told_by_profiler(watch.events()), sys.stdout)


if __name__ == "__main__":
    main()
