#!/usr/bin/env python3
"""Guests below seccomp filters: lull does nothing in them that a filter kills for."""

import os
import subprocess
import sys
import unittest

import guest
from loader_test import torch_python

SANDBOXED = os.path.join(guest.GUESTS, "sandboxed")


def may_read_filters():
    """As lull decides it: CAP_SYS_ADMIN, and no filter of one's own."""
    with open("/proc/self/status", encoding="ascii") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    return int(status["CapEff"], 16) >> 21 & 1 and status["Seccomp"] == "0"


reads = unittest.skipUnless(may_read_filters(), "filters can be read by root alone")


class Case(unittest.TestCase):
    def setUp(self):
        self.host = guest.Host()
        self.addCleanup(self.host.close)

    def start(self, *command, prefix=()):
        self.job = subprocess.Popen([*prefix, SANDBOXED, *command], stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    env=self.host.environment)
        self.addCleanup(self.job.wait)
        self.addCleanup(self.job.kill)
        self.assertEqual(self.job.stdout.readline(), b"working\n")
        return self.job

    def attach(self, *options, prefix=(), pid=None):
        return guest.execute([*prefix, guest.LULL, "attach", str(pid or self.job.pid),
                              "--for", "500ms", "--name", "it", *options],
                             self.host.environment)

    def events(self):
        self.assertIn("Nothing lost: ", done := guest.execute(
            [guest.LULL, "report", "it"], self.host.environment).stdout)
        return int(done.split("Nothing lost: ")[1].split(" event")[0].replace(",", ""))

    def ends_as_it_should(self):
        stdout, stderr = self.job.communicate(timeout=60)
        self.assertEqual((stdout, stderr, self.job.returncode), (b"done\n", b"", 7))


class Attach(Case):
    """`lull attach` to a process with a filter."""

    def refused(self, done, *words):
        self.assertEqual(done.status, 125, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.ends_as_it_should()

    @reads
    def test_a_filter_that_kills_for_a_call_of_lulls_keeps_lull_out(self):
        for call in ("memfd_create", "futex", "rt_sigreturn", "connect"):
            for action in ("kill", "trap"):
                with self.subTest(call=call, action=action):
                    self.start(action, call, "work")
                    self.refused(self.attach(), f"kills it for {call}")

    @reads
    def test_and_is_not_to_be_forced(self):
        self.start("kill", "memfd_create", "work")
        self.refused(self.attach("--force"), "kills it for memfd_create")

    @reads
    def test_the_calls_that_are_checked_are_all_that_lull_makes(self):
        self.start("allow", "work")
        done = self.attach()
        self.assertEqual(done.status, 0, done.stderr)
        self.assertGreater(self.events(), 1000)
        self.ends_as_it_should()

    @reads
    def test_a_filter_that_refuses_is_no_danger(self):
        self.start("errno", "memfd_create", "work")
        done = self.attach()
        self.assertEqual(done.status, 125, done.stderr)
        self.assertNotIn("kills it", done.stderr)
        self.ends_as_it_should()

    # Below a filter itself, lull may not read those of others: as for everybody but root.
    BLIND = [SANDBOXED, "nothing", "--"]

    def test_one_that_cannot_be_read_must_be_forced(self):
        self.start("nothing", "work")
        self.refused(self.attach(prefix=self.BLIND), "seccomp filter of its own",
                     "attach --force")
        self.start("nothing", "work")
        done = self.attach("--force", prefix=self.BLIND)
        self.assertEqual(done.status, 0, done.stderr)
        self.assertGreater(self.events(), 1000)
        self.ends_as_it_should()

    def test_ps_says_what_attach_will_do(self):
        self.start("kill", "memfd_create", "work")
        seen = guest.execute([*self.BLIND, guest.LULL, "ps", str(self.job.pid)],
                             self.host.environment)
        self.assertEqual(seen.status, 1)
        self.assertIn("own_seccomp_filter", seen.stdout)
        self.assertIn("attach --force", seen.stdout)
        if may_read_filters():
            seen = guest.execute([guest.LULL, "ps", str(self.job.pid)], self.host.environment)
            self.assertIn("reads first", seen.stdout)
        self.ends_as_it_should()

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_the_filter_of_the_containers_first_process_is_the_runtimes(self):
        # A first process with one filter; below it one with as many, one with more.
        self.job = subprocess.Popen(
            ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *self.BLIND,
             sys.executable, "-c", f"""
import subprocess, sys
plain = subprocess.Popen([{sys.executable!r}, "-c", "input()"], stdin=subprocess.PIPE)
more = subprocess.Popen([{SANDBOXED!r}, "nothing", "work"], stdin=subprocess.PIPE,
                        stdout=subprocess.DEVNULL)
import time; time.sleep(1)
for target in plain, more:
    done = subprocess.run([{guest.LULL!r}, "attach", str(target.pid), "--for", "200ms"],
                          stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    print("status", done.returncode, flush=True)
for target in plain, more:
    target.stdin.write(b"x\\n"); target.stdin.close(); print(target.wait())
"""], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=self.host.environment)
        stdout, stderr = self.job.communicate(timeout=120)
        text = stdout.decode()
        self.assertEqual([line for line in text.split("\n") if line.startswith("status")],
                         ["status 0", "status 125"], text + stderr.decode())
        self.assertIn("seccomp filter of its own", text)
        self.assertEqual(text.split()[-2:], ["0", "7"])


