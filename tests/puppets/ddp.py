# DDP over gloo on the CPU: with --late rank 1 sleeps in every tenth step, with --busy it computes
# in every third, with --hang N it never comes back from step N. Each rank writes into STORE.RANK when
# its gradients were ready in each step, which is when it came to the collective ("arrived"), and how
# long it slept in it ("slept"), in ns of CLOCK_MONOTONIC.
import argparse
import json
import os
import time
import torch
import torch.distributed as dist


def stuck():
    time.sleep(600)  # SITE: hang


def augment(step):
    if rank == 1 and step == options.hang:
        stuck()
    if late and step % 10 == 9:
        before = time.monotonic_ns()
        time.sleep(0.05)  # SITE: late
        slept[step] = time.monotonic_ns() - before
    if busy and step % 3 == 2:
        end = time.monotonic() + 0.03
        while time.monotonic() < end:
            sum(range(5000))  # SITE: busy


def ready(_):
    arrived[-1] = time.monotonic_ns()


def train(model, optimizer):
    for step in range(options.steps):
        arrived.append(None)
        slept.append(0)
        augment(step)
        optimizer.zero_grad()
        model(torch.ones(8, 64)).sum().backward()  # SITE: backward
        optimizer.step()


parser = argparse.ArgumentParser()
parser.add_argument("--store")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--late", action="store_true")
parser.add_argument("--busy", action="store_true")
parser.add_argument("--hang", type=int, metavar="STEP")
options = parser.parse_args()
if "RANK" in os.environ:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
else:  # srun
    rank, world = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
late = options.late and rank == 1
busy = options.busy and rank == 1
arrived, slept = [], []
torch.set_num_threads(1)
# torchrun of Debian's PyTorch 1.13 does not run under Python 3.11: a file is the meeting point.
dist.init_process_group("gloo", init_method=f"file://{options.store}", rank=rank,
                        world_size=world)
layers = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(8)])
# The last gradients to be ready: all are in one bucket, which is sent then.
for parameter in layers[0].parameters():
    parameter.register_hook(ready)
replica = torch.nn.parallel.DistributedDataParallel(layers)
train(replica, torch.optim.SGD(replica.parameters(), lr=0.01))
dist.barrier()
with open(f"{options.store}.{rank}", "w") as file:
    json.dump({"arrived": arrived, "slept": slept}, file)
