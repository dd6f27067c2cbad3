"""Scenarios for the GC callback: gc_pauses.py NAME. Exit status 0 passes."""
import atexit
import ctypes
import gc
import os
import sys
import threading
import time

import probe

counted = []


def count(phase, info):
    if phase == "stop":
        counted.append((info["generation"], info["collected"], info["uncollectable"]))


def ours():
    return [c for c in gc.callbacks if "lull" in repr(c)]


def found():
    return [(e.arg2, e.arg0, e.arg1) for e in probe.events(probe.GC_PAUSE)]


class Node:
    def __init__(self):
        self.me = self


def install():
    gc.disable()  # so that nothing is collected between the two installations
    probe.install()
    gc.callbacks.append(count)
    gc.enable()
    assert probe.library.probe_gc_hook() == 2
    assert len(ours()) == 1


def every_collection():
    install()
    for generation in (0, 1, 2, 2, 1):
        for _ in range(10 * generation):
            Node()
        gc.collect(generation)
    keep = []
    for i in range(20000):  # enough for automatic collections
        keep.append([Node()])
    gc.collect()
    assert len(counted) > 6, counted
    assert found() == counted, (found(), counted)
    for event in probe.events(probe.GC_PAUSE):
        assert event.duration_ns > 0
        assert event.py_stack != 0


def the_triggering_line():
    install()

    def trigger():
        gc.collect(); return probe.frames()

    expected = trigger()
    event = probe.events(probe.GC_PAUSE)[-1]
    probe.compare(event.py_stack, expected)


def no_second_entry():
    install()
    for _ in range(100):
        assert probe.library.probe_install()
    assert len(ours()) == 1


def cleared_by_the_program():
    install()
    gc.callbacks.clear()
    gc.collect()
    gc.callbacks.append(count)
    gc.collect()
    assert len(counted) == 1
    assert found() == []
    assert probe.library.probe_gc_hook() == 2


def called_by_the_program():
    install()
    callback = ours()[0]
    for arguments in ((), (1,), (1, 2), ("start",), ("start", 1), ("stop", None),
                      ("stop", {}), ("stop", {"collected": "many"}), ("other", {}),
                      ("stop", {"collected": 1 << 80}), ("start", {}), ("start", {})):
        assert callback(*arguments) is None
    gc.collect()
    assert found()[-1] == counted[-1]
    before = len(found())
    callback("stop", {})  # nothing has begun
    assert len(found()) == before


def an_exception_that_is_already_set():
    install()
    collected = len(found())

    class Raises:
        def __iter__(self):
            return self

        def __next__(self):
            try:
                raise StopIteration
            finally:
                gc.collect()  # on the way out of a frame, with StopIteration pending

    assert list(Raises()) == []
    assert len(found()) == collected + 1


def only_while_armed():
    probe.library.probe_arm(0)
    install()
    gc.collect()
    probe.library.probe_arm(1)
    gc.collect()
    assert len(counted) == 2
    assert len(found()) == 1


def after_a_fork():
    install()
    gc.collect()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            assert probe.library.probe_start() == 1
            assert probe.library.probe_gc_hook() == 2
            assert len(ours()) == 1
            counted.clear()
            gc.collect()
            gc.collect(0)
            assert found() == counted and len(counted) == 2
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    assert found() == counted and len(counted) == 1


def a_fork_within_a_collection():
    install()
    status = []

    def fork(phase, info):
        if phase != "start":
            return
        gc.callbacks.remove(fork)
        pid = os.fork()
        if pid == 0:
            os._exit(0 if probe.library.probe_start() and not probe.events() else 1)
        status.append(os.waitpid(pid, 0)[1])

    gc.callbacks.append(fork)
    gc.collect()
    assert status == [0]
    assert len(found()) == 1


def nothing_at_the_end():
    install()
    keep = [Node() for _ in range(1000)]
    sys.keep = keep

    def note():
        with open(os.environ["PROBE_REPORT"] + ".expected", "w") as file:
            file.write("%d\n" % probe.library.probe_event_count(0))

    gc.collect()
    gc.disable()
    atexit.register(note)


def ask_on_a_python_thread(library):
    thread = threading.Thread(target=library.probe_install)
    thread.start()
    thread.join()
    for _ in range(1000):  # an occasion for what was asked for
        pass


def asked_for_only_where_it_may_be():
    # PyDLL calls with the GIL, CDLL without.
    probe.library.probe_on_foreign_thread(
        ctypes.cast(probe.library.probe_install, ctypes.c_void_p), None, None, 0)
    ask_on_a_python_thread(probe.library)
    assert not ours() and probe.library.probe_gc_hook() == 1
    ask_on_a_python_thread(ctypes.PyDLL(os.environ["LULL_STACKS_PROBE"]))
    assert len(ours()) == 1 and probe.library.probe_gc_hook() == 2


def asked_for_at_the_very_end():
    def ask():
        now = time.monotonic_ns()
        for library in (probe.library, ctypes.PyDLL(os.environ["LULL_STACKS_PROBE"])):
            for step in range(100):
                library.probe_install()
                library.probe_poll_steps(ctypes.c_uint64(now + step * 10**9))

    atexit.register(ask)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    sys.stdout.write("ran\n")
