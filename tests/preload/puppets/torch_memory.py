"""Scenarios for hooks/torch_memory.cc and hooks/torch_scalar.cc, with the probe preloaded: torch_memory.py NAME.

Exit status 0 passes. `profile` prints what torch.profiler saw instead, for a
comparison with a run without us.
"""
import ctypes
import os
import struct
import sys
import threading

import probe
import torch

FREE, THINNED = 1, 16
MIB = 1 << 20


def blocks(size):
    return [e for e in probe.events(probe.TORCH_MEMORY) if e.arg1 == size]


def innermost(event):
    _, found = probe.decode(event.py_stack)
    code, filename, name, _, lasti = found[0]
    return os.path.basename(filename), name, lasti


def starts_with_a_tensor_but_not_with_an_import():
    assert probe.library.probe_start_attempts() == 0, "import torch started the recording"
    tensor = torch.ones(10)
    assert probe.library.probe_start_attempts() > 0
    attempts = probe.library.probe_start_attempts()
    del tensor
    assert probe.library.probe_start_attempts() == attempts, "a free started it"


def allocations_and_frees():
    tensors = [torch.empty(MIB * (i + 1), dtype=torch.uint8) for i in range(3)]
    addresses = [tensor.data_ptr() for tensor in tensors]
    for i, address in enumerate(addresses):
        (event,) = blocks(MIB * (i + 1))
        assert event.arg0 == address and not event.flags & FREE
        assert event.arg2 == 0 << 8 | 0xff  # CPU, no index
        assert event.duration_ns == 0 and event.native_stack == 0
    made = probe.library.probe_torch_allocations()
    assert made == len([e for e in probe.events(probe.TORCH_MEMORY)
                        if not e.flags & FREE]) == 3
    del tensors
    frees = [e for e in probe.events(probe.TORCH_MEMORY) if e.flags & FREE]
    assert sorted(e.arg0 for e in frees) == sorted(addresses)
    assert all(e.py_stack == 0 and e.arg1 == 0 for e in frees)


def the_line_of_an_allocation():
    def allocate():
        return torch.empty(3 * MIB, dtype=torch.uint8), probe.frames()

    _, expected = allocate()
    (event,) = blocks(3 * MIB)
    probe.compare(event.py_stack, expected)


