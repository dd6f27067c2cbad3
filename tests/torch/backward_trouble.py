"""Backward passes whose lines are easily told wrong: backward_trouble.py NAME."""

import os
import sys
import threading
import time

import torch
import torch.nn.functional as F


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


INDEX, MASK = None, None
OPERATORS = [
    lambda x, w: x.exp(),
    lambda x, w: F.dropout(x, 0.0),
    lambda x, w: F.dropout(x, 0.5),
    lambda x, w: x.clone().relu_(),
    lambda x, w: x.clone().add_(w[0], alpha=2),
    lambda x, w: x.clone().copy_(w),
    lambda x, w: x.clone().zero_().add_(x),
    lambda x, w: x.clone().fill_(w[0,0]),
    lambda x, w: torch.zeros(64,64,device="cuda").index_add_(0, INDEX, x),
    lambda x, w: torch.zeros(64,64,device="cuda").masked_scatter(x>0, x),
    lambda x, w: x.clone().masked_fill_(MASK, 0.),
    lambda x, w: x.contiguous(memory_format=torch.contiguous_format)*1,
    lambda x, w: x.t().contiguous(),
    lambda x, w: torch.cat([x, x]),
    lambda x, w: torch.stack([x, w]),
    lambda x, w: x.repeat(1,1),
    lambda x, w: x.to(torch.float64),
    lambda x, w: x.double().float(),
    lambda x, w: x.cpu().cuda(),
    lambda x, w: x.half(),
    lambda x, w: F.pad(x,(0,0))*1,
    lambda x, w: F.pad(x,(1,1)),
    lambda x, w: x.roll(1,0),
    lambda x, w: x.flip(0),
    lambda x, w: torch.where(MASK, x, w),
    lambda x, w: x.cumsum(0),
    lambda x, w: x.sort(0)[0],
    lambda x, w: x.topk(3)[0],
    lambda x, w: x.max(0)[0],
    lambda x, w: x.gather(0, INDEX[:,None].expand(64,64)),
    lambda x, w: F.layer_norm(x,(64,)),
    lambda x, w: F.group_norm(x.view(1,64,64),4),
    lambda x, w: F.batch_norm(x,None,None,training=True),
    lambda x, w: F.softmax(x,0),
    lambda x, w: F.log_softmax(x,0),
    lambda x, w: F.cross_entropy(x, INDEX),
    lambda x, w: F.mse_loss(x,w),
    lambda x, w: F.gelu(x),
    lambda x, w: F.silu(x),
    lambda x, w: F.silu(x.clone(),inplace=True),
    lambda x, w: F.leaky_relu(x.clone(),inplace=True),
    lambda x, w: F.embedding(INDEX, x),
    lambda x, w: torch.einsum("ij,jk->ik",x,w),
    lambda x, w: torch.bmm(x.view(1,64,64),w.view(1,64,64)),
    lambda x, w: torch.addmm(w,x,x),
    lambda x, w: x.norm(),
    lambda x, w: x.var(),
    lambda x, w: x.prod(),
    lambda x, w: x.split(32)[0]*1,
    lambda x, w: torch.chunk(x,2)[1]*1,
    lambda x, w: x.unfold(0,2,1)*1,
    lambda x, w: x.diagonal()*1,
    lambda x, w: x.tril(),
    lambda x, w: x.clamp(0,1),
    lambda x, w: x.pow(2),
    lambda x, w: x.abs(),
    lambda x, w: x.masked_select(MASK),
    lambda x, w: x[MASK],
    lambda x, w: x[INDEX],
    lambda x, w: torch.nn.functional.interpolate(x.view(1,1,64,64),scale_factor=2),
    lambda x, w: F.max_pool2d(x.view(1,1,64,64),2),
    lambda x, w: F.avg_pool2d(x.view(1,1,64,64),2),
    lambda x, w: F.conv2d(x.view(1,1,64,64),w[:3,:3].reshape(1,1,3,3)),
    lambda x, w: torch._foreach_add([x,w],1.)[0],
    lambda x, w: torch._foreach_mul([x,w],2.)[0],
    lambda x, w: torch.complex(x,w).real,
    lambda x, w: torch.view_as_real(torch.complex(x,w)),
    lambda x, w: x.lerp(w,0.5),
    lambda x, w: F.normalize(x),
    lambda x, w: x.sum().expand(4)*1,
    lambda x, w: x.clone().sigmoid_(),
    lambda x, w: x.clone().mul_(2.),
    lambda x, w: x.clone().div_(3.),
    lambda x, w: x.clone().sub_(w),
    lambda x, w: torch.cumprod(x,0),
    lambda x, w: x.new_zeros(64,64).copy_(x),
    lambda x, w: torch.empty(64,64,device="cuda").copy_(x, non_blocking=True),
    lambda x, w: x.clone()[:32].mul_(2.),
    lambda x, w: x.clone().t_()*1,
    lambda x, w: x.clone().squeeze_()*1,
    lambda x, w: torch.empty(64,64,device="cuda").set_(x.detach().clone()).add_(x,alpha=3),
    lambda x, w: F.one_hot(INDEX,64).float().mul(x),
    lambda x, w: x.logsumexp(0),
    lambda x, w: F.kl_div(x,w),
    lambda x, w: F.binary_cross_entropy_with_logits(x,w.detach()),
    lambda x, w: x.median(),
    lambda x, w: x.nan_to_num(),
    lambda x, w: F.glu(x),
    lambda x, w: x.renorm(2,0,1),
    lambda x, w: x.kthvalue(2)[0],
    lambda x, w: torch.cdist(x,w),
]


def operators():
    """Whatever an operator does, the next tensor is not its own."""
    global INDEX, MASK
    INDEX = torch.arange(64, device="cuda")
    MASK = torch.ones(64, 64, device="cuda", dtype=torch.bool)
    # Of tensors under 64 KiB few are drawn to have their line told.
    for operator in 20 * OPERATORS:
        x, w = leaf(4096).detach().view(64, 64), leaf(4096).detach().view(64, 64)
        y = operator(x.requires_grad_(), w.requires_grad_())
        torch.zeros(300, device="cuda")  # SITE: next_to_operator
        y = y.real if y.is_complex() else y
        y.float().sum().backward()  # SITE: of_operators


def attached():
    """lull comes in the middle of one thread's backward(); another's begins then."""
    def wait(gradient):
        inside.set()
        came.wait(20)

    def work():
        y = leaf()
        for _ in range(100):
            y = torch.tanh(y)
        y.register_hook(wait)
        y.sum().backward()

    def go_on(gradient):
        came.set()
        thread.join()

    inside, came = threading.Event(), threading.Event()
    thread = threading.Thread(target=work)
    thread.start()
    inside.wait(10)
    print("inside", flush=True)
    sys.stdin.readline()
    torch.zeros(4, device="cuda")
    y = torch.ones(4, requires_grad=True) * 2
    y.register_hook(go_on)
    y.sum().backward()
    for _ in range(3):
        torch.sigmoid(leaf()).sum().backward()  # SITE: after_attach
    torch.cuda.synchronize()
    print("done", flush=True)
    sys.stdin.readline()


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
