"""Backward passes whose lines are easily told wrong: backward_trouble.py NAME."""

import os
import sys
import threading
import time

import torch


def leaf(count=1 << 16):
    return torch.ones(count, device="cuda", requires_grad=True)


def thrown():
    """Threads that an exception throws out of backward(), and that end."""
    def fail(gradient):
        raise ValueError("no gradient")

    def work():
        x = leaf()
        x.register_hook(fail)
        try:
            torch.exp(x).sum().backward()
        except ValueError:
            failed.append(1)

    failed = []
    for _ in range(18):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert len(failed) == 18
    for _ in range(4):
        torch.sigmoid(leaf()).sum().backward()  # SITE: after_exceptions


class CallsBackward(torch.autograd.Function):
    """On the CPU, so that the caller's own thread runs it."""

    @staticmethod
    def forward(context, x):
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        with torch.enable_grad():
            y = torch.tanh(leaf())
            for _ in range(20):
                y = torch.tanh(y)
            loss = y.sum()
        within.set()
        loss.backward()  # SITE: inner
        return gradient


within = threading.Event()


def nested():
    """The engine works on the outer graph while a node of it calls backward() again."""
    def wait(gradient):
        within.wait(10)
        time.sleep(0.05)  # the engine is in the inner call by now

    side = leaf()
    y = torch.exp(side)
    y.register_hook(wait)
    x = torch.ones(4, requires_grad=True)
    loss = y.sum() + CallsBackward.apply(x).sum().cuda()
    loss.backward()  # SITE: outer


def spawned():
    """A thread that a hook starts has the name of the engine's thread."""
    def start(gradient):
        if not threads:
            threads.append(threading.Thread(target=other))
            threads[0].start()

    def other():
        started.wait(10)
        torch.sigmoid(leaf()).sum().backward()  # SITE: of_spawned

    def wait(gradient):
        started.set()
        time.sleep(0.2)  # the other thread's nodes are in the queue by now

    threads, started = [], threading.Event()
    x = leaf()
    x.register_hook(start)
    torch.exp(x).sum().backward()
    x = leaf()
    y = torch.tanh(torch.tanh(x))
    y.register_hook(wait)
    y.sum().backward()  # SITE: of_main
    threads[0].join()


def first_in_place():
    """The first node of a thread is made by an operator that allocates nothing."""
    weight = leaf()
    for _ in range(3):
        torch.zeros(4, device="cuda")
    buffer = torch.zeros(1 << 16, device="cuda")
    buffer.add_(weight, alpha=2)  # SITE: in_place
    torch.zeros(1 << 14, device="cuda")  # SITE: next_tensor
    buffer.sum().backward()


def scripted():
    """A node whose class no other file of PyTorch's sees."""
    @torch.jit.script
    def layer(x):
        return torch.tanh(torch.sigmoid(x) * 2)

    torch._C._jit_override_can_fuse_on_gpu(False)
    torch._C._jit_set_nvfuser_enabled(False)
    for _ in range(5):
        layer(leaf()).sum().backward()


def slept(folder):
    """Makes nodes while lull sleeps, and goes backward when it looks again."""
    def reached(name):
        open(os.path.join(folder, name), "w").close()
        while os.path.exists(os.path.join(folder, name)):
            time.sleep(0.01)

    torch.exp(leaf()).sum().backward()
    reached("awake")
    x = leaf()
    torch.exp(x).sum().backward()
    reached("asleep")
    y = torch.sigmoid(x)  # SITE: made_asleep
    reached("awake_again")
    torch.zeros(1 << 14, device="cuda")  # SITE: first_awake
    y.sum().backward()
    reached("done")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
    torch.cuda.synchronize()
