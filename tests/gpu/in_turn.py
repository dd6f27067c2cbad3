"""Runs a program in its turn (turns.py): in_turn.py SCRIPT [ARGUMENT...]. What takes longest to
import is imported before."""

import contextlib
import os
import runpy
import sys

import torch

from turns import turn

torch.zeros(1, device="cuda")
with contextlib.suppress(ImportError):
    import transformers  # noqa: F401
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
with turn():
    runpy.run_path(sys.argv[0], run_name="__main__")
