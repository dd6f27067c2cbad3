#!/usr/bin/env python3
"""Symbols of programs that another user wrote: who reads them, and what a program can do to
those who want to know what its functions are called."""

import ctypes
import json
import os
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import threading
import time
import unittest

import guest
from guest import wait_until

STEADY = os.path.join(os.environ["LULL_PUPPETS"], "steady_host13")
SIM = os.environ["LULL_SIM"]
NOBODY = 65534
LONG = os.environ.get("LULL_LONG") == "1"
# More than the 1.25 s for which a job that is over waits without news, and so much less than
# the 5 s for which it waits for names that a machine may be busy for two of them.
SOME_SECONDS = 3


def children(pid):
    """(pid, arguments) of the processes that `pid` started and that live."""
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/stat") as file:
                if int(file.read().rsplit(") ", 1)[1].split()[1]) != pid:
                    continue
            with open(f"/proc/{entry}/cmdline") as file:
                yield int(entry), file.read().split("\0")[:-1]
        except (OSError, ValueError, IndexError):
            continue


def readers(pid):
    """The symbol readers of the relay that `pid` keeps."""
    return [(reader, arguments) for worker, _ in children(pid)
            for reader, arguments in children(worker) if arguments[1:2] == ["symbol-reader"]]


def give_it_no_end_of_symbols(path):
    """A program that runs as before, and whose symbol tables take days to read: each of 60 000
    sections says that it is a table of 1.4 million symbols, all in the same zeros."""
    zeros, sections = 24 * 1_400_000, 60_000
    with open(path, "r+b") as file:
        start = file.seek(0, os.SEEK_END) + 4095 & ~4095
        file.truncate(start + zeros)
        file.seek(start + zeros)
        header = struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, start, zeros, 1, 0, 8, 24)
        file.write(bytes(64) + header * (sections - 1))
        file.seek(0x28)
        file.write(struct.pack("<Q", start + zeros))  # e_shoff
        file.seek(0x3a)
        file.write(struct.pack("<HHH", 64, sections, 0))  # e_shentsize, e_shnum, e_shstrndx


class Case(unittest.TestCase):
    def setUp(self):
        self.host = guest.Host()
        self.addCleanup(self.host.close)
        folder = tempfile.TemporaryDirectory(prefix="lull-symbols-")
        self.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        self.program = shutil.copy(STEADY, os.path.join(folder.name, "steady"))
        self.libraries = shutil.copytree(SIM, os.path.join(folder.name, "lib"))
        self.alive = os.path.join(folder.name, "alive")
        with open(self.alive, "w"):
            pass

    def environment(self):
        return {**self.host.environment, "LD_LIBRARY_PATH": self.libraries,
                "LULL_SIM_CONFIG": "kernel_us=100"}

    def start(self, command, **options):
        process = subprocess.Popen(command, env=self.environment(), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **options)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def syncs(self):
        done = guest.execute([guest.LULL, "syncs", "--by", "stack", "--json"],
                             self.host.environment)
        self.assertEqual(done.status, 0, done.stderr)
        return json.loads(done.stdout)

    def functions(self):
        return [frame["function"] for point in self.syncs()["sync_points"]
                for frame in point["native_stack"]]


class OfAnotherUser(Case):
    @unittest.skipUnless(os.getuid() == 0, "needs root, to have rights to give up")
    def test_are_read_with_that_users_rights(self):
        job = self.start([self.program, self.alive], user=NOBODY, group=NOBODY, extra_groups=[])
        attached = self.start([guest.LULL, "attach", str(job.pid), "--for", "20s", "--quiet"])
        ((reader, arguments),) = wait_until(
            lambda: attached.poll() is not None or readers(attached.pid))
        self.assertEqual(arguments[1:], ["symbol-reader", str(NOBODY), str(NOBODY)])

        def status():
            with open(f"/proc/{reader}/status") as file:
                return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
        wait_until(lambda: status()["NoNewPrivs"] == "1" and status()["CapEff"] == "0" * 16)
        self.assertEqual(status()["Uid"].split(), [str(NOBODY)] * 4)
        self.assertEqual(status()["Gid"].split(), [str(NOBODY)] * 4)
        time.sleep(2)
        os.remove(self.alive)
        self.assertEqual(job.wait(timeout=60), 7)  # as always
        self.assertEqual(attached.wait(timeout=60), 0, attached.stderr.read())
        self.assertTrue(any("step(" in function for function in self.functions()),
                        self.functions())
        self.assertFalse(os.path.exists(f"/proc/{reader}"))


