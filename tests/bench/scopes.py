#!/usr/bin/env python3
"""What a scope of record_function costs: without a callback, with one that has nothing to
record, and recorded. The shim's parts are loaded into this process
(tests/preload/stacks_probe.cc); needs PyTorch. And what an operator costs, which should
notice nothing."""
import gc
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "preload",
                                "puppets"))
try:
    import torch
    from torch.profiler import record_function
except ImportError:
    print("no PyTorch")
    sys.exit(0)
import probe

torch.set_num_threads(1)
one = torch.ones(1)


def scopes(count=400):
    start = time.perf_counter_ns()
    for _ in range(count):
        with record_function("a scope"):
            pass
    return (time.perf_counter_ns() - start) / count


def operators(count=2000):
    start = time.perf_counter_ns()
    for _ in range(count):
        torch.add(one, one)
    return (time.perf_counter_ns() - start) / count


def main():
    without = min(scopes() for _ in range(50)), min(operators() for _ in range(50))
    probe.install()
    gc.collect()
    assert probe.library.probe_scope_hook() == 2, "PyTorch's callback is not in"
    measured = {0: [], 1: []}
    for _ in range(50):
        for armed in measured:
            probe.library.probe_arm(armed)
            measured[armed].append((scopes(), operators()))
    assert len(probe.events(probe.SCOPE)) == 50 * 400
    for what, at in (("scope", 0), ("operator", 1)):
        asleep, armed = (min(pair[at] for pair in measured[state]) for state in (0, 1))
        print(f"{what}: {without[at]:.0f} ns without, {asleep:.0f} asleep "
              f"({asleep / without[at]:.3f}), {armed:.0f} recorded "
              f"({armed / without[at]:.3f})")


main()
