"""Stacks that change while they are read. Names tell which stacks are possible.

usage: flutter.py SCENARIO [SECONDS]

Prints where a reader finds the main thread, then goes on until its standard input ends.
"""

import asyncio
import collections
import ctypes
import functools
import os
import random
import re
import sys
import threading
import time

DEPTH = 14
TOTALS = (ctypes.c_double * 3)()  # seconds by the program's own clock, of shares() and locked()


def report():
    api = ctypes.pythonapi
    api.PyThreadState_Get.restype = ctypes.c_void_p
    code_type = ctypes.addressof(ctypes.c_char.in_dll(api, "PyCode_Type"))
    runtime = ctypes.addressof(ctypes.c_char.in_dll(api, "_PyRuntime"))
    print(os.getpid(), api.PyThreadState_Get(), threading.get_ident(), code_type, runtime,
          sys.version_info[1], ctypes.addressof(TOTALS), flush=True)


def watch_the_end():
    def wait():
        sys.stdin.read()
        os._exit(0)
    threading.Thread(target=wait, daemon=True).start()


def chain(letter, leaf):
    """DEPTH functions, each calling the next; callers' calls stand in line 2, 4, ..."""
    functions = {"leaf": leaf}
    for i in reversed(range(DEPTH)):
        callee = f"{letter}{i + 1}" if i + 1 < DEPTH else "leaf"
        # One line of its own for each, so that the line tells the function.
        source = "\n" * (10 * i) + f"def {letter}{i}():\n  {callee}()\n"
        exec(compile(source, f"{letter}.py", "exec"), functions)
    return functions[f"{letter}0"]


def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def quick():
    pass


def flutter(leaf):
    a, b = chain("a", leaf), chain("b", leaf)
    while True:
        a()
        b()


def generators(letter, depth):
    if depth == 0:
        for _ in range(3):
            yield
    else:
        yield from globals()[f"gen_{letter}"](depth - 1)


def gen_a(depth):
    yield from generators("a", depth)


def gen_b(depth):
    yield from generators("b", depth)


def flutter_of_generators():
    while True:
        for _ in gen_a(4):
            pass
        for _ in gen_b(4):
            pass


# C functions that call Python back, each with a frame of its own size on the C stack.
class Called:
    def __init__(self, function):
        self.function = function

    def __call__(self):
        return self.function()

    def __lt__(self, other):
        return self.function() is self

    def __getattr__(self, name):
        return self.function()


BACK_FROM_C = (
    lambda f: Called(f)(),
    lambda f: sorted((0,), key=lambda _: (f(), 0)[1]),
    lambda f: sorted((Called(f), Called(f))),
    lambda f: list(map(lambda _: f(), (0,))),
    lambda f: functools.partial(f)(),
    lambda f: functools.reduce(lambda _, __: f(), (0, 0)),
    lambda f: re.sub("x", lambda _: (f(), "")[1], "x"),
    lambda f: Called(f).attribute,
    lambda f: max((0,), key=lambda _: (f(), 0)[1]),
)


def through_c(path, function):
    """Calls `function` from below C functions, the outermost one first."""
    for kind in reversed(path):
        function = functools.partial(BACK_FROM_C[kind], function)
    function()


# Generators that were: as long as they are here, the next one lies elsewhere.
KEPT = collections.deque(maxlen=0)


def kept(generator):
    KEPT.append(generator)
    return generator


def leaf(seconds):
    spin(seconds)
    yield


def link_a(seconds):
    list(kept(first(seconds)))  # FIRST
    list(kept(second(seconds)))  # SECOND


def link_b(seconds):
    list(kept(second(seconds)))  # SECOND
    list(kept(first(seconds)))  # FIRST


def first(seconds):
    yield from kept(leaf(seconds))


def second(seconds):
    for _ in kept(leaf(seconds)):
        yield


def linked(seconds, generators):
    """From Python into C and back, with what leads to frames all over the C stack. So many
    generators that were are kept."""
    global KEPT
    KEPT = collections.deque(maxlen=generators)
    chance = random.Random(5)
    paths = [[chance.randrange(len(BACK_FROM_C)) for _ in range(chance.randrange(1, 6))]
             for _ in range(200)]
    while True:
        for path in paths:
            through_c(path, lambda: link_a(seconds))
            through_c(path, lambda: link_b(seconds))


async def co_a(depth):
    if depth == 0:
        return await asyncio.sleep(0)
    await co_a(depth - 1)


async def co_b(depth):
    if depth == 0:
        return await asyncio.sleep(0)
    await co_b(depth - 1)


async def both():
    while True:
        await co_a(5)
        await co_b(5)


def rec_a(depth):
    if depth:
        rec_a(depth - 1)


def rec_b(depth):
    if depth:
        rec_b(depth - 1)


def deep():
    sys.setrecursionlimit(5000)
    while True:
        rec_a(700)
        rec_b(900)
        rec_a(30)


def exec_made():
    """Code that is made and dropped: it gets the same addresses again and again."""
    n = 0
    while True:
        n = (n + 1) % 7
        source = "\n" * n + f"def made{n}():\n  for i in range(200): pass\nmade{n}()\n"
        exec(compile(source, f"file{n}", "exec"), {})


def raises(depth):
    if depth == 0:
        raise KeyError
    raises(depth - 1)


def exceptions():
    while True:
        try:
            raises(12)
        except KeyError:
            spin(0.00001)


def one(seconds): spin(seconds)
def two(seconds): spin(seconds)
def three(seconds): spin(seconds)


def shares():
    """60, 30 and 10 % of the time, or what a busy machine makes of it."""
    at = time.perf_counter()
    while True:
        for i, (function, seconds) in enumerate(((one, 0.006), (two, 0.003),
                                                 (three, 0.001))):
            function(seconds)
            now = time.perf_counter()
            TOTALS[i] += now - at
            at = now


def early(until):
    while time.perf_counter() < until:
        pass


def late(until):
    while time.perf_counter() < until:
        pass


def locked():
    """In step with 100 Hz: the end of each 10 ms goes to one function."""
    at = begun = time.perf_counter()
    while True:
        for i, (function, until) in enumerate(((early, 0.007), (late, 0.010))):
            function(begun + until)
            now = time.perf_counter()
            TOTALS[i] += now - at
            at = now
        begun += 0.010


def asleep():
    while True:
        time.sleep(0.05)


def sleeper():
    time.sleep(1000)


def threads():
    """Threads that come and go while they are read."""
    def work():
        spin(0.0002)
    while True:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()


SCENARIOS = {
    "flutter_quick": lambda: flutter(quick),
    "flutter_slow": lambda: flutter(lambda: spin(0.0003)),
    "generators": flutter_of_generators,
    "linked_quick": lambda: linked(float(sys.argv[2]), 0),
    "linked_slow": lambda: linked(float(sys.argv[2]), 3000),
    "coroutines": lambda: asyncio.run(both()),
    "deep": deep,
    "exec_made": exec_made,
    "exceptions": exceptions,
    "shares": shares,
    "locked": locked,
    "asleep": asleep,
    "sleeper": sleeper,
    "threads": threads,
}

if __name__ == "__main__":
    report()
    watch_the_end()
    SCENARIOS[sys.argv[1]]()
