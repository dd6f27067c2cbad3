"""Finds the CPython interpreters of this machine, by asking them.

Every python3.N on PATH is run and says where it really lives, so that shims and
links lead to one entry. LULL_TEST_PYTHONS (paths, colon-separated) replaces the
search.
"""

import os
import subprocess

SERIES = [f"3.{minor}" for minor in range(8, 16)]


def ask(python, code, **environment):
    try:
        done = subprocess.run([python, "-c", code], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=60,
                              env={**os.environ, **environment})
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode().strip() if done.returncode == 0 else None


def candidates():
    chosen = os.environ.get("LULL_TEST_PYTHONS")
    if chosen:
        yield from ((path, {}) for path in chosen.split(":") if path)
        return
    for series in SERIES:
        for folder in os.environ["PATH"].split(":"):
            # A version manager's shim answers for the series that it is asked for.
            yield os.path.join(folder, f"python{series}"), {"PYENV_VERSION": series}


def with_test_suite():
    """{"3.11": "/path/of/python3.11", ...} of those that have their own tests."""
    found = {}
    for path, environment in candidates():
        if not os.access(path, os.X_OK):
            continue
        answer = ask(path, "import sys, test.test_gc, test.test_threading; "
                     "print('%d.%d' % sys.version_info[:2], sys.executable)", **environment)
        if answer:
            series, executable = answer.split(" ", 1)
            found.setdefault(series, executable)
    return found
