"""Libraries that PyTorch has mapped into this process."""

import ctypes
import sys


def mapped(name):
    """The first one whose path contains `name`."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line.split()[-1]
            if name in path:
                return ctypes.CDLL(path)
    sys.exit(f"no {name} is mapped")
