"""What backward work costs beside what it is: a look at the node that runs, and the
question of every launch whether a node was made. Needs PyTorch 2.0 or later, of whatever
device:

    probe=build/tests/preload/liblull_torch_probe.so
    LULL_STACKS_PROBE=$probe LD_PRELOAD=$probe python tests/bench/backward.py
"""

import gc
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "preload", "puppets"))
import torch  # noqa: E402
import probe  # noqa: E402

BACKWARD, WANTED, CLOCK = 4, 5, 3


class Measure(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x * 2

    @staticmethod
    def backward(context, gradient):
        probe.library.probe_pretend_engine(1)
        measured["look at the node"] = probe.library.probe_cost(BACKWARD)
        probe.library.probe_pretend_engine(0)
        return gradient


measured = {}
probe.install()
gc.collect()
x = torch.ones(10, requires_grad=True)
Measure.apply(x).sum().backward()
y = x * 2
measured["question at a launch"] = probe.library.probe_cost(WANTED)
clock = probe.library.probe_cost(CLOCK)
for name, cost in measured.items():
    sys.stdout.write("%-22s %4.0f ns = %4.1f clock reads\n" % (name, cost, cost / clock))
