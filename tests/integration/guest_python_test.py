#!/usr/bin/env python3
"""A guest that nobody notices: Python programs and PyTorch jobs."""

import os
import re
import subprocess
import unittest

import guest
import interpreters

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def script(name):
    return os.path.join(HERE, "guests", name)


def torch_python():
    return subprocess.run([os.path.join(ROOT, "tools", "python_with_torch")], check=True,
                          stdout=subprocess.PIPE).stdout.decode().strip()


class PythonPrograms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        cls.pythons = interpreters.with_test_suite()

    @classmethod
    def tearDownClass(cls):
        cls.host.close()

    def on_every_python(self, arguments, **options):
        self.assertTrue(self.pythons, "tools/install_dependencies --test")
        for series, python in self.pythons.items():
            with self.subTest(python=series):
                self.host.check_unnoticed(self, [python, *arguments], **options)

    def test_threads_processes_signals_and_garbage(self):
        self.on_every_python([script("busy_script.py")], status=0)

    def test_development_mode_has_nothing_more_to_warn_about(self):
        self.on_every_python(["-X", "dev", "-W", "error", "-c",
                              "import os, threading, gc; gc.collect(); print(gc.get_count()[2])\n"
                              "p = os.fork()\n"
                              "if p == 0: os._exit(0)\n"
                              "print(os.waitpid(p, 0)[1], threading.active_count())"], status=0)

    def test_debug_allocators_find_nothing(self):
        self.on_every_python([script("busy_script.py")], status=0,
                             env={"PYTHONMALLOC": "debug"})

    def test_import_times_keep_their_form(self):
        # The times differ from run to run. And lull imports gc, a built-in module: there
        # is no other way to gc.callbacks.
        self.on_every_python(["-X", "importtime", "-c", "import json"], status=0,
                             normalise=lambda text: re.sub(
                                 r".*\| +gc\n", "", re.sub(r" +\d+ \|", " N |", text)))

    def test_a_program_may_use_cuda_until_its_very_end(self):
        # Each synchronisation asks for a pending call, 200 ms after the one before.
        library = os.path.join(guest.GUESTS, "libcudart.so.12")
        self.on_every_python(["-c", "import atexit, ctypes, time\n"
                              f"cuda = ctypes.CDLL({library!r})\n"
                              "cuda.cudaFree(None)\n"
                              "def end():\n"
                              "  for _ in range(3):\n"
                              "    time.sleep(0.25); cuda.cudaFree(None)\n"
                              "  print('ended')\n"
                              "atexit.register(end)"], status=0)

    def test_gc_callbacks_may_be_cleared(self):
        self.on_every_python(["-c", "import gc; gc.callbacks.clear(); gc.collect(); "
                              "gc.callbacks.append(print); gc.collect(); "
                              "gc.callbacks.clear(); print('end')"], status=0)

    def test_no_thread_is_added(self):
        self.on_every_python(["-c", "import os, time; time.sleep(0.01); "
                              "print(len(os.listdir('/proc/self/task')))"], status=0)

    def test_no_descriptor_is_added(self):
        self.on_every_python(["-c", "import os, time; time.sleep(0.01); "
                              "print(sorted(os.listdir('/proc/self/fd')))"], status=0)

    def test_an_uncaught_exception_looks_the_same(self):
        self.on_every_python(["-c", "def f():\n  raise ValueError('x')\nf()"], status=1)

    def test_a_keyboard_interrupt_looks_the_same(self):
        self.on_every_python(["-c", "import os, signal, time\n"
                              "os.kill(os.getpid(), signal.SIGINT)\ntime.sleep(5)"], status=130)

    def test_isolated_mode_and_an_empty_environment(self):
        self.on_every_python(["-I", "-S", "-c", "import os, subprocess, sys\n"
                              "print(subprocess.run([sys.executable, '-I', '-c', "
                              "'print(6 * 7)'], env={}).returncode)"], status=0)


def two_ranks(name, *arguments):
    """A torchrun command. Its rendezvous has a port of its own: --standalone of PyTorch
    1.13 takes 29400, also when that is another job's. On Python 3.11 that version fails
    without --redirects and --tee."""
    return [torch_python(), "-m", "torch.distributed.run", "--rdzv_backend", "c10d",
            "--rdzv_endpoint", "localhost:0", "--nproc_per_node", "2", "--redirects", "1",
            "--tee", "1", script(name), *arguments]


class PyTorchJobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        cls.python = torch_python()

    @classmethod
    def tearDownClass(cls):
        cls.host.close()

    def test_a_data_loader_with_fork_and_spawn_workers(self):
        self.host.check_unnoticed(self, [self.python, script("loader_script.py")], status=0)

    def test_two_gloo_ranks_under_torchrun(self):
        self.host.check_unnoticed(
            self, two_ranks("ranks_script.py"),
            status=0, env={"OMP_NUM_THREADS": "1"},
            # The rendezvous server takes a free port and says so.
            normalise=lambda text: re.sub(r":\d{4,5}\b", ":PORT", text))


if __name__ == "__main__":
    unittest.main()
