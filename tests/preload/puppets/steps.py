"""Scenarios for the step hook: steps.py NAME. Exit status 0 passes.

`torch` here is a module of our own with the one function that the hook needs, as
PyTorch has it since 2.0; the real one runs under the label `torch`.
"""
import gc
import os
import sys
import time
import types

import probe

PENDING, ON, UNAVAILABLE = 1, 2, 3
post_hooks = []


class Optimizer:
    def step(self):
        for hook in post_hooks:
            assert hook(self, (), {}) is None


def register_optimizer_step_post_hook(hook):
    post_hooks.append(hook)
    return object()


def import_torch(**contents):
    for name in ("torch", "torch.optim", "torch.optim.optimizer"):
        sys.modules[name] = types.ModuleType(name)
    vars(sys.modules["torch.optim.optimizer"]).update(contents)


def import_torch_2():
    import_torch(Optimizer=Optimizer,
                 register_optimizer_step_post_hook=register_optimizer_step_post_hook)


def steps():
    return probe.events(probe.STEP)


def installed_by_a_collection():
    probe.install()
    gc.collect()
    assert probe.library.probe_step_hook() == PENDING
    import_torch_2()
    gc.collect()
    assert probe.library.probe_step_hook() == ON
    gc.collect()
    assert len(post_hooks) == 1


def installed_by_a_pending_call():
    probe.install()
    gc.disable()
    import_torch_2()
    now = time.monotonic_ns()
    probe.library.probe_poll_steps(now)
    for _ in range(1000):
        pass
    assert probe.library.probe_step_hook() == ON
    assert len(post_hooks) == 1


def not_asked_for_twice_in_a_moment():
    probe.install()
    gc.disable()
    now = time.monotonic_ns()
    probe.library.probe_poll_steps(now)
    for _ in range(1000):
        pass
    import_torch_2()
    probe.library.probe_poll_steps(now + 1000)
    for _ in range(1000):
        pass
    assert probe.library.probe_step_hook() == PENDING
    probe.library.probe_poll_steps(now + 10**9)
    for _ in range(1000):
        pass
    assert probe.library.probe_step_hook() == ON


def unavailable_before_torch_2():
    probe.install()
    import_torch()  # at its start: nothing is defined yet
    gc.collect()
    assert probe.library.probe_step_hook() == PENDING
    sys.modules["torch.optim.optimizer"].Optimizer = Optimizer
    gc.collect()
    assert probe.library.probe_step_hook() == UNAVAILABLE


def a_step_from_boundary_to_boundary():
    probe.install()
    import_torch_2()
    gc.collect()
    optimizer = Optimizer()
    times = []

    def boundary():
        before = time.monotonic_ns()
        optimizer.step(); stack = probe.frames()
        times.append((before, time.monotonic_ns()))
        return stack

    boundary()
    assert steps() == []
    for number in range(5):
        time.sleep(0.002)
        boundary()
        event = steps()[number]
        assert (event.arg0, event.arg2) == (number, 1)
        for at, (low, high) in zip((event.start_ns, event.start_ns + event.duration_ns),
                                   times[number:number + 2]):
            assert low <= at <= high, (low, at, high)
        _, found = probe.decode(event.py_stack)
        assert found[0][2].endswith("step") and found[1][2].endswith("boundary"), found


def two_optimizers_make_one_step():
    probe.install()
    import_torch_2()
    gc.collect()
    first, second = Optimizer(), Optimizer()
    for _ in range(10):
        first.step()
        second.step()
    assert len(steps()) == 9
    phase = Optimizer()  # a new one goes on where the others stopped
    for _ in range(10):
        phase.step()
    assert len(steps()) == 18


def a_hook_that_fails_to_register():
    def refuse(hook):
        raise RuntimeError("no")

    probe.install()
    import_torch(Optimizer=Optimizer, register_optimizer_step_post_hook=refuse)
    gc.collect()
    assert probe.library.probe_step_hook() == UNAVAILABLE


def called_by_the_program():
    probe.install()
    import_torch_2()
    gc.collect()
    hook = post_hooks[0]
    for arguments in ((), (1,), (1, 2, 3, 4), (None, None, None)):
        assert hook(*arguments) is None
    try:
        hook(x=1)
    except TypeError:
        return
    raise AssertionError("keywords were taken")


def a_fork_child_begins_anew():
    probe.install()
    import_torch_2()
    gc.collect()
    optimizer = Optimizer()
    for _ in range(3):
        optimizer.step()
    pid = os.fork()
    if pid == 0:
        good = probe.library.probe_start() == 1
        optimizer.step()
        good = good and not steps()
        optimizer.step()
        good = good and [e.arg0 for e in steps()] == [0]
        os._exit(0 if good and probe.library.probe_step_hook() == ON else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert len(steps()) == 2


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    sys.stdout.write("ran\n")
