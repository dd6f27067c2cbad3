"""Scenarios for python_stack(): python_stacks.py NAME. Exit status 0 passes."""
import asyncio
import ctypes
import functools
import os
import re
import sys
import threading
import warnings

import probe
from probe import compare, frames, stack


class Nested:
    def outer(self):
        return self.inner(1)

    def inner(self, value):
        def innermost():
            return compare(stack(), frames())
        return (innermost(),
                value)[0]


def nested_calls():
    elsewhere = Nested().outer()
    refs = {Nested().outer() for _ in range(50)}
    assert len(refs) == 1  # one stack, one integer
    assert elsewhere not in refs


def generators():
    def numbers():
        for i in range(3):
            compare(stack(), frames())
            yield i

    def delegating():
        yield from numbers()

    assert list(numbers()) == [0, 1, 2]
    assert sum(x for x in delegating()) == 3
    generator = numbers()
    next(generator)
    assert next(generator) == 1


def comprehensions():
    assert [compare(stack(), frames()) for _ in range(2)]
    assert {compare(stack(), frames()) for _ in range(2)}
    assert {i:
            compare(stack(), frames()) for i in range(2)}
    assert all(compare(stack(), frames()) for _ in range(2))


def callbacks_from_c():
    sorted([2, 1], key=lambda _: compare(stack(), frames()))
    functools.reduce(lambda a, b: compare(stack(), frames()), [1, 2, 3])
    re.sub("a", lambda match: str(compare(stack(), frames())), "aba")
    list(map(lambda _: compare(stack(), frames()), "ab"))
    by_ctypes = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: compare(stack(), frames()))
    assert by_ctypes() > 0

    class Special:
        def __del__(self):
            compare(stack(), frames())

        def __lt__(self, other):
            return compare(stack(), frames()) > 0

    assert Special() < Special()


def control_flow():
    try:
        try:
            raise ValueError
        except ValueError:
            compare(stack(), frames())
            raise KeyError
        finally:
            compare(stack(), frames())
    except KeyError:
        compare(stack(), frames())
    for i in range(2):
        if i:
            while True:
                compare(stack(), frames())
                break
        else:
            compare(stack(), frames())


def class_bodies():
    class Body:
        ref = compare(stack(), frames())

        @staticmethod
        def decorated(function):
            compare(stack(), frames())
            return function

    @Body.decorated
    def function():
        pass


def coroutines():
    async def leaf():
        compare(stack(), frames())
        await asyncio.sleep(0)
        compare(stack(), frames())

    async def both():
        await asyncio.gather(leaf(), leaf())
        async for _ in stream():
            compare(stack(), frames())

    async def stream():
        yield compare(stack(), frames())

    asyncio.run(both())


def recursion_beyond_the_cap():
    def down(n):
        return down(n - 1) if n else compare(stack(), frames())

    below = down(20)
    assert probe.StackEntry.from_address(probe.library.probe_stack(below)).flags == 0
    down(probe.MAX_FRAMES - len(frames()) - 1)  # exactly as many as fit
    entry, _ = probe.decode(down(300))
    assert entry.depth == probe.MAX_FRAMES


def functions_that_call_each_other():
    functions = {"reached": lambda: compare(stack(), frames())}
    for file, count in (("one.py", 20), ("other.py", 20)):
        for i in range(count):
            source = (f"def {file[:-3]}{i}(way):\n"
                      "    return globals()[way[0]](way[1:]) if way else reached()\n")
            exec(compile(source, f"/somewhere/{file}", "exec"), functions)
    names = [name for name in functions if name[-1].isdigit()]
    for seed in range(20):
        way = [names[i * (seed + 1) * 7919 % 104729 % len(names)] for i in range(110)]
        functions[way[0]](way[1:])


def no_line_table():
    """Nobody's line, rather than the first one's."""
    def without():
        return stack()

    table = id(probe.line_table_of(without.__code__))
    words = (ctypes.c_uint64 * (sys.getsizeof(without.__code__) // 8)).from_address(
        id(without.__code__))
    (place,) = [i for i, word in enumerate(words) if word == table]
    words[place] = 0
    ref = without()
    words[place] = table
    _, found = probe.decode(ref)
    assert found[0][2] == probe.name_of(without.__code__), found[0]
    assert found[0][0].linetable_left_out == 1
    assert found[1][0].linetable_left_out == 0
    compare(stack(), frames())


def threads():
    failures = []

    def work(n):
        def down(k):
            return down(k - 1) if k else compare(stack(), frames())
        try:
            for i in range(300):
                down(n + i % 7)
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures, failures
    assert probe.library.probe_stack_of_foreign_thread() == 0


def names_beyond_ascii():
    for i, word in enumerate(("caf\xe9", "\u65e5\u672c\u8a9e", "\U0001d4d0")):
        source = "\n" * i + "def %s(): return compare(stack(), frames())\n%s()" % (
            word, word)
        exec(compile(source, "/data/%s.py" % word, "exec"), globals())


def a_lone_surrogate_in_a_path():
    code = compile("ref = stack()", "/data/\udcff.py", "exec")
    scope = {"stack": stack}
    exec(code, scope)
    _, found = probe.decode(scope["ref"])
    assert found[0][1] == "/data/\ufffd.py", found[0][1]


def reused_addresses():
    addresses = set()
    for i in range(2000):
        source = "\n" * (i % 97) + "compare(stack(), frames())"
        exec(compile(source, "/data/%d.py" % i, "exec"), globals())
        function = eval("lambda: compare(stack(), frames())" + " " * i)
        addresses.add(id(function.__code__))
        function()
    assert len(addresses) < 2000, "no address was used twice: the test proves nothing"


def tips():
    def inner():
        return compare(probe.tip(), frames()[:1])
    inner()


def contains():
    assert probe.library.probe_contains(b"python_stacks.py")
    assert not probe.library.probe_contains(b"puppets/other.py")
    assert not probe.library.probe_contains(b"<frozen importlib._bootstrap>")
    import imported
    assert imported.IN_IMPORT
    assert imported.call()


def fork():
    # 3.12 and later warn about the thread below.
    warnings.simplefilter("ignore", DeprecationWarning)
    compare(stack(), frames())
    before = probe.library.probe_arena_used()
    assert probe.library.probe_is_main_thread()
    in_thread = []

    def child_of_thread():
        in_thread.append(probe.library.probe_is_main_thread())
        pid = os.fork()
        if pid == 0:
            os._exit(0 if probe.library.probe_start() and
                     probe.library.probe_is_main_thread() else 1)
        in_thread.append(os.waitpid(pid, 0)[1])

    thread = threading.Thread(target=child_of_thread)
    thread.start()
    thread.join()
    assert in_thread == [0, 0], in_thread
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            assert probe.library.probe_start() == 1
            compare(stack(), frames())
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    assert probe.library.probe_arena_used() == before


def version():
    expected = sys.version_info[0] << 8 | sys.version_info[1]
    assert probe.library.probe_python_version() == expected


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    if sys.argv[1] not in ("contains", "version", "a_lone_surrogate_in_a_path"):
        assert compare.count > 0
    sys.stdout.write("ran\n")