class HeldUp:
    """As long as it goes on, lull's reader of symbols waits for a file that all others open."""

    def __init__(self, test, path):
        libc = ctypes.CDLL(None, use_errno=True)
        self.watch = libc.fanotify_init(0x04 | 0x01, os.O_RDONLY)  # CLASS_CONTENT | CLOEXEC
        if self.watch < 0 or libc.fanotify_mark(
                self.watch, 0x01, ctypes.c_uint64(0x00010000), -100, path.encode()) != 0:
            test.skipTest("no fanotify here: " + os.strerror(ctypes.get_errno()))  # ADD, OPEN_PERM
        self.held = []
        self.over = False
        self.thread = threading.Thread(target=self.answer)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.thread.join()
        os.close(self.watch)  # lets all who wait open it
        for file in self.held:
            os.close(file)

    def answer(self):
        while not self.over:
            if not select.select([self.watch], [], [], 0.05)[0]:
                continue
            # struct fanotify_event_metadata
            *_, file, pid = struct.unpack("IBBHQii", os.read(self.watch, 24))
            with open(f"/proc/{pid}/cmdline", "rb") as command:
                words = command.read().split(b"\0")
            if b"relay-worker" in words or b"symbol-reader" in words:
                self.held.append(file)
            else:
                os.write(self.watch, struct.pack("iI", file, 0x01))  # ALLOW
                os.close(file)


