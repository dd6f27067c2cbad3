#!/usr/bin/env python3
"""What delivers and collects drives no thread of the job from its processor: it waits for
an idle one or for its turn. Not so the relay's sampler, who would see only threads that
sleep, and the thread that reads the rings, for which the device's records wait."""

import os
import subprocess
import unittest

import guest
from guest import wait_until

POLICIES = {os.SCHED_OTHER: "other", os.SCHED_BATCH: "batch", os.SCHED_IDLE: "idle"}


def policies(pid):
    """Of each thread: name -> how the kernel schedules those of that name."""
    found = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{tid}/comm", encoding="utf-8") as file:
                name = "main" if tid == str(pid) else file.read().strip()
            policy = os.sched_getscheduler(int(tid))
        except OSError:
            continue  # it has ended
        found.setdefault(name, set()).add(POLICIES.get(policy, policy))
    return found


def relay_of(lull):
    with open(f"/proc/{lull}/task/{lull}/children", encoding="utf-8") as file:
        for pid in map(int, file.read().split()):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as line:
                    if b"relay-worker" in line.read().split(b"\0"):
                        return pid
            except OSError:
                continue  # it has ended
    return None


class Turns(unittest.TestCase):
    def setUp(self):
        self.host = guest.Host()
        self.addCleanup(self.host.close)

    def start(self, *before):
        """A job that ends with its input: its own policy, its relay, its collector."""
        run = subprocess.Popen([*before, guest.LULL, "run", "--quiet", "--", "cat"],
                               stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                               env=self.host.environment)
        self.addCleanup(run.wait)
        self.addCleanup(run.stdin.close)
        relay = wait_until(lambda: relay_of(run.pid))
        wait_until(lambda: {"lull_sampler", "lull_upstream"} <= policies(relay).keys())
        collector = wait_until(
            lambda: next(guest.collectors(self.host.environment["XDG_DATA_HOME"]), None))
        # It answers, so it has all of its threads.
        wait_until(lambda: guest.execute([guest.LULL, "jobs"], self.host.environment).status
                   == 0)
        return run, relay, collector

    @unittest.skipUnless(os.sched_getscheduler(0) == os.SCHED_OTHER, "somebody chose")
    def test_are_waited_for_by_what_delivers_and_collects(self):
        run, relay, collector = self.start()
        self.assertEqual(policies(run.pid)["main"], {"other"})
        of_relay = policies(relay)
        self.assertEqual(of_relay.pop("main"), {"other"}, of_relay)
        self.assertEqual(of_relay.pop("lull_sampler"), {"other"}, of_relay)
        self.assertIn("lull_upstream", of_relay)
        self.assertEqual(set().union(*of_relay.values()), {"batch"}, of_relay)
        of_collector = policies(collector)
        self.assertEqual(set().union(*of_collector.values()), {"batch"}, of_collector)

    def test_are_what_the_user_chose(self):
        _, relay, collector = self.start("chrt", "--batch", "0")
        for pid in (relay, collector):
            self.assertEqual(set().union(*policies(pid).values()), {"batch"})


if __name__ == "__main__":
    unittest.main()
