#!/usr/bin/env python3
"""`lulld --metrics`: the numbers of the verbs, for who has the read token, and for nobody else,
whatever they send. promtool, where there is one, reads what it says; tools/test --prometheus
has a Prometheus scrape it."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import guest
import web_test
from metrics_case import HOSTILE, WORLD, MetricsCase, of

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RULES = os.path.join(ROOT, "tools", "prometheus")
CAUSES, KINDS = 13, 8
LABEL_OF = {"lull_gpu_idle_seconds_total": "cause", "lull_wait_seconds_total": "kind",
            "lull_waits_total": "kind", "lull_gpu_operations_total": "kind"}


def promtool(test):
    found = shutil.which("promtool")
    if found is None:
        print("\nSKIPPED: there is no promtool here (Debian: apt-get install prometheus; "
              "tools/test --prometheus installs it)", file=sys.stderr)
        test.skipTest("no promtool")
    return found


class Metrics(MetricsCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        assert cls.start_ranks(HOSTILE).wait(120) == 0
        cls.run_id = cls.run_of(HOSTILE)
        cls.wait_for_end(cls.run_id)

    def test_numbers_are_those_of_the_verbs(self):
        samples = self.scrape()
        for rank in range(WORLD):
            for (name, label), value in self.told_by_verbs(self.run_id, rank).items():
                with self.subTest(rank=rank, name=name, label=label):
                    labels = {"run": self.run_id, "rank": str(rank)}
                    if label:
                        labels[LABEL_OF.get(name, "allocator")] = label
                    told = of(samples, name, **labels)
                    self.assertIsNotNone(told)
                    self.assertAlmostEqual(told, value, places=6)
            labels = {"run": self.run_id, "rank": str(rank)}
            idle = [value for (name, its), value in samples.items()
                    if name == "lull_gpu_idle_seconds_total" and labels.items() <= dict(its).items()]
            self.assertEqual(len(idle), CAUSES)
            traced = of(samples, "lull_gpu_traced_seconds_total", **labels)
            self.assertGreater(traced, 0)
            self.assertAlmostEqual(
                sum(idle) + of(samples, "lull_gpu_busy_seconds_total", **labels), traced, places=6)
            kinds = [its for name, its in samples
                     if name == "lull_waits_total" and labels.items() <= dict(its).items()]
            self.assertEqual(len(kinds), KINDS)

    def test_says_of_the_run_what_reports_say(self):
        samples, report = self.scrape(), self.ask("report", self.run_id)
        losses, job = report["losses"], report["job"]
        for name, value in (("lull_run_running", 0), ("lull_run_asleep", 0),
                            ("lull_run_exit_status", 0), ("lull_processes", job["processes"]),
                            ("lull_working_processes", WORLD),
                            ("lull_run_duration_seconds", job["duration_ms"] / 1e3),
                            ("lull_events_committed_total", losses["events_committed"]),
                            ("lull_events_stored_total", losses["events_stored"]),
                            ("lull_relay_cpu_seconds_total",
                             report["overhead"]["relay_cpu_ms"] / 1e3)):
            self.assertAlmostEqual(of(samples, name, run=self.run_id), value, places=6, msg=name)
        for place in ("ring_full", "no_ring", "relay"):
            self.assertEqual(of(samples, "lull_events_lost_total", run=self.run_id, place=place),
                             losses[f"lost_{place}"])
        incomplete = [value for (name, labels), value in samples.items()
                      if name == "lull_run_incomplete" and ("run", self.run_id) in labels]
        self.assertGreater(len(incomplete), 5)
        self.assertEqual(set(incomplete), {0})

    def test_what_ranks_use_of_their_host_is_what_the_kernel_says(self):
        """Some seconds late; both of /proc/PID/stat."""
        job, pids = self.start_ranks("uses", 10**6), {}
        try:
            run = guest.wait_until(lambda: next(
                (one["id"] for one in self.ask("jobs")["jobs"] if one["name"] == "uses"), None))
            guest.wait_until(lambda: len([process for process in self.ask("report", run)["processes"]
                                          if process["rank"] is not None]) == WORLD)
            pids.update((process["rank"], process["pid"])
                        for process in self.ask("report", run)["processes"])

            def used(rank):
                with open(f"/proc/{pids[rank]}/stat", encoding="utf-8") as file:
                    fields = file.read().rpartition(")")[2].split()
                return [int(field) / os.sysconf("SC_CLK_TCK") for field in fields[11:13]]
            before = {rank: used(rank) for rank in range(WORLD)}

            def told(samples, name, rank, **labels):
                return of(samples, name, run=run, rank=str(rank), **labels)
            samples = self.wait_for(lambda found: all(
                (told(found, "lull_process_cpu_seconds_total", rank, mode="user") or 0)
                >= before[rank][0] for rank in range(WORLD)))
            for rank in range(WORLD):
                for mode, most in zip(("user", "system"), used(rank)):
                    self.assertLessEqual(
                        told(samples, "lull_process_cpu_seconds_total", rank, mode=mode), most)
                self.assertGreater(told(samples, "lull_process_resident_bytes", rank), 2**20)
                self.assertIsNotNone(told(samples, "lull_process_major_faults_total", rank))
        finally:
            for pid in pids.values() or [job.pid]:
                os.kill(pid, signal.SIGKILL)
            job.wait(60)

    def test_a_hostile_name_is_a_label_and_nothing_else(self):
        samples = self.scrape()
        (labels,) = [dict(labels) for name, labels in samples
                     if name == "lull_run_info" and ("run", self.run_id) in labels]
        self.assertEqual(labels["name"], HOSTILE.replace("\r", "\ufffd"))
        self.assertEqual(set(labels), {"run", "name", "host"})

    def test_what_there_is_stands_in_the_documentation(self):
        with open(os.path.join(ROOT, "docs", "metrics.md"), encoding="utf-8") as file:
            told = file.read()
        names = {name.removesuffix("_sum").removesuffix("_count") for name, _ in self.scrape()}
        self.assertGreater(len(names), 30)
        self.assertEqual([name for name in sorted(names) if f"`{name}`" not in told], [])

    def test_rules_and_dashboard_ask_for_what_there_is(self):
        with open(os.path.join(ROOT, "docs", "metrics.md"), encoding="utf-8") as file:
            known = set(re.findall("`(lull_[a-z_]+)`", file.read()))
        for name in ("tools/prometheus/lull_rules.yml", "tools/grafana/lull.json"):
            with open(os.path.join(ROOT, name), encoding="utf-8") as file:
                used = set(re.findall(r"(?<![:a-z_])lull_[a-z_]+(?![:a-z_.])", file.read()))
            self.assertGreater(len(used), 10)
            used = {re.sub("^(lull_step_duration_seconds)_(sum|count)$", r"\1", one) for one in used}
            self.assertEqual(used - known, set(), name)

    def test_promtool_has_no_complaint(self):
        tool, text = promtool(self), self.get().body
        done = subprocess.run([tool, "check", "metrics"], input=text, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        self.assertEqual((done.returncode, done.stdout.decode()), (0, ""))

    def test_goes_on_with_its_run_and_forgets_it_not_at_once(self):
        job = self.start_job("runs", sys.executable, "-c",
                             "import gc, sys\nfor line in sys.stdin:\n    gc.collect()",
                             stdin=subprocess.PIPE, text=True)
        try:
            def again():
                job.stdin.write("again\n")
                job.stdin.flush()
                return [one for one in self.ask("jobs")["jobs"] if one["name"] == "runs"]
            run = guest.wait_until(again)[0]["id"]

            def pauses(samples):
                return sum(value for (name, labels), value in samples.items()
                           if name == "lull_gc_pause_seconds_total" and ("run", run) in labels)
            before = self.wait_for(lambda samples: again() and pauses(samples) > 0)
            self.assertEqual(of(before, "lull_run_running", run=run), 1)
            self.assertIsNone(of(before, "lull_run_exit_status", run=run))
            self.wait_for(lambda samples: again() and pauses(samples) > pauses(before))
        finally:
            job.stdin.close()
            job.wait(60)
        self.assertEqual(of(self.wait_for_end(run), "lull_run_running", run=run), 0)

    def test_an_answer_is_kept_for_some_seconds(self):
        began = time.monotonic()
        ages = [of(self.scrape(), "lull_metrics_age_seconds") for _ in range(20)]
        made_anew = sum(one > other for one, other in zip(ages, ages[1:]))
        self.assertLessEqual(made_anew, 1 + (time.monotonic() - began) / 5)

    def test_only_who_has_the_read_token_learns_anything(self):
        secret = self.tokens["read"]
        bodies = set()
        for value in (None, "", "Bearer", "Bearer ", secret, f"Basic {secret}", f"Bearer {secret}0",
                      f"Bearer {secret[:-1]}", f"Bearer {self.tokens['write']}",
                      f"Bearer {self.tokens['control']}", f"Bearer {secret},{secret}"):
            for target, method in (("/metrics", "GET"), ("/", "GET"), ("/metrics", "POST")):
                reply = self.get(target, method, Authorization=value)
                self.assertEqual(reply.status, 401, value)
                self.assertEqual(reply.headers["www-authenticate"], 'Bearer realm="lulld"')
                bodies.add(reply.body)
        self.assertEqual(len(bodies), 1)
        self.assertNotIn(self.run_id.encode(), bodies.pop())
        self.assertEqual(self.get(Authorization=f"bearer {secret}").status, 200)

    def test_answers_a_get_of_metrics_and_nothing_else(self):
        for method in ("HEAD", "POST", "PUT", "DELETE", "OPTIONS", "BREW"):
            reply = self.get(method=method)
            self.assertEqual((reply.status, reply.headers.get("allow")), (405, "GET"), method)
        for target in ("/", "/metrics/", "/metrics/..", "/../etc/passwd", "/-/reload", "*",
                       "/api/v1/query", "http://127.0.0.1/metrics"):
            self.assertEqual(self.get(target).status, 404, target)
        self.assertEqual(self.get("/metrics?collect[]=x").status, 200)
        self.assertEqual(self.get(Content_Length="5").status, 400)
        self.assertEqual(self.get(Transfer_Encoding="chunked").status, 400)

    def test_no_request_is_too_large_and_nothing_else_brings_it_down(self):
        self.assertIn(self.get(X="y" * 100_000).status, (0, 431))
        self.assertIn(self.get("/metrics?" + "y" * 100_000).status, (0, 431))
        for junk in (b"\x00" * 1000, b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"\r\n" * 1000,
                     b"GET /metrics HTTP/9.9\r\n\r\n", b"A" * 50_000):
            web_test.Web.raw(self.port, junk)
        self.assertEqual(self.get().status, 200)
        self.assertTrue(self.ask("jobs")["jobs"])

    def test_who_is_slow_keeps_nobody_waiting(self):
        held = []
        request = f"GET /metrics HTTP/1.1\r\nAuthorization: Bearer {self.tokens['read']}\r\n\r\n"
        for _ in range(8):  # they ask and take nothing
            reader = socket.socket()
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.connect(("127.0.0.1", self.port))
            reader.sendall(request.encode())
            held.append(reader)
        began = time.monotonic()
        self.assertEqual(self.get().status, 200)
        for _ in range(200):  # more than it takes, and none ends its head
            writer = socket.create_connection(("127.0.0.1", self.port))
            writer.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
            held.append(writer)
        self.assertEqual(self.get().status, 200)
        self.assertLess(time.monotonic() - began, 9)  # none of them was cut off by time
        for connection in held:
            connection.close()

    def test_counts_on_where_it_was_after_a_restart(self):
        before = self.scrape()
        self.end_collector()
        self.start_collector()
        after = self.wait_for(lambda samples: of(samples, "lull_processes", run=self.run_id))
        for (name, labels), value in before.items():
            if ("run", self.run_id) in labels:
                self.assertEqual(after[name, labels], value, name)


class Start(unittest.TestCase):
    def setUp(self):
        self.host = guest.Host()
        self.addCleanup(self.host.close)
        folder = tempfile.TemporaryDirectory(prefix="lull-metrics-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.database = os.path.join(self.folder, "lull.db")
        self.listen = f"unix:{self.folder}/run/collector.sock"

    def lulld(self, *options):
        return guest.execute([guest.LULLD, "--listen", self.listen, "--database", self.database,
                              *options], self.host.environment, timeout=60)

    def test_has_no_port_unless_it_is_asked_for_one(self):
        collector = guest.start_collector(self.listen, self.database, self.host.environment)
        try:
            inodes = set()
            for descriptor in os.listdir(f"/proc/{collector.pid}/fd"):
                try:
                    inodes.add(os.readlink(f"/proc/{collector.pid}/fd/{descriptor}"))
                except FileNotFoundError:
                    pass
            for table in ("tcp", "tcp6"):
                if not os.path.exists(f"/proc/net/{table}"):
                    continue
                with open(f"/proc/net/{table}", encoding="ascii") as file:
                    for line in list(file)[1:]:
                        self.assertNotIn(f"socket:[{line.split()[9]}]", inodes)
            self.assertFalse(os.path.exists(f"{self.database}.tokens"))
        finally:
            collector.send_signal(signal.SIGTERM)
            self.assertEqual(collector.wait(60), 0)

    def test_stays_on_this_host_unless_others_may_read(self):
        done = self.lulld("--metrics", "0.0.0.0:0")
        self.assertEqual(done.status, 2)
        self.assertIn("--metrics 0.0.0.0:0 can be reached from other hosts", done.stderr)
        self.assertIn("--insecure-plain-tcp", done.stderr)
        self.assertFalse(os.path.exists(self.database))
        lulld = subprocess.Popen([guest.LULLD, "--listen", self.listen, "--database",
                                  self.database, "--metrics", "0.0.0.0:0", "--insecure-plain-tcp"],
                                 env=self.host.environment, stderr=subprocess.PIPE, text=True)
        try:
            self.assertIn("lulld: metrics at http://0.0.0.0:", lulld.stderr.readline())
            self.assertIn("can be read by whoever sees the network's traffic",
                          lulld.stderr.readline())
        finally:
            lulld.terminate()
            self.assertEqual(lulld.wait(60), 0)
            lulld.stderr.close()

    def test_says_what_is_wrong(self):
        done = self.lulld("--metrics", "nonsense:port")
        self.assertEqual(done.status, 2)
        self.assertIn("--metrics nonsense:port is none of PORT, ADDR and ADDR:PORT", done.stderr)
        tokens = os.path.join(self.folder, "tokens")
        with open(os.open(tokens, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write("write " + "a" * 64 + "\n")
        done = self.lulld("--metrics", "0", "--token-file", tokens)
        self.assertEqual(done.status, 1)
        self.assertIn(f'--metrics wants a line "read TOKEN" in {tokens}', done.stderr)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            done = self.lulld("--metrics", str(port))
        self.assertEqual(done.status, 1)
        self.assertIn(f"cannot listen on 127.0.0.1:{port}: Address already in use", done.stderr)

    def test_says_its_default_port(self):
        done = guest.execute([guest.LULLD, "--help"], self.host.environment)
        self.assertIn("5855", done.stdout)


class Rules(unittest.TestCase):
    """The files that others load into their Prometheus."""

    def test_promtool_takes_the_rules_and_their_tests_pass(self):
        tool = promtool(self)
        for arguments in (("check", "rules", "lull_rules.yml"),
                          ("test", "rules", "lull_rules_test.yml")):
            done = subprocess.run([tool, *arguments], cwd=RULES, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, check=False)
            self.assertEqual(done.returncode, 0, done.stdout.decode())


if __name__ == "__main__":
    unittest.main()
