"""Scenarios for the callback of record_function: record_function.py NAME. Exit status 0
passes.

`torch` here is a library of our own with PyTorch's functions (fake_torch.cc), and modules
with the names that are looked for; the real one is tried by tests/integration.
"""
import ctypes
import gc
import os
import sys
import threading
import types

import probe

PENDING, ON, UNAVAILABLE = 1, 2, 3
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
USER, DATA, DATA_ASIDE = 0, 1, 2


class TextEntry(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint32), ("size", ctypes.c_uint32),
                ("hash", ctypes.c_uint64), ("length", ctypes.c_uint32),
                ("reserved", ctypes.c_uint32)]


def load():
    path = os.path.join(os.path.dirname(os.environ["LULL_STACKS_PROBE"]),
                        "liblull_fake_torch.so")
    library = ctypes.CDLL(path)
    library.fake_enter.restype = ctypes.c_void_p
    library.fake_enter.argtypes = [ctypes.c_char_p]
    library.fake_exit.argtypes = [ctypes.c_void_p]
    library.fake_others.argtypes = [ctypes.c_uint64]
    for name in ("stale", "another_form", "enable", "bound_within"):
        getattr(library, "fake_" + name).argtypes = [ctypes.c_bool]
    for name in ("callbacks", "added", "wanted", "twice", "pairs", "not_found"):
        getattr(library, "fake_" + name).restype = ctypes.c_uint64
    return library


