#!/usr/bin/env python3
"""A Prometheus of the distribution scrapes a run on the simulated device as it goes on, by its
token, and afterwards has the numbers of the verbs; the rules are those that are handed out, and
every query of the dashboard is one that Prometheus takes."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import unittest
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))
import guest
import metrics_test
from metrics_case import HOSTILE, WORLD, MetricsCase

STEPS = 15_000
CONFIGURATION = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{rules}"]
scrape_configs:
  - job_name: lull
    authorization: {{credentials_file: "{token}"}}
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
  - job_name: stranger
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


class Prometheus(MetricsCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        token = os.path.join(cls.folder, "token")
        with open(os.open(token, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
            file.write(cls.tokens["read"] + "\n")
        configuration = os.path.join(cls.folder, "prometheus.yml")
        with open(configuration, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(rules=os.path.join(metrics_test.RULES,
                                                               "lull_rules.yml"),
                                            token=token, port=cls.port))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            cls.http = f"127.0.0.1:{probe.getsockname()[1]}"
        cls.log = open(os.path.join(cls.folder, "prometheus.log"), "w", encoding="utf-8")
        cls.prometheus = subprocess.Popen(
            [shutil.which("prometheus"), f"--config.file={configuration}",
             f"--storage.tsdb.path={cls.folder}/tsdb", f"--web.listen-address={cls.http}"],
            stdout=cls.log, stderr=subprocess.STDOUT)
        guest.wait_until(cls.is_ready, 60)
        job = cls.start_ranks(HOSTILE, STEPS)
        cls.run_id = guest.wait_until(lambda: [
            one for one in cls.ask("jobs")["jobs"] if one["name"] == HOSTILE])[0]["id"]
        cls.seen_running = guest.wait_until(lambda: cls.values("lull_run_running == 1"), 60)
        cls.seen_growing = guest.wait_until(
            lambda: cls.values("increase(lull_gpu_traced_seconds_total[20s]) > 0"), 90)
        assert job.wait(300) == 0
        cls.scraped = cls.wait_for_end(cls.run_id)
        guest.wait_until(lambda: cls.values(f'lull_run_exit_status{{run="{cls.run_id}"}}'), 60)

    @classmethod
    def tearDownClass(cls):
        cls.prometheus.terminate()
        cls.prometheus.wait(60)
        cls.log.close()
        super().tearDownClass()

    @classmethod
    def is_ready(cls):
        try:
            with urllib.request.urlopen(f"http://{cls.http}/-/ready", timeout=10) as reply:
                return reply.status == 200
        except OSError:
            return False

    @classmethod
    def api(cls, path, **arguments):
        url = f"http://{cls.http}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
        with urllib.request.urlopen(url, timeout=30) as reply:
            answer = json.load(reply)
        assert answer["status"] == "success", answer
        return answer["data"]

    @classmethod
    def values(cls, query):
        """[(labels, value)] of an instant query."""
        return [(row["metric"], float(row["value"][1]))
                for row in cls.api("query", query=query)["result"]]

    def test_saw_the_run_go_on(self):
        self.assertEqual([labels["run"] for labels, _ in self.seen_running], [self.run_id])
        self.assertTrue(self.seen_growing)

    def test_has_the_numbers_of_the_verbs(self):
        for rank in range(WORLD):
            for (name, label), value in self.told_by_verbs(self.run_id, rank).items():
                with self.subTest(rank=rank, name=name, label=label):
                    of = f'run="{self.run_id}",rank="{rank}"'
                    if label:
                        of += f',{metrics_test.LABEL_OF.get(name, "allocator")}="{label}"'
                    ((_, told),) = self.values(f"{name}{{{of}}}")
                    if name in ("lull_steps_total", "lull_step_duration_seconds_count",
                                "lull_step_duration_seconds_sum"):
                        # lull steps has the newest 5,000 and the first 64 alone.
                        self.assertGreaterEqual(told + 1e-6, value)
                    else:
                        self.assertAlmostEqual(told, value, places=6)

    def test_shares_of_a_run_sum_to_one(self):
        for rank in range(WORLD):
            of = f'{{run="{self.run_id}",rank="{rank}"}}'
            ((_, share),) = self.values(
                f"(lull_gpu_busy_seconds_total{of} + on (run, rank) "
                f"sum by (run, rank) (lull_gpu_idle_seconds_total{of})) "
                f"/ on (run, rank) lull_gpu_traced_seconds_total{of}")
            self.assertAlmostEqual(share, 1, places=6)

    def test_no_counter_went_back(self):
        names = [name for name in self.api("label/__name__/values")
                 if name.startswith("lull_") and re.search("_(total|sum|count)$", name)]
        self.assertGreater(len(names), 15)
        for name in names:
            self.assertEqual(self.values(f"resets({name}[1h]) > 0"), [], name)

    def test_reads_a_hostile_name_as_it_is(self):
        ((labels, _),) = self.values(f'lull_run_info{{run="{self.run_id}"}}')
        self.assertEqual(labels["name"], HOSTILE.replace("\r", "\ufffd"))

    def test_gets_in_by_its_token_alone(self):
        health = {}
        for target in self.api("targets")["activeTargets"]:
            health[target["labels"]["job"]] = target["health"], target["lastError"]
        self.assertEqual(health["lull"], ("up", ""))
        self.assertEqual(health["stranger"][0], "down")
        self.assertIn("401", health["stranger"][1])

    def test_takes_the_rules(self):
        rules = [rule for group in self.api("rules")["groups"] for rule in group["rules"]]
        self.assertGreater(len(rules), 10)
        self.assertEqual([rule["name"] for rule in rules if rule["health"] == "err"], [])

    def test_takes_all_queries_of_the_dashboard(self):
        with open(os.path.join(ROOT, "tools", "grafana", "lull.json"), encoding="utf-8") as file:
            board = json.load(file)
        empty = []
        for panel in board["panels"]:
            for target in panel["targets"]:
                query = target["expr"]
                for name, value in (("$run", self.run_id), ("$rank", ".*"),
                                    ("$__rate_interval", "5m")):
                    query = query.replace(name, value)
                if not self.api("query", query=query)["result"]:
                    empty.append(panel["title"])
        # Nothing was lost, no run goes on any more, and no allocator tells what it holds.
        self.assertLessEqual(set(empty), {"Lost, and not recorded", "Runs", "Memory"})


if __name__ == "__main__":
    for program in ("prometheus", "promtool"):
        if shutil.which(program) is None:
            sys.exit(f"there is no {program}: run tests/prometheus/install")
    unittest.main(argv=sys.argv[:1] + (sys.argv[1:] or ["-v"]))