class Run(Case):
    """`lull run` of a program that has a filter, or installs one."""

    def lull_run(self, *command, prefix=()):
        done = guest.execute([*prefix, guest.LULL, "run", "--name", "it", "--", *command],
                             self.host.environment)
        alone = guest.execute([*prefix, *command], self.host.environment)
        self.assertEqual((done.status, done.stdout), (alone.status, alone.stdout), done.stderr)
        return done.stderr

    def test_nothing_is_started_below_a_filter_that_was_inherited(self):
        for call in ("memfd_create", "socket", "futex"):
            with self.subTest(call):
                summary = self.lull_run(SANDBOXED, "kill", call, "--",
                                        SANDBOXED, "late_nothing", "work")
                self.assertIn("0 processes reported", summary)

    def test_nor_below_one_that_the_program_installed(self):
        for how in ("kill", "raw_kill"):
            with self.subTest(how):
                summary = self.lull_run(SANDBOXED, how, "memfd_create", "work")
                self.assertIn("0 processes reported", summary)

    def test_what_runs_goes_to_sleep_before_a_filter_comes(self):
        # Nothing is left that lull may do: only what the guest does itself.
        summary = self.lull_run(SANDBOXED, "late_kill", "memfd_create", "futex", "getpid",
                                "gettid", "rt_sigprocmask", "openat", "connect", "work")
        self.assertIn("1 process reported", summary)
        self.assertIn("seccomp filter might kill", summary)
        self.assertNotIn("Nothing lost", summary)

    def test_python_that_is_about_to_install_one_is_in_the_report(self):
        script = """
import ctypes, os
libc = ctypes.CDLL(None)
pid = os.fork()
if pid == 0:
    program = (ctypes.c_ushort * 4)(6, 0, 0, 0x7fff)  # return ALLOW
    class All(ctypes.Structure):
        _fields_ = [("size", ctypes.c_ushort), ("program", ctypes.c_void_p)]
    all = All(1, ctypes.addressof(program))
    libc.prctl(38, 1, 0, 0, 0)
    os._exit(libc.syscall(317, ctypes.c_long(1), ctypes.c_long(0), ctypes.byref(all)))
print(os.waitpid(pid, 0)[1])
"""
        summary = self.lull_run(sys.executable, "-c", script)
        self.assertIn("seccomp filter might kill", summary)
        self.assertIn("recording ended there: 1", summary)

    def test_a_question_is_no_filter(self):
        script = """
import ctypes
libc = ctypes.CDLL(None)
libc.prctl(22, 2, None)
libc.syscall(317, ctypes.c_long(1), ctypes.c_long(0), None)
"""
        self.assertIn("Nothing lost", self.lull_run(sys.executable, "-c", script))

    def test_a_call_keeps_its_sixth_argument_which_lies_on_the_stack(self):
        script = """
import ctypes, tempfile
call = ctypes.CDLL(None).syscall
call.restype = number = ctypes.c_long
file = tempfile.TemporaryFile()
file.write(b"a" * 4096 + b"b" * 4096)
file.flush()
mapped = call(*map(number, (9, 0, 4096, 1, 2, file.fileno(), 4096)))  # x86-64's mmap
print(ctypes.string_at(mapped, 3))
"""
        if os.uname().machine == "x86_64":
            self.lull_run(sys.executable, "-c", script)

    @unittest.skipUnless(torch_python(), "no PyTorch here")
    def test_a_data_loaders_worker_below_an_inherited_filter_says_nothing(self):
        script = """
import torch
from torch.utils.data import DataLoader
class Sums(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, i):
        return float(torch.ones(10).sum())
print(list(DataLoader(Sums(), num_workers=1, collate_fn=list, multiprocessing_context="fork")))
"""
        for call in ("socket", "connect", "sendmsg"):
            with self.subTest(call):
                summary = self.lull_run(SANDBOXED, "kill", call, "--", torch_python(),
                                        "-W", "ignore", "-c", script)
                self.assertIn("0 processes reported", summary)

    def test_filters_around_lull_itself_are_no_obstacle(self):
        blind = [SANDBOXED, "nothing", "--"]
        summary = self.lull_run(sys.executable, "-c", "pass", prefix=blind)
        self.assertIn("1 process reported", summary)
        summary = self.lull_run(*blind, sys.executable, "-c", "pass", prefix=blind)
        self.assertIn("0 processes reported", summary)


if __name__ == "__main__":
    unittest.main()
