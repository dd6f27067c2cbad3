"""A collector with metrics, jobs of two ranks on the simulated device, and the numbers of
both sides: what Prometheus is told, and what the verbs print with --json."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

import diff_test
import guest
import web_test

HOSTILE = 'a"} 1\nlull_run_running{run="\\none\\" ä\r'
WORLD = 2

LAUNCHER = """import os, subprocess, sys
ranks = [subprocess.Popen(sys.argv[1:], env=dict(
    os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2")) for rank in range(2)]
sys.exit(max(rank.wait() for rank in ranks))
"""
SAMPLE = re.compile(r'(?P<name>[a-z_]+)(?:\{(?P<labels>.*)\})? (?P<value>[-+.e0-9]+)')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
ESCAPES = {'\\"': '"', "\\\\": "\\", "\\n": "\n"}


def unescaped(text):
    return re.sub(r'\\["\\n]', lambda found: ESCAPES[found[0]], text)


def parse(text):
    """{(name, frozenset of labels): value}, after a look at the form of it all."""
    samples, types, family = {}, {}, None
    if not text.endswith("\n"):
        raise AssertionError("the last line has no end")
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            family = line.split(" ")[2]
            if family in types:
                raise AssertionError(f"{family} comes twice")
            continue
        if line.startswith("# TYPE "):
            _, _, name, types[family] = line.split(" ")
            if name != family:
                raise AssertionError(f"a type of {name} below the help of {family}")
            continue
        found = SAMPLE.fullmatch(line)
        if found is None or types.get(family) is None:
            raise AssertionError(f"no sample: {line!r}")
        ends = ("_sum", "_count") if types[family] == "summary" else ("",)
        if found["name"] not in [family + end for end in ends]:
            raise AssertionError(f"{found['name']} among the samples of {family}")
        labels = found["labels"] or ""
        pairs = LABEL.findall(labels)
        if "".join(match[0] for match in LABEL.finditer(labels)) != labels:
            raise AssertionError(f"labels are no labels: {labels!r}")
        key = found["name"], frozenset((name, unescaped(value)) for name, value in pairs)
        if key in samples:
            raise AssertionError(f"{key} comes twice")
        samples[key] = float(found["value"])
    return samples


class MetricsCase(unittest.TestCase):
    maxDiff = None
    options = []  # of lulld, and more

    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        cls.temporary = tempfile.TemporaryDirectory(prefix="lull-metrics-")
        cls.folder = cls.temporary.name
        cls.database = os.path.join(cls.folder, "lull.db")
        cls.listen = f"unix:{cls.folder}/run/collector.sock"
        cls.port = 0
        cls.start_collector()
        with open(cls.database + ".tokens", encoding="utf-8") as file:
            cls.tokens = dict(line.split() for line in file if not line.startswith("#"))

    @classmethod
    def tearDownClass(cls):
        cls.end_collector()
        cls.host.close()
        cls.temporary.cleanup()

    @classmethod
    def start_collector(cls):
        path = os.path.join(cls.folder, "errors")
        if os.path.exists(path):
            os.unlink(path)
        cls.errors = open(path, "a+", encoding="utf-8")  # lulld writes at its end, always
        cls.lulld = subprocess.Popen(
            [guest.LULLD, "--listen", cls.listen, "--database", cls.database, "--metrics",
             str(cls.port), *cls.options], env=cls.host.environment, stderr=cls.errors)

        def address():
            cls.errors.seek(0)
            said = cls.errors.read()
            assert cls.lulld.poll() is None, said
            return re.search(r"metrics at http://127\.0\.0\.1:([0-9]+)/metrics; ", said)
        cls.port = int(guest.wait_until(address)[1])

    @classmethod
    def end_collector(cls):
        cls.lulld.send_signal(signal.SIGTERM)
        assert cls.lulld.wait(60) == 0
        cls.errors.close()

    @classmethod
    def ask(cls, verb, *arguments):
        done = guest.execute([guest.LULL, verb, *arguments, "--json", "--collector", cls.listen],
                             cls.host.environment)
        assert done.status == 0, done.stderr
        return json.loads(done.stdout)

    @classmethod
    def start_job(cls, name, *command, **options):
        return subprocess.Popen(
            [guest.LULL, "run", "--collector", cls.listen, "--quiet", "--name", name,
             "--step-range", "step", "--gpu", "continuous", "--overhead-budget", "100", "--",
             *command],
            env={**cls.host.environment, "LD_LIBRARY_PATH": os.environ["LULL_SIM"],
                 "METRICS": cls.folder, "LULL_SIM_CONFIG": "kernel_us=100"}, **options)

    @classmethod
    def start_ranks(cls, name, steps=diff_test.STEPS):
        with open(os.path.join(cls.folder, "metrics.py"), "w", encoding="utf-8") as file:
            file.write(diff_test.NAIVE)
        return cls.start_job(name, sys.executable, "-c", LAUNCHER, sys.executable,
                             diff_test.PROGRAM, str(steps))

    @classmethod
    def get(cls, target="/metrics", method="GET", token=None, **headers):
        headers = {"Authorization": f"Bearer {token or cls.tokens['read']}", **headers}
        lines = [f"{method} {target} HTTP/1.1", "Host: lulld"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()
                  if value is not None]
        return web_test.Web.raw(cls.port, ("\r\n".join(lines) + "\r\n\r\n").encode())

    @classmethod
    def scrape(cls):
        reply = cls.get()
        assert reply.status == 200, (reply.status, reply.body)
        assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        return parse(reply.body.decode())

    @classmethod
    def wait_for(cls, condition):
        """The first scrape of which condition(scrape) is true; answers are kept for 5 s."""
        def met():
            samples = cls.scrape()
            return samples if condition(samples) else None
        return guest.wait_until(met, seconds=90)

    @classmethod
    def wait_for_end(cls, run):
        return cls.wait_for(lambda samples: of(samples, "lull_run_exit_status", run=run) == 0)

    @classmethod
    def run_of(cls, name):
        (job,) = [job for job in cls.ask("jobs")["jobs"] if job["name"] == name]
        return job["id"]

    def told_by_verbs(self, run, rank):
        """{(metric, labels but run and rank): value}: what the verbs say of a rank."""
        def ask(verb, *arguments):
            return self.ask(verb, run, "--rank", str(rank), "--phase", "all", *arguments)

        told = {}
        gaps = ask("gaps")
        for name, key in (("traced", "traced_ms"), ("busy", "busy_ms"), ("kernel", "kernel_ms")):
            told[f"lull_gpu_{name}_seconds_total", ""] = gaps["gpu"][key] / 1e3
        for row in gaps["causes"]:
            told["lull_gpu_idle_seconds_total", row["cause"]] = row["total_ms"] / 1e3
        for kind, key in (("kernel", "kernels"), ("copy", "copies"), ("memset", "memsets")):
            told["lull_gpu_operations_total", kind] = gaps["gpu"][key]
        waits = ask("waits", "--top", "0")
        for row in waits["host_waits"]:
            for name, value in (("lull_wait_seconds_total", row["total_ms"] / 1e3),
                                ("lull_waits_total", row["count"])):
                told[name, row["kind"]] = told.get((name, row["kind"]), 0) + value
        told["lull_sync_blocked_seconds_total", ""] = ask("syncs")["total_blocked_ms"] / 1e3
        told["lull_gc_pause_seconds_total", ""] = ask("gc")["total_ms"] / 1e3
        steps = ask("steps", "--top", "0")["steps"]
        told["lull_steps_total", ""] = len(steps)
        told["lull_step_duration_seconds_count", ""] = len(steps)
        told["lull_step_duration_seconds_sum", ""] = sum(row["duration_ms"] or 0 for row in steps) / 1e3
        report = ask("report")
        told["lull_launches_total", ""] = report["summary"]["launches"]
        told["lull_process_seconds_total", ""] = sum(row["recorded_ms"]
                                                     for row in report["processes"]) / 1e3
        told["lull_overhead_seconds_total", ""] = report["overhead"]["self_ms"] / 1e3
        for row in ask("memory")["memory"]:
            for key in ("live", "peak", "reserved"):
                if row[f"{key}_bytes"] is not None:
                    told[f"lull_memory_{key}_bytes", row["allocator"]] = row[f"{key}_bytes"]
        return told


def of(samples, name, **labels):
    """The one sample of this name and these labels, and perhaps others; None: there is none."""
    found = [value for (its_name, its_labels), value in samples.items()
             if its_name == name and labels.items() <= dict(its_labels).items()]
    if len(found) > 1:
        raise AssertionError(f"{len(found)} samples of {name} {labels}")
    return found[0] if found else None