def backward_on_a_foreign_thread():
    thread_count = []

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            return x * 2

        @staticmethod
        def backward(context, gradient):
            out = torch.empty(5 * MIB // 4)
            thread_count.append(threading.get_ident())
            return gradient * 2

    x = torch.ones(10, requires_grad=True)
    Double.apply(x).sum().backward()
    (event,) = blocks(5 * MIB)
    _, name, _ = innermost(event)
    assert name.endswith("backward"), name
    assert len(thread_count) == 1


def allocate_without_python(size):
    new = ctypes.CDLL(os.environ["LULL_STACKS_PROBE"])[
        "_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm"]
    with open("/proc/self/maps") as maps:
        libc10 = next(line.split()[-1] for line in maps if "/libc10.so" in line)
    reporter = ctypes.CDLL(libc10)["_ZN3c1025profiledCPUMemoryReporterEv"]
    reporter.restype = ctypes.c_void_p
    probe.library.probe_on_foreign_thread(
        ctypes.cast(new, ctypes.c_void_p), ctypes.c_void_p(reporter()),
        ctypes.c_void_p(0x1000), ctypes.c_size_t(size))
    (event,) = blocks(size)
    return event


def native_stacks_where_there_is_no_python():
    torch.empty(1)  # from here on we know whom to forward to
    for event in probe.events(probe.TORCH_MEMORY):
        assert event.flags & FREE or event.py_stack or event.native_stack
    event = allocate_without_python(12345)
    assert event.py_stack == 0 and event.native_stack != 0


def what_the_cuda_allocator_reserves():
    torch.empty(1)  # from here on we know whom to forward to
    library = ctypes.CDLL(os.environ["LULL_STACKS_PROBE"])
    for name, integer in (("l", ctypes.c_int64), ("m", ctypes.c_uint64)):
        report = library["_ZN3c1027reportMemoryUsageToProfilerEPvl%s%sNS_6DeviceE"
                         % (name, name)]
        report.argtypes = [ctypes.c_void_p, ctypes.c_int64, integer, integer,
                           ctypes.c_uint16]
        report.restype = None
        before = len(probe.events(probe.TORCH_RESERVED))
        cuda = lambda index: 1 | index << 8  # c10::Device, as it lies in a register
        step = 100 * MIB if name == "m" else 0
        report(0x1000, 512, 512, 20 * MIB + step, cuda(0))
        report(0x2000, 512, 1024, 20 * MIB + step, cuda(0))  # as before: says nothing
        report(0x3000, 512, 512, 20 * MIB + step, cuda(1))   # another device
        report(0x2000, -512, 512, 40 * MIB + step, cuda(0))
        report(0x4000, 512, 512, 0, 0 | 0xff << 8)           # the CPU reserves nothing
        found = probe.events(probe.TORCH_RESERVED)[before:]
        assert [(e.arg0, e.arg1, e.arg2) for e in found] == [
            (512, 20 * MIB + step, 0x100), (512, 20 * MIB + step, 0x101),
            (512, 40 * MIB + step, 0x100)], found
    # What a device had before we looked is told once.
    BEFORE = 1 << 7
    report(0x5000, 512, 3 * MIB + 512, 40 * MIB, cuda(2))
    report(0x6000, 512, 3 * MIB + 1024, 40 * MIB, cuda(2))
    report(0x7000, -512, 5 * MIB, 40 * MIB, cuda(3))
    assert [(e.arg0, e.arg1, e.arg2) for e in probe.events(probe.TORCH_MEMORY)
            if e.flags & BEFORE] == [(0, 3 * MIB, 0x102), (0, 5 * MIB + 512, 0x103)]
    first = probe.events(probe.TORCH_RESERVED)[0]
    (block,) = [e for e in probe.events(probe.TORCH_MEMORY)
                if e.arg0 == 0x1000 and e.start_ns == first.start_ns]
    assert block.arg1 == 512 and block.arg2 == 0x100


def thinned_stacks():
    probe.library.probe_thin(1)
    kept = [torch.empty(7 * MIB, dtype=torch.uint8) for _ in range(64)]
    events = blocks(7 * MIB)
    assert len(events) == 64
    with_stack = [e for e in events if e.py_stack]
    # One in each sixteen, which begin and end anywhere.
    assert 64 // 16 - 1 <= len(with_stack) <= 64 // 16 + 1, len(with_stack)
    assert all(bool(e.flags & THINNED) == (e.py_stack == 0) for e in events)


def thinned_stacks_of_a_loop():
    # Each time sixteen, from as many lines.
    probe.library.probe_thin(1)
    for i in range(16 * 600):
        torch.empty(1000 + i % 16, dtype=torch.uint8)
    drawn = [sum(bool(e.py_stack) for e in blocks(1000 + i)) for i in range(16)]
    assert 599 <= sum(drawn) <= 601, drawn
    # Of 600 draws 37.5 are expected of each.
    assert min(drawn) > 10 and max(drawn) < 80, drawn


def large_blocks_when_thinned():
    torch.empty(1)
    probe.library.probe_thin(2)  # no native stacks
    kept = [torch.empty(17 * MIB, dtype=torch.uint8) for _ in range(20)]
    assert all(e.py_stack and not e.flags & THINNED for e in blocks(17 * MIB))
    assert len(kept) == 20
    assert allocate_without_python(18 * MIB).native_stack != 0
    assert allocate_without_python(12345).native_stack == 0


def the_first_non_finite_scalar():
    finite = [torch.tensor(1.5), torch.tensor(3e38) * 1, torch.tensor(-1),
              torch.tensor(True), torch.tensor([0x7fc00000], dtype=torch.int32),
              torch.tensor(-1, dtype=torch.int64), torch.tensor(1 + 2j)]
    for tensor in finite:
        tensor.item()
    nan = torch.tensor(float("nan"), requires_grad=True)
    str(finite)
    assert probe.events(probe.NON_FINITE) == []

    def read_back():
        return nan.item(), probe.frames()

    value, expected = read_back()
    assert value != value
    assert float(torch.tensor(float("inf"))) == float("inf")
    (event,) = probe.events(probe.NON_FINITE)
    (found,) = struct.unpack("d", struct.pack("Q", event.arg0))
    assert found != found
    probe.compare(event.py_stack, expected)
    assert event.native_stack != 0


def minus_infinity_as_half():
    assert torch.tensor(float("-inf"), dtype=torch.float16).item() == float("-inf")
    (event,) = probe.events(probe.NON_FINITE)
    assert struct.unpack("d", struct.pack("Q", event.arg0)) == (float("-inf"),)


def an_exception_of_the_original():
    for _ in range(3):
        try:
            torch.ones(2).item()
        except (RuntimeError, ValueError):
            continue
        raise AssertionError("no exception")
    try:
        torch.ones(1, device="meta").item()
    except (RuntimeError, NotImplementedError):
        return
    raise AssertionError("no exception")


def profile():
    before = torch.ones(100)
    with torch.profiler.profile(profile_memory=True) as profiler:
        x = torch.ones(1000)
        for _ in range(10):  # no backward: its own thread makes the times vary
            y = (x * 2 + 1).softmax(0)
        del before, x, y
    # The raw records: which operator events() books a block on depends on the clock.
    records = profiler.profiler.kineto_results.events()
    seen = [(r.name(), r.nbytes()) for r in records if r.name() == "[memory]"]
    assert any(size < 0 for _, size in seen) and any(size > 0 for _, size in seen)
    sys.stdout.write("%s\n" % seen)


def no_profile_without_memory():
    with torch.profiler.profile(profile_memory=False) as profiler:
        torch.ones(1000)
    assert all(e.cpu_memory_usage == 0 for e in profiler.events())


if __name__ == "__main__":
    name = sys.argv[1]
    if name.startswith("starts_with"):
        globals()[name]()
    else:
        assert probe.library.probe_start() == 1
        globals()[name]()
    sys.stdout.write("ran\n")
