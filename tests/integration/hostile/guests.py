"""The programs that run in a hostile world. Each says what it did, so that what lull
reports can be compared with it.

They run for a second or two: long enough that something can happen in the middle.
"""

import os
import subprocess
from dataclasses import dataclass, field

import guest
import interpreters

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))))
HERE = os.path.dirname(os.path.abspath(__file__))


@dataclass(frozen=True)
class Guest:
    name: str
    command: tuple
    # Prints "CALLS THREADS": so many events are to be recorded, no more and no less.
    counts: bool = True
    environment: dict = field(default_factory=dict)
    address_space: int = 512 << 20  # bytes with which it runs as well as with all
    descriptors: int = 20


def compiled(name, *arguments):
    return (os.path.join(guest.GUESTS, name), *map(str, arguments))


def script(python, *arguments):
    return (python, os.path.join(HERE, "paced_script.py"), *map(str, arguments))


def python_with_torch():
    """Its path, or "" where there is none."""
    done = subprocess.run([os.path.join(ROOT, "tools", "python_with_torch")], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return done.stdout.strip()


ALL = {g.name: g for g in [
    Guest("c", compiled("crowd", "paced", 4, 1000)),
    Guest("c_crowd", compiled("crowd", "together", 1024, 40), address_space=2 << 30),
    Guest("c_sequence", compiled("crowd", "sequence", 1024, 20)),
    Guest("c_closing", compiled("crowd", "closing", 4, 1000)),
    Guest("c_forks", compiled("families", "forks", 100, 20)),
    Guest("c_vfork_chain", compiled("families", "chain", 40, 20)),
    Guest("cpp", compiled("cpp_threads", 6, 700)),
    Guest("python", script("/usr/bin/python3", 100), counts=False, address_space=1 << 30),
    Guest("torch_loader", (python_with_torch(), os.path.join(
        os.path.dirname(HERE), "guests", "loader_script.py")), counts=False,
          address_space=16 << 30, descriptors=64),
]}

for series, path in interpreters.with_test_suite().items():
    ALL[f"python{series}"] = Guest(f"python{series}", script(path, 100), counts=False,
                                   address_space=1 << 30)
