"""Price of a warm stack of 30 frames, each of another function.

Beside each stands the ratio to one clock read of the same run.
"""
import sys

import probe

DEPTH = 30
NAMES = ("python_stack", "python_tip", "native_stack")


def chain(n, innermost):
    function = innermost
    for i in range(n):
        scope = {"below": function}
        exec(compile("def f%d():\n    return below()" % i, "/data/%d.py" % i, "exec"),
             scope)
        function = scope["f%d" % i]
    return function


def measure():
    return [probe.library.probe_cost(i) for i in range(4)]


*costs, clock = chain(DEPTH - len(probe.frames()) - 1, measure)()
for name, cost in zip(NAMES, costs):
    sys.stdout.write("python %d.%d %-13s %4.0f ns = %4.1f clock reads\n" % (
        sys.version_info[0], sys.version_info[1], name, cost, cost / clock))
