"""Scenarios for the step hook: steps.py NAME. Exit status 0 passes.

`torch` here is a module of our own with the one function that the hook needs, as
PyTorch has it since 2.0; the real one runs under the label `torch`.
"""
import ctypes
import gc
import os
import sys
import threading
import time
import types

import probe
import record_function

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
    (first,) = steps()
    assert (first.arg0, first.arg2, first.duration_ns) == (1, 1, 0)
    for number in range(5):
        time.sleep(0.002)
        boundary()
        event = steps()[number + 1]
        assert (event.arg0, event.arg2) == (number + 2, 1)
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
    assert len(steps()) == 10
    phase = Optimizer()  # a new one goes on where the others stopped
    for _ in range(10):
        phase.step()
    assert len(steps()) == 19


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
        good = good and [e.duration_ns for e in steps()] == [0]
        optimizer.step()
        good = good and [e.arg0 for e in steps()] == [1, 2]
        os._exit(0 if good and probe.library.probe_step_hook() == ON else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert len(steps()) == 3


class Attributes(ctypes.Structure):  # nvtxEventAttributes_v2
    _fields_ = [("version", ctypes.c_uint16), ("size", ctypes.c_uint16),
                ("category", ctypes.c_uint32), ("color_type", ctypes.c_int32),
                ("color", ctypes.c_uint32), ("payload_type", ctypes.c_int32),
                ("reserved", ctypes.c_int32), ("payload", ctypes.c_uint64),
                ("message_type", ctypes.c_int32), ("message", ctypes.c_char_p)]


class Nvtx:
    """What the NVTX header compiles into a library: its pointers and their tables."""

    CORE, SIZE = 1, 16
    START_EX, START_A, END, PUSH_EX, PUSH_A, PUSH_W, POP = 4, 5, 7, 8, 9, 10, 11

    def __init__(self):
        self.pointers = (ctypes.c_void_p * self.SIZE)()
        self.table = (ctypes.c_void_p * self.SIZE)()
        for i in range(1, self.SIZE):
            self.table[i] = ctypes.addressof(self.pointers) + 8 * i
        get_module = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint32,
                                      ctypes.POINTER(ctypes.c_void_p),
                                      ctypes.POINTER(ctypes.c_uint))
        get_table = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)

        class Callbacks(ctypes.Structure):
            _fields_ = [("size", ctypes.c_size_t), ("get_module", get_module)]

        def module(number, table, size):
            if number != self.CORE:
                return 0
            table[0] = ctypes.addressof(self.table)
            size[0] = self.SIZE
            return 1

        self.callbacks = Callbacks(ctypes.sizeof(Callbacks), get_module(module))
        self.get_table = get_table(
            lambda number: ctypes.addressof(self.callbacks) if number == 1 else None)
        self.listens = probe.library.InitializeInjectionNvtx2(self.get_table)

    def call(self, function, *arguments):
        result = ctypes.c_uint64 if function in (self.START_A, self.START_EX) \
            else ctypes.c_int
        return ctypes.CFUNCTYPE(result)(self.pointers[function])(*arguments)


def ranges_are_regions_and_no_steps_unless_one_is_named():
    nvtx = Nvtx()
    assert nvtx.listens == 0 and not any(nvtx.pointers)  # switched off
    probe.library.probe_name_step_range(b"")
    nvtx = Nvtx()
    assert nvtx.listens == 1
    wide = ctypes.c_wchar_p("x")
    for name in (b"step 1", b"step 2"):
        nvtx.call(nvtx.PUSH_A, name)
        nvtx.call(nvtx.PUSH_A, b"inner")
        nvtx.call(nvtx.PUSH_W, wide)
        for _ in range(3):
            nvtx.call(nvtx.POP)
    nvtx.call(nvtx.POP)  # one too many
    first = nvtx.call(nvtx.START_A, b"first")
    second = nvtx.call(nvtx.START_A, b"second")
    assert first != second and first and second
    end = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(nvtx.pointers[nvtx.END])
    end(first)
    end(second)
    end(first)
    end(0)
    assert steps() == []
    told = [(record_function.path_of(e), e.arg1) for e in probe.events(probe.SCOPE)]
    nvtx_source = 2 << 32
    assert told == [("step/inner/(unnamed)", 3 | nvtx_source), ("step/inner", 2 | nvtx_source),
                    ("step", 1 | nvtx_source)] * 2 + [
                        # Nothing is within a range that anybody may end.
                        ("first", 1 | nvtx_source), ("second", 1 | nvtx_source)], told
    nvtx.call(nvtx.PUSH_A, b"")
    nvtx.call(nvtx.POP)
    assert steps() == []


