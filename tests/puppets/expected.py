"""The constants of expected.h as a dict."""

import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
_CONSTANT = re.compile(r"inline constexpr int (k\w+) = (\d+);")


def expected():
    with open(os.path.join(HERE, "expected.h")) as header:
        return {name: int(value) for name, value in _CONSTANT.findall(header.read())}


def site(source, name):
    """The line of `source` (a file of this folder) that ends in `SITE: name`."""
    with open(os.path.join(HERE, source)) as file:
        for number, line in enumerate(file, 1):
            if line.rstrip().endswith("SITE: " + name):
                return number
    raise LookupError("no SITE: %s in %s" % (name, source))
