#!/usr/bin/env python3
"""Threads in crowds: every call of every thread is recorded, however the threads come
and go and wherever they jump, and none of them waits for the loader."""

import json
import os
import re
import sqlite3
import subprocess
import sys
import glob
import unittest

import guest

RELAY_RING = 65535  # daemon/relay/samples/run_delay.h
CROWD = os.path.join(guest.GUESTS, "crowd")
CONSTRUCTOR = os.path.join(guest.GUESTS, "libcalling_constructor.so")


class Threads(unittest.TestCase):
    def setUp(self):
        self.host = guest.Host()

    def tearDown(self):
        self.host.close()

    def losses(self):
        """Of the newest job, and how many events the relay made itself."""
        done = guest.execute([guest.LULL, "report", "--json"], self.host.environment)
        self.assertEqual(done.status, 0, done.stderr)
        losses = json.loads(done.stdout)["losses"]
        (path,) = glob.glob(os.path.join(self.host.environment["XDG_DATA_HOME"], "**", "*.db"),
                            recursive=True)
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
            own, = database.execute("SELECT COALESCE(SUM(count), 0) FROM blocks WHERE ring = ?",
                                    (RELAY_RING,)).fetchone()
        return losses, own

    def check_all_recorded(self, *arguments, env=None, before=()):
        done = self.host.with_lull([*before, CROWD, *map(str, arguments)], env=env,
                                   timeout=60)
        self.assertEqual(done.status, 0, done.stderr)
        calls, threads = map(int, done.stdout.split())
        losses, own = self.losses()
        self.assertEqual(losses["events_lost"], 0, losses)
        # A thread's first event says that it is there.
        self.assertEqual(losses["events_committed"] - own, calls + threads, losses)
        self.assertEqual(losses["events_stored"], losses["events_committed"], losses)

    def test_threads_that_begin_together_lose_nothing(self):
        for threads, calls in ((3, 500), (8, 500), (80, 500)):
            for _ in range(5):
                with self.subTest(threads=threads):
                    self.check_all_recorded("together", threads, calls)

    def test_threads_that_begin_together_need_no_more_descriptors_than_one_does(self):
        # Two are free: for the segment, and for the socket that it is sent through.
        for _ in range(10):
            self.check_all_recorded("together", 256, 20,
                                    before=("sh", "-c", 'ulimit -n 5; exec "$@"', "sh"))

    def test_threads_that_begin_together_lose_nothing_to_a_relay_that_answers_late(self):
        # As on a machine that has no time for it. A process waits for two seconds.
        late = 'kill -STOP $PPID; (sleep 0.8; kill -CONT $PPID) & exec "$@"'
        self.check_all_recorded("together", 80, 500, before=("sh", "-c", late, "sh"))

    def test_a_thousand_threads_that_stay_lose_nothing(self):
        # Threads wait for the one that starts recording, but not for ever: where so many begin
        # at once on a full machine, and it gets no processor, they go on and are counted.
        for _ in range(2):
            self.host.with_lull([CROWD, "together", "1024", "40"], timeout=60)
            losses, _ = self.losses()
            if losses["events_lost"] == 0:
                break
            self.assertEqual(losses["lost_no_ring"], losses["events_lost"], losses)
            print(f"a full machine: {losses['events_lost']} events lost", file=sys.stderr)
        self.check_all_recorded("together", 1024, 40)

    def test_threads_that_find_no_memory_live_on(self):
        # Whoever asks the loader for memory at a thread's first stack ends the process.
        for _ in range(10):
            done = self.host.with_lull(
                ["sh", "-c", 'ulimit -v 2097152; exec "$@"', "sh", CROWD, "together", "1024",
                 "40"], timeout=60)
            # A busy machine may say that what is recorded is not delivered yet.
            self.assertEqual((done.status, done.stdout), (0, "40960 1024\n"), done.stderr)

    def test_a_thousand_threads_one_after_the_other_lose_nothing(self):
        self.check_all_recorded("sequence", 1024, 20)

    def test_what_threads_do_in_their_last_destructor_is_recorded(self):
        self.check_all_recorded("keys", 200)

    def test_a_constructor_may_wait_for_a_thread_that_calls_for_the_first_time(self):
        # ... in the process, or on that thread.
        for calls_before in (0, 1):
            with self.subTest(calls_before=calls_before):
                self.check_all_recorded("constructor", CONSTRUCTOR, calls_before)

    def test_64_busy_threads_touch_no_more_than_32_mib(self):
        process = subprocess.Popen(
            [guest.LULL, "run", "--quiet", "--", CROWD, "together", "64", "400000"],
            env=self.host.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        most = 0
        while process.poll() is None:
            for pid in children_of(process.pid):
                most = max(most, segment_kilobytes(pid))
        self.assertEqual(process.wait(), 0, process.stderr.read())
        process.stderr.close()
        self.assertGreater(most, 1024, "nothing was seen")
        self.assertLessEqual(most, 32 << 10)


class TooLate(unittest.TestCase):
    def test_a_process_that_waited_in_vain_is_told_of(self):
        host = guest.Host()
        self.addCleanup(host.close)
        # A stopped lull answers no process that begins.
        done = host.with_lull(["sh", "-c", 'kill -STOP $PPID; "$0" together 2 10; kill -CONT $PPID',
                               CROWD], timeout=60)
        self.assertEqual((done.status, done.stdout), (0, "20 2\n"), done.stderr)
        done = guest.execute([guest.LULL, "report"], host.environment)
        self.assertNotIn("Nothing lost", done.stdout)
        self.assertRegex(done.stdout, "processes that could not be recorded at all .*: 1")


class Jumps(unittest.TestCase):
    """Out of hooked calls: no thread is blinded, and what was not recorded is counted."""

    def setUp(self):
        self.host = guest.Host()

    def tearDown(self):
        self.host.close()

    def recorded(self, way):
        """(of the 1,000 synchronisations after the jump, counted as not recorded)"""
        done = self.host.with_lull([os.path.join(guest.GUESTS, "jumps_out"), way], timeout=60)
        self.assertEqual((done.status, done.stdout), (0, "trained\n"), done.stderr)
        done = guest.execute([guest.LULL, "syncs", "--json"], self.host.environment)
        self.assertEqual(done.status, 0, done.stderr)
        report = json.loads(done.stdout)
        calls = [point["calls"] for point in report["sync_points"]
                 if point["api"] == "cudaStreamSynchronize"]
        return sum(calls), report["losses"]["reentered"]

    def test_after_a_jump_out_of_a_wait_nothing_is_lost(self):
        self.assertEqual(self.recorded("wait"), (1000, 0))

    def test_after_a_jump_out_of_a_handlers_wait_on_a_stack_of_its_own_nothing_is_lost(self):
        for way in ("above", "below"):
            with self.subTest(stack=way):
                self.assertEqual(self.recorded(way), (1000, 0))

    def test_a_handler_on_a_stack_above_does_not_disturb_our_own_work(self):
        for _ in range(3):
            done = self.host.with_lull([os.path.join(guest.GUESTS, "interrupted"), "2"],
                                       timeout=60)
            self.assertEqual(done.status, 0, done.stderr)
            report = guest.execute([guest.LULL, "report", "--json"], self.host.environment)
            losses = json.loads(report.stdout)["losses"]
            self.assertEqual(losses.get("lost_relay", 0), 0, "events that make no sense")
            recorded = (losses["events_committed"] + losses["events_lost"] +
                        losses["reentered"])
            self.assertEqual(recorded, int(done.stdout) + 1, losses)

    def test_after_a_jump_out_of_a_cuda_call_what_is_lost_is_counted(self):
        recorded, counted = self.recorded("cuda")
        self.assertGreater(recorded, 900)
        self.assertEqual(recorded + counted, 1000)


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


def segment_kilobytes(pid):
    """Of the shared memory that the shim made; 0 for a process that has none."""
    try:
        if os.path.basename(os.readlink(f"/proc/{pid}/exe")) != "crowd":
            return 0
        with open(f"/proc/{pid}/smaps") as file:
            text = file.read()
    except OSError:  # it may end at any moment
        return 0
    sizes = re.findall(r"memfd:lull.*?\nRss: +(\d+) kB", text, re.DOTALL)
    return sum(map(int, sizes))


if __name__ == "__main__":
    unittest.main()
