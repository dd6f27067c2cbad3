#!/usr/bin/env python3
"""What was recorded arrives, or the report says in a sentence what is missing: targets
that write nonsense, folders that vanish, relays that die."""

import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

import guest

UNDECLARED = os.path.join(guest.GUESTS, "undeclared_calls")
# A collection every 50 ms, for so long; then what it did.
COLLECTIONS = """
import gc, sys, time
gc.disable()
end = time.monotonic() + float(sys.argv[1])
done = 0
while time.monotonic() < end:
    gc.collect()
    done += 1
    if len(sys.argv) > 2 and done == 20:
        print("half", flush=True)
    time.sleep(0.05)
print(done)
"""


class Delivery(unittest.TestCase):
    def setUp(self):
        self.host = guest.Host()
        self.runtime = self.host.environment["LULL_RUNTIME_DIR"]
        self.data = os.path.join(self.host.environment["XDG_DATA_HOME"], "lull")

    def tearDown(self):
        self.host.close()

    def start(self, *command):
        return subprocess.Popen([guest.LULL, "run", "--", *command],
                                env=self.host.environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def report(self):
        done = guest.execute([guest.LULL, "report", "--json"], self.host.environment)
        self.assertEqual(done.status, 0, done.stderr)
        return json.loads(done.stdout)

    def text(self):
        done = guest.execute([guest.LULL, "report"], self.host.environment)
        self.assertEqual(done.status, 0, done.stderr)
        return done.stdout

    def check_account(self, losses):
        self.assertEqual(losses["events_committed"],
                         losses["events_stored"] + losses["lost_relay"], losses)

    def test_events_that_name_undeclared_calls_are_left_out_and_hold_nothing_up(self):
        script = f"{UNDECLARED}; {sys.executable} -c '{COLLECTIONS}' 0.5"
        done = self.host.with_lull(["sh", "-c", script], timeout=60)
        self.assertEqual(done.status, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        counts, collections = done.stdout.split("\n")[:2]
        committed, good = map(int, counts.split())
        report = self.report()
        self.assertTrue(report["job"]["ended"])
        # Nothing that works with a GPU: all processes are in the report.
        self.assertEqual(report["losses"]["lost_relay"], committed - good)
        self.check_account(report["losses"])
        self.assertGreaterEqual(report["summary"]["gc_pauses"], int(collections))
        self.assertIn(f"{committed - good} dropped by the relay", self.text())
        self.assertEqual(glob.glob(f"{self.data}/spool/*/*.spool"), [])
        self.assertEqual(glob.glob(f"{self.data}/spool/refused/*"), [])

    def test_a_collector_that_refuses_is_said_and_no_number_with_it(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = "127.0.0.1:%d" % free.getsockname()[1]
        tokens = os.path.join(self.host.environment["XDG_DATA_HOME"], "tokens")
        os.makedirs(os.path.dirname(tokens), exist_ok=True)
        with open(tokens, "w", encoding="utf-8") as file:
            file.write(f"write {'x' * 64}\n")
        os.chmod(tokens, 0o600)
        lulld = os.path.join(os.path.dirname(os.path.dirname(guest.LULL)), "daemon", "collector",
                             "lulld")
        collector = subprocess.Popen(
            [lulld, "--listen", address, "--database", tokens + ".db"],
            env=self.host.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            guest.wait_until(lambda: os.path.exists(tokens + ".db.tokens"))
            time.sleep(0.5)
            done = guest.execute(
                [guest.LULL, "run", "--collector", address, "--token-file", tokens, "--",
                 sys.executable, "-c", "import gc; gc.collect()"], self.host.environment)
        finally:
            collector.terminate()
            collector.wait()
        self.assertEqual(done.status, 0, done.stderr)
        self.assertIn("what is not delivered stays in ", done.stderr)
        self.assertNotIn("batches", done.stderr)

    def test_the_runtime_folder_may_vanish(self):
        # As logind removes it at the last logout.
        process = self.start(sys.executable, "-c", COLLECTIONS, "4", "tell")
        self.assertEqual(process.stdout.readline(), "half\n")
        shutil.rmtree(self.runtime)
        began = time.monotonic()
        jobs = guest.execute([guest.LULL, "jobs"], self.host.environment)
        self.assertEqual(jobs.status, 0, jobs.stderr)
        self.assertIn("running", jobs.stdout)
        self.assertLess(time.monotonic() - began, 15)  # a second, on a machine with time
        out, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        report = self.report()
        self.assertTrue(report["job"]["end_seen"])
        self.assertGreaterEqual(report["summary"]["gc_pauses"], int(out))
        self.assertEqual(report["losses"]["events_lost"], 0)
        self.check_account(report["losses"])
        self.assertGreater(report["job"]["unreachable_ms"], 0)
        self.assertNotIn("Nothing lost", errors)
        self.assertIn("no new process could be recorded, because the runtime folder was gone",
                      errors)

    def test_processes_that_start_after_the_folder_is_there_again_are_recorded(self):
        script = (f"touch {self.host.environment['XDG_DATA_HOME']}/begun; sleep 3; "
                  f"{sys.executable} -c '{COLLECTIONS}' 0.5")
        os.makedirs(self.host.environment["XDG_DATA_HOME"])
        process = self.start("sh", "-c", script)
        guest.wait_until(
            lambda: os.path.exists(f"{self.host.environment['XDG_DATA_HOME']}/begun"))
        shutil.rmtree(self.runtime)
        out, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        self.assertGreaterEqual(self.report()["summary"]["gc_pauses"], int(out))

    def test_a_job_whose_relay_was_killed_is_not_called_complete(self):
        process = self.start(sys.executable, "-c", COLLECTIONS, "6", "tell")
        self.assertEqual(process.stdout.readline(), "half\n")
        for worker in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                with open(worker, "rb") as file:
                    command = file.read().split(b"\0")
                with open(os.path.join(os.path.dirname(worker), "environ"), "rb") as file:
                    ours = self.runtime.encode() in file.read()
            except OSError:
                continue
            if b"relay-worker" in command[1:2] and ours:
                relay = int(worker.split("/")[2])
        process.send_signal(signal.SIGSTOP)  # so that it starts no other
        os.kill(relay, signal.SIGKILL)
        process.kill()
        process.communicate()
        guest.wait_until(lambda: "end not seen" in self.text())
        report = self.report()
        self.assertFalse(report["job"]["end_seen"])
        self.assertGreater(report["job"]["complete_until_ms"], 0)
        self.check_account(report["losses"])
        text = self.text()
        self.assertNotIn("Nothing lost", text)
        self.assertIn("the end of the job was not seen: complete until", text)


if __name__ == "__main__":
    unittest.main()
