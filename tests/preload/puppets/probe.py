"""The stacks probe (stacks_probe.cc), as seen from Python 3.8 to 3.13.

Python itself is the reference: frames() asks sys._getframe for what stack() must
have read from the interpreter's memory.
"""
import ctypes
import os
import sys


class StackEntry(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint32), ("size", ctypes.c_uint32),
                ("hash", ctypes.c_uint64), ("depth", ctypes.c_uint32),
                ("flags", ctypes.c_uint32)]


class PythonFrame(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint32), ("lasti", ctypes.c_int32)]


class CodeEntry(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint32), ("size", ctypes.c_uint32),
                ("code_address", ctypes.c_uint64), ("name_address", ctypes.c_uint64),
                ("linetable_address", ctypes.c_uint64), ("first_line", ctypes.c_int32),
                ("python_minor", ctypes.c_uint16), ("filename_size", ctypes.c_uint16),
                ("name_size", ctypes.c_uint16),
                ("linetable_left_out", ctypes.c_uint16),
                ("linetable_size", ctypes.c_uint32)]


class Event(ctypes.Structure):
    _fields_ = [("start_ns", ctypes.c_uint64), ("duration_ns", ctypes.c_uint64),
                ("arg0", ctypes.c_uint64), ("arg1", ctypes.c_uint64),
                ("py_stack", ctypes.c_uint32), ("native_stack", ctypes.c_uint32),
                ("arg2", ctypes.c_uint32), ("api", ctypes.c_uint16),
                ("type", ctypes.c_uint8), ("flags", ctypes.c_uint8)]


TORCH_MEMORY = 6
GC_PAUSE = 7
STEP = 19
NON_FINITE = 20
TORCH_RESERVED = 21
SCOPE = 22
TRUNCATED = 1
MAX_FRAMES = 128

library = ctypes.CDLL(os.environ["LULL_STACKS_PROBE"])
library.probe_stack.restype = ctypes.c_void_p
library.probe_code.restype = ctypes.c_void_p
library.probe_event.restype = ctypes.c_void_p
library.probe_event.argtypes = [ctypes.c_uint32, ctypes.c_uint64]
library.probe_torch_allocations.restype = ctypes.c_uint64
library.probe_event_count.restype = ctypes.c_uint64
library.probe_contains.argtypes = [ctypes.c_char_p]
library.probe_poll_steps.argtypes = [ctypes.c_uint64]
library.probe_cost.restype = ctypes.c_double
for name in ("python_stack", "python_tip", "native_stack", "stack_of_foreign_thread",
             "gc_hook", "step_hook", "scope_hook", "python_version", "arena_used"):
    getattr(library, "probe_" + name).restype = ctypes.c_uint32

addr2line = ctypes.pythonapi.PyCode_Addr2Line
addr2line.argtypes = [ctypes.py_object, ctypes.c_int]

# Called without a Python frame in between, and without the GIL.
stack = library.probe_python_stack
tip = library.probe_python_tip


def name_of(code):
    return getattr(code, "co_qualname", code.co_name)


def line_table_of(code):
    return code.co_linetable if sys.version_info >= (3, 10) else code.co_lnotab


def frames():
    """The caller's stack, innermost first: (code, line) of each frame."""
    frame = sys._getframe(1)
    result = []
    while frame is not None:
        result.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return result


def decode(ref):
    """(entry, [(code entry, filename, name, line table, lasti)]) of a stack."""
    assert ref != 0, "no stack"
    at = library.probe_stack(ref)
    entry = StackEntry.from_address(at)
    result = []
    for i in range(entry.depth):
        frame = PythonFrame.from_address(at + ctypes.sizeof(StackEntry) + 8 * i)
        code_at = library.probe_code(frame.code)
        code = CodeEntry.from_address(code_at)
        text = ctypes.string_at(code_at + ctypes.sizeof(CodeEntry),
                                code.size - ctypes.sizeof(CodeEntry))
        names = code.filename_size + code.name_size
        result.append((code, text[:code.filename_size].decode(),
                       text[code.filename_size:names].decode(), text[names:],
                       frame.lasti))
    return entry, result


def compare(ref, expected):
    """Fails unless the interned stack is the expected one, frame by frame."""
    entry, found = decode(ref)
    truncated = len(expected) > MAX_FRAMES
    assert bool(entry.flags & TRUNCATED) == truncated, (entry.flags, len(expected))
    expected = expected[:MAX_FRAMES]
    assert len(found) == len(expected), (len(found), len(expected))
    for (code_entry, filename, name, table, lasti), (code, line) in zip(found, expected):
        assert code_entry.code_address == id(code), (name, code)
        assert code_entry.python_minor == sys.version_info[1]
        assert code_entry.first_line == code.co_firstlineno
        assert filename == code.co_filename, (filename, code.co_filename)
        assert name == name_of(code), (name, name_of(code))
        assert table == line_table_of(code), name
        assert addr2line(code, lasti) == line, (name, lasti, addr2line(code, lasti), line)
    compare.count += 1
    return ref


compare.count = 0


def events(kind=None):
    result = []
    for ring in range(library.probe_ring_count()):
        for i in range(library.probe_event_count(ring)):
            event = Event.from_address(library.probe_event(ring, i))
            if kind is None or event.type == kind:
                result.append(event)
    return result


def install():
    """Has the GC callback installed, as a hooked call would bring it about."""
    for _ in range(1000):
        if library.probe_install():
            return
    raise AssertionError("the pending call did not run")


if not os.environ.get("PROBE_LATE"):
    assert library.probe_start() == 1