def import_torch(version="2.9.1+cu128"):
    for name in ("torch", "torch.autograd", "torch.autograd.profiler"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["torch"].__version__ = version


def start(version="2.9.1+cu128"):
    probe.install()
    torch = load()
    import_torch(version)
    gc.collect()
    return torch


def path_of(event):
    if event.native_stack == 0:
        return None
    at = probe.library.probe_stack(event.native_stack)
    entry = probe.StackEntry.from_address(at)
    assert entry.kind == 8, entry.kind
    names = []
    for i in range(entry.depth):
        name = ctypes.c_uint64.from_address(at + ctypes.sizeof(entry) + 8 * i).value
        text_at = probe.library.probe_stack(name)
        text = TextEntry.from_address(text_at)
        names.append(ctypes.string_at(text_at + ctypes.sizeof(text), text.length).decode())
    return "/".join(reversed(names))


def scopes():
    return [(path_of(e), e.arg1 & 0xffffffff, e.arg2) for e in probe.events(probe.SCOPE)]


def hook():
    return probe.library.probe_scope_hook()


def installed_once_pytorch_is_imported():
    probe.install()
    gc.collect()
    assert hook() == PENDING
    torch = load()
    gc.collect()
    assert hook() == PENDING and torch.fake_added() == 0
    import_torch()
    gc.collect()
    assert hook() == ON
    gc.collect()
    assert (torch.fake_added(), torch.fake_callbacks()) == (1, 1)
    assert torch.fake_wanted() == 1 << 7 | 1 << 20  # USER_SCOPE, always, and no more


def versions():
    for version, known in (("1.13.0a0", True), ("1.13.1", True), ("2.0.0", True),
                           ("2.15.0+cu130", True), ("1.12.1", False), ("2.16.0", False),
                           ("3.0", False), ("", False), ("x.y", False), ("2", False)):
        pid = os.fork()
        if pid == 0:
            torch = start(version)
            good = hook() == (ON if known else UNAVAILABLE)
            good = good and torch.fake_added() == (1 if known else 0)
            os._exit(0 if good else 1)
        assert os.waitpid(pid, 0)[1] == 0, version


def a_version_that_is_no_text():
    torch = start(None)
    assert hook() == UNAVAILABLE and torch.fake_added() == 0


def no_such_functions():
    probe.install()
    import_torch()
    gc.collect()
    assert hook() == UNAVAILABLE


def not_while_asleep():
    probe.library.probe_arm(0)
    torch = start()
    assert hook() != ON and torch.fake_added() == 0
    probe.library.probe_arm(1)
    gc.collect()
    assert hook() == ON


def nested():
    torch = start()
    outer = torch.fake_enter(b"outer 1")
    inner = torch.fake_enter(b"inner")
    torch.fake_exit(inner)
    torch.fake_exit(outer)
    assert scopes() == [("outer/inner", 2, USER), ("outer", 1, USER)]
    events = probe.events(probe.SCOPE)
    assert events[1].start_ns <= events[0].start_ns
    assert events[0].start_ns + events[0].duration_ns <= \
        events[1].start_ns + events[1].duration_ns
    assert all(event.py_stack for event in events)


def begun_before_there_was_a_callback():
    torch = load()
    early = torch.fake_enter(b"early")
    probe.install()
    import_torch()
    gc.collect()
    late = torch.fake_enter(b"late")
    torch.fake_exit(early)
    torch.fake_exit(late)
    assert scopes() == [("late", 1, USER)]


def slept_through():
    torch = start()
    first, second = torch.fake_enter(b"first"), torch.fake_enter(b"second")
    probe.library.probe_arm(0)
    torch.fake_exit(second)
    asleep = torch.fake_enter(b"asleep")
    probe.library.probe_arm(1)
    torch.fake_exit(asleep)
    third = torch.fake_enter(b"third")
    torch.fake_exit(third)
    torch.fake_exit(first)
    assert [path for path, _, _ in scopes()] == ["first/third", "first"]


def loaders():
    torch = start()
    torch.fake_exit(torch.fake_enter(LOADER.encode()))
    thread = threading.Thread(
        target=lambda: torch.fake_exit(torch.fake_enter(LOADER.encode())))
    thread.start()
    thread.join()
    assert scopes() == [(LOADER, 1, DATA), (LOADER, 1, DATA_ASIDE)]


def ended_by_another_thread():
    torch = start()
    handed = torch.fake_enter(b"handed")
    thread = threading.Thread(target=torch.fake_exit, args=(handed,))
    thread.start()
    thread.join()
    (event,) = probe.events(probe.SCOPE)
    assert event.arg0 == os.getpid()
    torch.fake_exit(torch.fake_enter(b"after"))
    assert ("after", 1, USER) in scopes()


def forked_in_one():
    torch = start()
    around = torch.fake_enter(LOADER.encode())
    pid = os.fork()
    if pid == 0:
        assert probe.library.probe_start() == 1
        torch.fake_exit(around)
        torch.fake_exit(torch.fake_enter(b"child"))
        os._exit(0 if scopes() == [("child", 1, USER)] else 1)
    assert os.waitpid(pid, 0)[1] == 0
    torch.fake_exit(around)
    assert scopes() == [(LOADER, 1, DATA)]


def too_many_names():
    torch = start()
    for number in range(20000):
        torch.fake_exit(torch.fake_enter(b"%06d of many" % number))
    told = scopes()
    assert len(told) == 20000
    named = [path for path, _, _ in told if path is not None]
    assert 1000 < len(named) < 19000
    # The arena has room for others still, and names that were known stay so.
    torch.fake_exit(torch.fake_enter(b"000000 of many"))
    assert scopes()[-1][0] == "000000 of many"
    assert probe.library.probe_arena_used() < 3 << 20


def without_a_name():
    torch = start()
    for name in (b"", b"123456"):
        torch.fake_exit(torch.fake_enter(name))
    assert scopes() == [("(unnamed)", 1, USER)] * 2


# With the wrapper of getStepCallbacks before PyTorch's own.

def one(torch, name):
    torch.fake_exit(torch.fake_enter(name))


def the_callback_is_taken_out_once_it_has_been_seen():
    torch = start()
    one(torch, b"seen")
    assert torch.fake_callbacks() == 1  # never by a hook
    one(torch, b"again")
    gc.collect()
    assert (torch.fake_callbacks(), hook()) == (0, ON)
    outer = torch.fake_enter(b"outer")
    one(torch, b"inner")
    torch.fake_exit(outer)
    gc.collect()
    assert [path for path, _, _ in scopes()] == ["seen", "again", "outer/inner", "outer"]
    assert (torch.fake_added(), torch.fake_twice(), torch.fake_pairs()) == (1, 0, 1)


def threads_that_have_a_copy_of_the_callback():
    torch = start()
    one(torch, b"seen")
    torch.fake_stale(True)
    gc.collect()
    assert torch.fake_callbacks() == 0
    one(torch, b"with it")
    torch.fake_stale(False)
    one(torch, b"without")
    assert [path for path, _, _ in scopes()] == ["seen", "with it", "without"]
    assert torch.fake_twice() == 0


def beside_callbacks_of_others():
    torch = start()
    torch.fake_others(3)
    one(torch, b"seen")
    gc.collect()
    assert torch.fake_callbacks() == 3
    one(torch, b"beside three")
    assert torch.fake_pairs() == 4
    torch.fake_others(1)  # PyTorch makes room for four
    one(torch, b"no room")
    torch.fake_no_others()
    one(torch, b"room again")
    torch.fake_others(4)
    one(torch, b"no room again")
    gc.collect()
    assert torch.fake_callbacks() == 5
    one(torch, b"fifth")  # in memory of its own
    assert torch.fake_pairs() == 5
    torch.fake_no_others()
    one(torch, b"alone")
    gc.collect()
    assert torch.fake_callbacks() == 1
    assert [path for path, _, _ in scopes()] == [
        "seen", "beside three", "room again", "fifth", "alone"]


def lists_of_another_form():
    torch = start()
    torch.fake_another_form(True)
    one(torch, b"first")
    gc.collect()
    assert torch.fake_callbacks() == 1
    torch.fake_another_form(False)
    one(torch, b"second")
    gc.collect()
    assert torch.fake_callbacks() == 0
    torch.fake_another_form(True)
    one(torch, b"missed")
    gc.collect()
    assert torch.fake_callbacks() == 1
    one(torch, b"third")
    assert [path for path, _, _ in scopes()] == ["first", "second", "third"]


def where_the_program_has_switched_them_off():
    torch = start()
    torch.fake_enable(False)
    one(torch, b"off")
    torch.fake_enable(True)
    one(torch, b"seen")
    gc.collect()
    torch.fake_enable(False)
    one(torch, b"off again")
    assert torch.fake_pairs() == 0
    torch.fake_enable(True)
    one(torch, b"on")
    assert [path for path, _, _ in scopes()] == ["seen", "on"]


def cleared_by_the_program():
    torch = start()
    one(torch, b"seen")
    torch.fake_clear()
    gc.collect()
    assert torch.fake_not_found() == 0  # PyTorch would have warned


def asked_by_somebody_else():
    torch = start()
    torch.fake_bound_within(True)
    ctypes.CDLL(torch._name, ctypes.RTLD_GLOBAL)  # where somebody else finds it
    ask = ctypes.CDLL(None)._ZN2at16getStepCallbacksENS_11RecordScopeE
    ask.argtypes = [ctypes.c_void_p, ctypes.c_uint8]
    # Returned through memory, of which x86-64 has the address in the first register.
    if os.uname().machine == "x86_64":
        ask(ctypes.create_string_buffer(96), 7)
    one(torch, b"first")
    gc.collect()
    assert torch.fake_callbacks() == 1
    one(torch, b"second")
    assert [path for path, _, _ in scopes()] == ["first", "second"]


def a_fork_and_two_threads():
    torch = start()
    one(torch, b"seen")
    gc.collect()
    pid = os.fork()
    if pid == 0:
        assert probe.library.probe_start() == 1
        one(torch, b"child")
        os._exit(0 if scopes() == [("child", 1, USER)] else 1)
    assert os.waitpid(pid, 0)[1] == 0

    def many():
        for _ in range(1000):
            one(torch, b"of a thread")
    threads = [threading.Thread(target=many) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(scopes()) == 2001 and torch.fake_callbacks() == 0


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    sys.stdout.write("ran\n")
