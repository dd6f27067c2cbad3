"""Imported by python_stacks.py: looks at its stack while it is being imported."""
import probe

IN_IMPORT = probe.library.probe_contains(b"<frozen importlib._bootstrap>")


def call():
    return not probe.library.probe_contains(b"<frozen importlib._bootstrap>")