def of_scopes_where_pytorch_has_no_hooks():
    probe.install()
    torch = record_function.load()
    import_torch()
    sys.modules["torch.optim.optimizer"].Optimizer = Optimizer
    sys.modules["torch.autograd.profiler"] = types.ModuleType("torch.autograd.profiler")
    sys.modules["torch"].__version__ = "1.13.1"
    gc.collect()
    assert probe.library.probe_step_hook() == UNAVAILABLE

    def step():
        torch.fake_exit(torch.fake_enter(b"Optimizer.step#SGD.step"))

    for _ in range(3):
        step()  # one optimizer
        step()  # and another, on a line of its own
    assert [event.arg0 for event in steps()] == [1, 2, 3]
    assert len(probe.events(probe.SCOPE)) == 6


def not_of_scopes_where_pytorch_has_hooks():
    probe.install()
    torch = record_function.load()
    import_torch_2()
    sys.modules["torch.autograd.profiler"] = types.ModuleType("torch.autograd.profiler")
    sys.modules["torch"].__version__ = "2.9.1"
    gc.collect()
    assert probe.library.probe_step_hook() == ON
    torch.fake_exit(torch.fake_enter(b"Optimizer.step#SGD.step"))
    assert steps() == [] and len(probe.events(probe.SCOPE)) == 1


def the_range_that_the_user_named():
    probe.library.probe_name_step_range(b"step")
    nvtx = Nvtx()
    assert nvtx.listens == 1

    def push_pop(name, inside=lambda: None):
        assert nvtx.call(nvtx.PUSH_A, name) == -2
        inside()
        assert nvtx.call(nvtx.POP) == -2

    def nested(depth):
        if depth:
            push_pop(b"other", lambda: nested(depth - 1))

    for _ in range(4):
        push_pop(b"data")
        push_pop(b"step", lambda: nested(100))
        nvtx.call(nvtx.POP)  # one too many
    assert [(e.arg0, e.arg2) for e in steps()] == [(1, 2), (2, 2), (3, 2), (4, 2)]
    for before, after in zip(steps(), steps()[1:]):
        assert after.start_ns == before.start_ns + before.duration_ns


def ranges_with_attributes_and_of_two_threads():
    probe.library.probe_name_step_range(b"step")
    nvtx = Nvtx()
    named = Attributes(version=3, size=ctypes.sizeof(Attributes), message_type=1,
                       message=b"step")
    other = Attributes(version=3, size=ctypes.sizeof(Attributes), message_type=1,
                       message=b"steps")
    wide = Attributes(version=3, size=ctypes.sizeof(Attributes), message_type=2,
                      message=b"step")
    for attributes in (named, other, wide, named):
        nvtx.call(nvtx.PUSH_EX, ctypes.byref(attributes))
        nvtx.call(nvtx.POP)
    assert len(steps()) == 2
    ids = [nvtx.call(nvtx.START_A, b"step"), nvtx.call(nvtx.START_A, b"x"),
           nvtx.call(nvtx.START_EX, ctypes.byref(named))]
    end = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(nvtx.pointers[nvtx.END])
    thread = threading.Thread(target=lambda: [end(number) for number in ids])
    thread.start()
    thread.join()
    assert len(steps()) == 4


def a_named_range_instead_of_the_optimizer():
    probe.library.probe_name_step_range(b"step")
    probe.install()
    import_torch_2()
    gc.collect()
    assert probe.library.probe_step_hook() == UNAVAILABLE and post_hooks == []


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    sys.stdout.write("ran\n")
