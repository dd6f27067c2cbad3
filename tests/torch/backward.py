"""A training whose operators have a line each, so that the lines of its backward nodes
are known. On standard output, as JSON: {node: name of its line}."""

import json
import sys
import threading

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

STEPS = 6
MADE = {}


def made(tensor, name):
    """Remembers which line made the tensor's node."""
    MADE[type(tensor.grad_fn).__name__] = name
    return tensor


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x * 3

    @staticmethod
    def backward(context, gradient):
        torch.empty(1 << 14, device=gradient.device)  # SITE: custom
        return gradient * 3


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3)
        self.linear = torch.nn.Linear(8 * 30 * 30, 64)
        self.last = torch.nn.Linear(64, 64)

    def inner(self, x):
        return torch.tanh(x)  # SITE: recomputed

    def forward(self, x):
        x = made(self.conv(x), "conv")  # SITE: conv
        x = made(F.relu_(x), "relu")  # SITE: relu
        noise = torch.zeros(8, 30, 30, device=x.device)  # makes no node
        x = x + noise
        x = made(F.gelu(x), "gelu")  # SITE: gelu
        x = made(self.linear(x.flatten(1)), "linear")  # SITE: linear
        x = made(F.softmax(x, 1), "softmax")  # SITE: softmax
        x = checkpoint(self.inner, x, use_reentrant=True)
        x = Scale.apply(x)
        view = x[:, :4]
        torch.ones(16, device=x.device)  # the first to allocate after that view
        x = made(view.exp(), "exp")  # SITE: exp
        return made(x.sum(), "sum")  # SITE: sum


def train(model, optimizer):
    for _ in range(STEPS):
        x = torch.ones(16, 3, 32, 32, device="cuda")
        loss = model(x)
        loss.backward()  # SITE: backward
        optimizer.step()
        optimizer.zero_grad()


def second_thread():
    for _ in range(STEPS):
        x = torch.ones(1 << 16, device="cuda", requires_grad=True)
        y = torch.sigmoid(x)  # SITE: thread_forward
        (gradient,) = torch.autograd.grad(y.sum(), x)  # SITE: thread_backward
        del gradient


def main():
    model = Model().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    try:
        (torch.ones(4, device="cuda", requires_grad=True) * 2).backward()  # not a scalar
    except RuntimeError:
        pass
    train(model, optimizer)
    thread = threading.Thread(target=second_thread)
    thread.start()
    thread.join()
    torch.cuda.synchronize()
    json.dump(MADE, sys.stdout)
    print()


if __name__ == "__main__":
    main()
