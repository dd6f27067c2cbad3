"""Price of a warm stack of 30 frames, each of another function.

Everything is a ratio to one clock read of the same run, so that the limits hold on
a slow machine too.
"""
import sys

import probe

DEPTH = 30
LIMITS = {"python_stack": 30, "python_tip": 3, "native_stack": 100}  # clock reads


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
failed = False
for (name, limit), cost in zip(LIMITS.items(), costs):
    ratio = cost / clock
    sys.stdout.write("python %d.%d %-13s %4.0f ns = %4.1f clock reads (limit %d)\n" % (
        sys.version_info[0], sys.version_info[1], name, cost, ratio, limit))
    failed |= ratio > limit
sys.exit(failed)
