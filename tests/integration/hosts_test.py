#!/usr/bin/env python3
"""Ranks of several hosts that wait for each other: one job, clocks days apart.

The hosts are namespaces of this machine: a time namespace has a CLOCK_MONOTONIC of its own, whose
distance from ours we choose, and so know."""

import json
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import guest
from loader_test import PUPPETS, TorchOnTheCpu, expected
from own_clock import OwnClock

DAY = 86_400
AHEAD = [3 * DAY, 10 * DAY]  # seconds, of each host
RUN = "of-two-hosts"


def namespace(ahead, *command):
    return ["unshare", "-U", "-r", "-T", "--monotonic", str(ahead), "-u", "--fork", *command]


def refusal():
    """Why this machine has no such hosts; "" if it has."""
    try:
        done = subprocess.run(namespace(DAY, "sh", "-c", "hostname node && cat /proc/uptime"),
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    except OSError as error:
        return str(error)
    return done.stderr.decode().strip() if done.returncode != 0 else ""


class Cluster(TorchOnTheCpu):
    """A collector with a port, for each test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="lull-hosts-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = "127.0.0.1:%d" % free.getsockname()[1]
        self.database = os.path.join(self.folder, "lull.db")
        self.lulld = subprocess.Popen(
            [guest.LULLD, "--listen", self.address, "--database", self.database],
            env=self.host.environment, stderr=subprocess.DEVNULL)
        self.addCleanup(self.stop)
        guest.wait_until(lambda: self.lull("jobs").status == 0)

    def stop(self):
        self.lulld.kill()
        self.lulld.wait()

    def lull(self, *arguments):
        return guest.execute([guest.LULL, *arguments, "--collector", self.address,
                              "--token-file", f"{self.database}.tokens"],
                             self.host.environment)

    def ask_all(self, *arguments):
        done = self.lull(*arguments, "--json")
        self.assertEqual(done.status, 0, done.stderr)
        return json.loads(done.stdout)


class Hosts(Cluster):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        why = refusal()
        if why:
            print(f"SKIPPED: no hosts made of time namespaces here: {why}", file=sys.stderr)
            raise unittest.SkipTest(why)

    def run_hosts(self, name, run=RUN, **variables):
        """One rank on each host."""
        folder = os.path.join(self.folder, name)
        os.mkdir(folder)
        store = os.path.join(folder, "store")
        hosts = []
        for rank, ahead in enumerate(AHEAD):
            state = os.path.join(folder, f"node{rank}")
            os.mkdir(state)
            environment = dict(
                guest.lull_environment(state), RANK=str(rank), LOCAL_RANK="0", WORLD_SIZE="2",
                OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo", TORCHELASTIC_RUN_ID=run, **variables)
            hosts.append(subprocess.Popen(
                namespace(ahead, "sh", "-c", f'hostname node{rank} && exec "$@"', "sh",
                          guest.LULL, "run", "--quiet", "--name", name,
                          "--overhead-budget", "100", "--collector", self.address,
                          "--token-file", f"{self.database}.tokens", "--",
                          self.python, "-W", "ignore", os.path.join(PUPPETS, "ddp.py"),
                          "--store", store, "--late"),
                env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT))
        for one in hosts:
            said = one.communicate(timeout=240)[0].decode()
            self.assertEqual((one.returncode, said), (0, ""))
        return OwnClock(store, AHEAD)

    def check_clocks(self):
        """All that was read of both clocks: what we made of them lies inside."""
        with sqlite3.connect(f"file:{self.database}?mode=ro", uri=True) as database:
            rows = database.execute("SELECT job_info, reading FROM clock_readings "
                                    "JOIN jobs ON jobs.id=job").fetchall()
        by_host = {}
        for info, blob in rows:
            host = guest.fields_of(info)[4].decode()
            reading = guest.fields_of(blob)
            low, high = ((value >> 1) ^ -(value & 1) for value in (reading[2], reading[3]))
            truth = -AHEAD[int(host.removeprefix("node"))] * 10**9
            self.assertLessEqual(low, truth)
            self.assertGreaterEqual(high, truth)
            by_host.setdefault(host, []).append((high - low) / 2e3)
        self.assertEqual(sorted(by_host), ["node0", "node1"])
        for host, errors in sorted(by_host.items()):
            # One at the start and one at the end, or more.
            self.assertGreaterEqual(len(errors), 2)
            print(f"{host}: {len(errors)} readings, ± {min(errors):.0f} to {max(errors):.0f} us",
                  file=sys.stderr)

    def test_the_late_rank_of_two_hosts_is_named(self):
        """As in ranks_test.py: a disturbed run is made again, twice at most."""
        for name in ("late", "late-again", "late-third"):
            own = self.run_hosts(name, f"{RUN}-{name}")
            self.check_clocks()
            try:
                return self.check_late(name, own)
            except AssertionError:
                if name == "late-third" or not own.disturbed():
                    raise
        return None

    def check_late(self, name, own):
        answer = self.ask_all("ranks", name, "--phase", "all")
        print(f"{own}, by lull "
              f"{ {key: answer[key] for key in ('ranks', 'clock', 'unexplained_ms')} }",
              file=sys.stderr)
        # In the order of their starts: which host's Python is up first is not ours to say.
        hosts = [part["host"] for part in answer["job"]["parts"]]
        self.assertEqual(sorted(hosts), ["node0", "node1"])
        self.assertEqual(answer["world_size"], 2)
        self.assertEqual(answer["clock"]["error_kind"], "bound")
        self.assertGreater(answer["clock"]["error_ns"], 0)
        first, second = answer["ranks"]
        self.assertEqual((first["rank"], first["host"]), (1, "node1"))
        self.assertEqual((second["rank"], second["host"]), (0, "node0"))
        # It may lack a processor at times, which is no fault of a line.
        self.assertEqual([one for one in second["culprits"] if one["cause"] != "run_queue"], [])
        sleep = first["culprits"][0]
        self.assertEqual(sleep["cause"], "sleep")
        self.assertEqual((os.path.basename(sleep["file"]), sleep["line"], sleep["function"]),
                         ("ddp.py", expected.site("ddp.py", "late"), "augment"))
        own.check(self, sleep, 1)
        # One job, whichever part is asked for.
        jobs = [job for job in self.ask_all("jobs")["jobs"] if job["name"] == name]
        self.assertEqual(len(jobs), 1)
        for part in jobs[0]["parts"]:
            again = self.ask_all("ranks", part["id"], "--phase", "all")
            self.assertEqual(again["ranks"][0]["culprits"][0]["line"], sleep["line"])
        self.assertIn("node1", self.lull("ranks", name).stdout)
        self.assertIn("node0, node1", self.lull("jobs").stdout)  # by their names
        self.assertEqual(self.ask_all("report", name, "--rank", "0")["job"]["host"], "node0")
        self.assertEqual(self.ask_all("report", name, "--rank", "1")["job"]["host"], "node1")

    def test_hosts_whose_ranks_meet_at_one_place_are_one_job(self):
        """Whatever started them; here torchrun that was given no name."""
        self.run_hosts("meeting", "none", MASTER_ADDR="node0.cluster", MASTER_PORT="29500")
        (job,) = self.ask_all("jobs")["jobs"]
        self.assertEqual(sorted(part["host"] for part in job["parts"]), ["node0", "node1"])
        self.assertEqual(self.ask_all("ranks", "meeting")["world_size"], 2)

    def test_runs_of_other_names_stay_two_jobs(self):
        self.run_hosts("apart", "none")
        done = self.lull("ranks", "apart")
        self.assertEqual(done.status, 1)
        self.assertIn("1 of 2 ranks waited in what lull has recorded", done.stderr)
        jobs = self.ask_all("jobs")["jobs"]
        self.assertEqual(len(jobs), 2)
        self.assertNotIn("parts", jobs[0])


if __name__ == "__main__":
    unittest.main()