@unittest.skipUnless(os.getuid() == 0, "only root can let others wait for a file")
class ThatHang(Case):
    def start_that_hangs(self, *options):
        """A job whose program nobody can open any more, once somebody has tried. Also what to
        close for that to end."""
        libc = ctypes.CDLL(None, use_errno=True)
        watch = libc.fanotify_init(0x04 | 0x01, os.O_RDONLY)  # CLASS_CONTENT | CLOEXEC
        if watch < 0:
            self.skipTest("no fanotify here: " + os.strerror(ctypes.get_errno()))
        try:
            job = self.start([guest.LULL, "run", "--dormant", *options, "--name", "hangs", "--",
                              self.program, self.alive])
            wait_until(lambda: guest.execute([guest.LULL, "disarm", "hangs"],
                                             self.host.environment).status == 0)
            # Who opens the file waits for an answer, which never comes.
            if libc.fanotify_mark(watch, 0x01, ctypes.c_uint64(0x00010000), -100,
                                  self.program.encode()) != 0:  # ADD, OPEN_PERM
                self.skipTest("no fanotify here: " + os.strerror(ctypes.get_errno()))
            self.tell("arm")
            self.assertTrue(select.select([watch], [], [], 60)[0], "nobody opens it")
        except BaseException:
            os.close(watch)
            raise
        return job, watch

    def test_hold_up_neither_rings_nor_commands_and_have_names_in_the_end(self):
        job, watch = self.start_that_hangs("--quiet")
        try:
            time.sleep(1)
            self.tell("disarm")
        finally:
            os.close(watch)  # lets all who wait open it
        os.remove(self.alive)
        _, said = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 7, said)  # as always
        losses = wait_until(lambda: self.ended(), 60)["losses"]
        self.assertEqual((losses["events_lost"], losses["modules_unread"]), (0, 0))
        self.assertTrue(any("step(" in function for function in self.functions()),
                        self.functions())

    def test_for_some_seconds_do_not_cost_the_summary(self):
        job, watch = self.start_that_hangs()
        try:
            os.remove(self.alive)
            time.sleep(SOME_SECONDS)
            self.assertIsNone(job.poll(), "it gave up")
        finally:
            os.close(watch)  # lets all who wait open it
        _, said = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 7, said)  # as always
        self.assertNotIn(b"not delivered", said)
        self.assertIn(b"More: lull report", said)  # where a summary says that there is more

    def test_of_a_job_of_which_nothing_has_arrived_yet_do_not_cost_it_either(self):
        with HeldUp(self, self.program) as held:
            job = self.start([guest.LULL, "run", "--name", "hangs", "--", self.program,
                              self.alive])
            wait_until(lambda: held.held)
            os.remove(self.alive)
            time.sleep(SOME_SECONDS)
            self.assertIsNone(job.poll(), "it gave up")
        _, said = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 7, said)  # as always
        self.assertNotIn(b"not delivered", said)
        self.assertIn(b"More: lull report", said)

    def test_are_not_waited_for_by_who_has_interrupted_twice(self):
        job = self.start([self.program, self.alive])
        with HeldUp(self, self.program) as held:
            attached = self.start([guest.LULL, "attach", str(job.pid)])
            wait_until(lambda: held.held or attached.poll() is not None)
            time.sleep(2)
            attached.send_signal(signal.SIGINT)
            time.sleep(1)  # it has detached, and waits for names
            self.assertIsNone(attached.poll(), "it did not wait")
            attached.send_signal(signal.SIGINT)
            attached.wait(timeout=3)  # of the 5 s for which it waits else
        os.remove(self.alive)
        self.assertEqual(job.wait(timeout=60), 7)  # as always
        wait_until(self.ended, 60)

    def test_and_then_a_collector_that_takes_its_time_do_not_cost_it_either(self):
        """What has its names at last is on its way, and not as old as they are."""
        job, watch = self.start_that_hangs()
        try:
            os.remove(self.alive)
            time.sleep(SOME_SECONDS)
            self.assertIsNone(job.poll(), "it gave up")
            (collector,) = guest.collectors(self.host.environment["XDG_DATA_HOME"])
            self.addCleanup(os.kill, collector, signal.SIGCONT)
            os.kill(collector, signal.SIGSTOP)
        finally:
            os.close(watch)  # lets all who wait open it
        time.sleep(0.4)
        self.assertIsNone(job.poll(), "it gave up")
        os.kill(collector, signal.SIGCONT)
        _, said = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 7, said)  # as always
        self.assertNotIn(b"not delivered", said)
        self.assertIn(b"More: lull report", said)

    def tell(self, verb):
        done = guest.execute([guest.LULL, verb, "hangs"], self.host.environment, timeout=60)
        self.assertEqual(done.status, 0, done.stderr)

    def ended(self):
        report = self.syncs()
        return report if report["job"]["ended"] else None


@unittest.skipUnless(LONG, "in the slow tier: a reader is waited for twice, 10 s of its own time each")
class WithoutEnd(Case):
    def test_are_done_without_and_the_report_says_so(self):
        give_it_no_end_of_symbols(self.program)
        job = self.start([guest.LULL, "run", "--name", "endless", "--", self.program, self.alive])
        wait_until(lambda: readers(job.pid))
        time.sleep(2)
        os.remove(self.alive)
        _, said = job.communicate(timeout=180)
        self.assertEqual(job.returncode, 7, said)  # as always
        report = wait_until(lambda: self.delivered(), 120)
        self.assertEqual(report["losses"]["modules_unread"], 1)
        self.assertTrue(any(function.startswith("steady+0x") for function in self.functions()))
        text = guest.execute([guest.LULL, "syncs"], self.host.environment).stdout
        self.assertIn("functions without names, for reading the symbols of their libraries "
                      "failed: in 1 library", text)

    def delivered(self):
        report = self.syncs()
        losses = report["losses"]
        accounted = losses["events_stored"] + losses["events_lost"]  # rings ran full meanwhile
        return report if report["job"]["ended"] and losses["events_committed"] <= accounted \
            else None


if __name__ == "__main__":
    unittest.main()
