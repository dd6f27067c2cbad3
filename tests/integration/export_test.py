#!/usr/bin/env python3
"""`lull export`: what is imported again says the same, and files are whole or not there."""

import collections
import gzip
import json
import os
import subprocess
import sys
import tempfile
import unittest

import guest
import import_test
from import_test import STORY, TRACES, call, kernel, nsys_export, trace, x

ROOT = import_test.ROOT
PUPPETS = os.path.join(ROOT, "tests", "puppets")
BUILT = os.environ["LULL_PUPPETS"]


def idle_ns(gaps):
    """By cause and lines. Of code itself samples name a line, which are not exported."""
    total = collections.Counter()
    for row in gaps["gaps"]:
        code = row["cause"] in ("host_code", "launch_bound", "run_queue")
        culprit = 0 if code else row["culprit"]["line"]
        # Nobody knows when a thread lacked a processor but the kernel, and no format has it.
        cause = "host_code" if code else row["cause"]
        total[cause, culprit, row["before"]["line"], row["after"]["line"]] += round(
            row["total_ms"] * 1e6)
    return total


class Export(import_test.Import):
    def export(self, job, name="out.json", *options):
        path = os.path.join(self.folder.name, name)
        self.lull("export", job, "-o", path, *options)
        return path

    def load(self, path):
        with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
            return json.load(file)

    def again(self, job):
        return self.job_of(self.export(job, f"{job}.json.gz"))

    def check_round_trip(self, job, *of_the_range):
        before, after = self.ask("gaps", job, *of_the_range), self.ask("gaps", self.again(job))
        for gaps in (before, after):  # the launch of a graph is one row
            gaps["gpu"]["kernels"] += gaps["gpu"]["graphs"]
        for key in ("busy_ms", "idle_ms", "kernels", "copies", "memsets"):
            self.assertAlmostEqual(before["gpu"][key], after["gpu"][key], delta=1e-5, msg=key)
        return before, after

    # ---- Files ----

    def test_what_is_imported_again_says_the_same(self):
        job = self.job_of(self.write("story.json", trace(STORY)))
        before, after = self.check_round_trip(job)
        self.assertEqual(before["causes"], after["causes"])
        self.assertEqual(idle_ns(before), idle_ns(after))
        # Lines that ran, as far as lull is told: the first lines of functions, here.
        self.assertFalse(after["job"]["imported"]["line_is_function_start"])
        self.assertEqual(before["job"]["started_at"], after["job"]["started_at"])

    def test_rows_are_those_that_readers_look_for(self):
        events = STORY + [
            x("user_annotation", "ProfilerStep#4", 0, 1000),
            x("user_annotation", "ProfilerStep#5", 1000, 2000),
            x("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 1800, 1810, 7, 0, device=0,
              stream=7, correlation=9, bytes=4096),
            call("cudaMemcpyAsync", 1790, 1815, 9),
            {"ph": "i", "s": "t", "name": "[memory]", "pid": 4000, "tid": 4000, "ts": 50,
             "args": {"Addr": 4096, "Bytes": 512, "Device Type": 1, "Device Id": 0}},
            kernel('a "quoted"\\ name', 1900, 1910, 0)]
        whole = self.load(self.export(self.job_of(self.write("rows.json", trace(
            events, distributedInfo={"rank": 3})))))
        self.assertEqual(whole["distributedInfo"]["rank"], 3)
        self.assertEqual(whole["baseTimeNanoseconds"], 1_751_410_836_000_000_000)
        self.assertEqual(whole["deviceProperties"][0]["numSms"], 8)
        rows = collections.defaultdict(list)
        for event in whole["traceEvents"]:
            rows[event.get("cat", event["ph"])].append(event)
        first = rows["kernel"][0]
        self.assertEqual((first["name"], first["pid"], first["tid"], first["ts"], first["dur"]),
                         ("first", 0, 7, 20, 100))
        self.assertEqual(first["args"], {"device": 0, "context": 0, "stream": 7,
                                         "grid": [8, 1, 1], "block": [128, 1, 1],
                                         "registers per thread": 0, "shared memory": 0,
                                         "correlation": 1})
        self.assertIn('a "quoted"\\ name', [row["name"] for row in rows["kernel"]])
        copy, = rows["gpu_memcpy"]
        self.assertEqual((copy["name"], copy["args"]["bytes"]),
                         ("Memcpy DtoH (Device -> Pageable)", 4096))
        # One call and two ends of a flow for each record that has a launch.
        self.assertEqual(sorted(e["args"]["correlation"] for e in rows["cuda_runtime"]
                                if "correlation" in e["args"]), [1, 2, 3, 9])
        self.assertEqual(collections.Counter(e["ph"] for e in rows["ac2g"]),
                         {"s": 4, "f": 4})
        self.assertEqual([e["name"] for e in rows["user_annotation"]],
                         ["ProfilerStep#4", "ProfilerStep#5"])
        memory, = rows["cpu_instant_event"]
        self.assertEqual((memory["args"]["Addr"], memory["args"]["Bytes"]), (4096, 512))
        sync = [e for e in rows["lull_idle"] if e["name"] == "sync"]
        self.assertEqual(sync[0]["args"]["culprit"], "train.py:30 log")
        self.assertTrue(all("stream" not in e["args"] for e in rows["lull_idle"]))

    def test_a_range_is_what_begins_in_it(self):
        job = self.job_of(self.write("range.json", trace(STORY)))
        whole = self.load(self.export(job, "part.json", "--since", "1ms", "--until", "1.5ms"))
        names = [e["name"] for e in whole["traceEvents"] if e.get("cat") == "kernel"]
        self.assertEqual(names, ["second"])
        self.lull("export", job, "--since", "2s", "--until", "1s", status=2)
        memory = [{"ph": "i", "s": "t", "name": "[memory]", "pid": 4000, "tid": 4000, "ts": ts,
                   "args": {"Addr": 4096 * ts, "Bytes": 512, "Device Type": 1, "Device Id": 0}}
                  for ts in (50, 60, 1200)]
        job = self.job_of(self.write("levels.json", trace(STORY + memory)))
        for since, level in ("0s", 512), ("1ms", 1024), ("1.15ms", 1024), ("1.3ms", 1536):
            whole = self.load(self.export(job, "part.json", "--since", since))
            levels = [e["args"]["bytes"] for e in whole["traceEvents"]
                      if e["ph"] == "C" and e["name"] == "live tensors"]
            self.assertEqual(levels[0], level)
            self.assertEqual(levels[-1], 1536)

    def test_processes_of_a_job_do_not_meet(self):
        job = self.job_of(nsys_export(os.path.join(self.folder.name, "two.sqlite")))
        whole = self.load(self.export(job))
        kernels = collections.Counter(e["pid"] for e in whole["traceEvents"]
                                      if e.get("cat") == "kernel")
        self.assertEqual(list(kernels.values()), [2, 2])
        for rank in (0, 1):
            one = self.load(self.export(job, "rank.json", "--rank", str(rank)))
            self.assertEqual(one["distributedInfo"]["rank"], rank)
            self.assertEqual({e["pid"] for e in one["traceEvents"] if e.get("cat") == "kernel"},
                             {rank})
        self.lull("export", job, "--rank", "7", "-o", os.path.join(self.folder.name, "no.json"),
                  status=1)
        self.assertFalse(os.path.exists(os.path.join(self.folder.name, "no.json")))

    def test_a_file_is_whole_or_not_there(self):
        job = self.job_of(self.write("file.json", trace(STORY)))
        done = self.lull("export", job, "-o", "/proc/nowhere/x.json", status=1)
        self.assertIn("/proc/nowhere/x.json", done.stderr)
        self.lull("export", "no-such-job", "-o", os.path.join(self.folder.name, "y.json"),
                  status=1)
        self.assertEqual([n for n in os.listdir(self.folder.name) if n.startswith("y.json")], [])
        self.assertEqual(json.loads(self.lull("export", job).stdout)["schemaVersion"], 1)
        # What is no file stays what it is.
        pipe = os.path.join(self.folder.name, "pipe")
        os.mkfifo(pipe)
        with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
            self.lull("export", job, "-o", pipe)
            self.assertEqual(json.loads(reader.communicate()[0])["schemaVersion"], 1)
        self.assertEqual(sorted(n for n in os.listdir(self.folder.name)
                                if n.startswith("pipe")), ["pipe"])
        link = os.path.join(self.folder.name, "link")
        os.symlink(os.path.join(self.folder.name, "aim.json"), link)
        self.lull("export", job, "-o", link)
        self.assertTrue(os.path.islink(link))
        self.assertEqual(self.load(link)["schemaVersion"], 1)
        # What is replaced keeps its rights.
        path = self.write("mine.json", b"mine")
        os.chmod(path, 0o600)
        self.assertEqual(self.load(self.export(job, "mine.json"))["schemaVersion"], 1)
        self.assertEqual(os.stat(path).st_mode & 0o7777, 0o600)
        self.lull("export", job, "--format", "other", status=2)

    def test_a_dash_is_stdout(self):
        job = self.job_of(self.write("dash.json", trace(STORY)))
        done = self.lull("export", job, "-o", "-")
        self.assertEqual(json.loads(done.stdout)["schemaVersion"], 1)
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([guest.LULL, "export", job], env=self.host.environment,
                                  stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("stdout: cannot write: No space left on device", done.stderr)

    def test_a_file_that_cannot_be_written_leaves_what_was_there(self):
        job = self.job_of(self.write("full.json", trace(STORY)))
        before = sorted(os.listdir(self.folder.name))
        done = self.lull("export", job, "-o", "/dev/full", status=1)
        self.assertIn("No space left on device", done.stderr)
        # Larger than what a process may write: as good as a full disk.
        path = self.write("kept.json", b"kept")
        for name in ("kept.json", "new.pftrace", "new.json.gz"):
            done = subprocess.run(
                ["bash", "-c", 'trap "" XFSZ; ulimit -f 0; exec "$@"', "-", guest.LULL,
                 "export", job, "-o", os.path.join(self.folder.name, name)],
                env=self.host.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True, check=False)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("File too large", done.stderr)
        with open(path, "rb") as file:
            self.assertEqual(file.read(), b"kept")
        self.assertEqual(sorted(os.listdir(self.folder.name)), sorted(before + ["kept.json"]))

    def test_a_name_that_promises_another_packing_is_refused(self):
        job = self.job_of(self.write("packed.json", trace(STORY)))
        path = os.path.join(self.folder.name, "out.json.zst")
        said = self.lull("export", job, "-o", path, status=2).stderr
        self.assertIn("let its name end in .gz", said)
        self.assertFalse(os.path.exists(path))

    def test_perfetto_is_written_where_the_name_says_so(self):
        job = self.job_of(self.write("name.json", trace(STORY)))
        with open(self.export(job, "x.pftrace"), "rb") as file:
            plain = file.read()
        with gzip.open(self.export(job, "x.pftrace.gz")) as file:
            self.assertEqual(file.read(), plain)
        with open(self.export(job, "x.bin", "--format", "perfetto"), "rb") as file:
            self.assertEqual(file.read(), plain)
        self.assertEqual(plain[:1], b"\x0a")  # a packet
        self.assertIn(b"idle, by cause", plain)
        self.load(self.export(job, "x.json"))

    # ---- A program on the simulated device ----

    def check_program(self, name, *command):
        # Where a thread loses its processor between CUPTI's end of a call and its hook's,
        # the two differ by that: on a crowded machine, and not each time.
        for attempt in range(3):
            wrong, idle, rows = self.round_trip_of_program(f"{name}-{attempt}", *command)
            if wrong < 0.02 * idle:
                break
        # A call is told as CUPTI has it, a bit shorter than as a hook does; so is what a
        # sync owes of the time that follows it.
        self.assertLess(wrong, 0.02 * idle, rows)

    def round_trip_of_program(self, name, *command):
        done = guest.execute(
            [guest.LULL, "run", "--quiet", "--name", name, "--gpu", "continuous", "--",
             *command], {**self.host.environment, **self.simulated()}, timeout=120)
        self.assertEqual(done.status, 0, done.stderr)
        # An import is traced from its first operation to its last.
        gpu = [e for e in self.load(self.export(name))["traceEvents"]
               if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
        since, until = min(e["ts"] for e in gpu), max(e["ts"] + e["dur"] for e in gpu)
        before, after = self.check_round_trip(name, "--since", f"{since / 1e3:.6f}ms",
                                              "--until", f"{until / 1e3:.6f}ms")
        self.assertGreater(before["gpu"]["kernels"], 100)
        told, again = idle_ns(before), idle_ns(after)
        wrong = sum(abs(told[key] - again[key]) for key in told.keys() | again.keys()) / 2
        self.assertTrue(any(lines != (0, 0, 0) for _, *lines in told))
        return wrong, sum(told.values()), (told - again, again - told)

    def simulated(self):
        return {"LD_LIBRARY_PATH": os.environ["LULL_SIM"] + ":" + BUILT,
                "LULL_SIM_CONFIG": "kernel_us=200"}

    def test_a_python_program_has_the_same_causes_and_lines(self):
        self.check_program("patterns", sys.executable,
                           os.path.join(PUPPETS, "patterns.py"), "sync")

    def test_a_random_program_has_the_same_causes_and_lines(self):
        with tempfile.NamedTemporaryFile() as log:
            self.check_program("random", os.path.join(BUILT, "random_work_host13"), log.name,
                               "1", "3")

    # ---- Real traces ----

    @import_test.real("tracelens/h100_owlv2.json.gz", "kineto/v100_resnet50_workers_0.json.gz",
                      "tracelens/mi300_ddp_resnet18.json.gz")
    def test_real_traces_have_the_same_causes(self):
        for name in ("tracelens/h100_owlv2", "kineto/v100_resnet50_workers_0",
                     "tracelens/mi300_ddp_resnet18"):
            with self.subTest(name):
                before, after = self.check_round_trip(
                    self.job_of(os.path.join(TRACES, name + ".json.gz")))
                causes = [{row["cause"]: row["total_ms"] for row in gaps["causes"]}
                          for gaps in (before, after)]
                self.assertEqual(causes[0].keys(), causes[1].keys())
                for cause, ms in causes[0].items():
                    self.assertAlmostEqual(ms, causes[1][cause], delta=1e-5, msg=cause)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + (sys.argv[1:] or ["-v"]))
