#!/usr/bin/env python3
"""`lull export --format perfetto` as Perfetto's own schema reads it (tests/peers/install)."""

import collections
import json
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))
import import_test
from import_test import STORY, TRACES, nsys_export, trace, x

VENV = os.environ.get("LULL_PEERS") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "lull", "peers")


class Perfetto(import_test.Import):
    def read(self, job, *options, name="out.pftrace.gz"):
        path = os.path.join(self.folder.name, name)
        self.lull("export", job, "-o", path, *options)
        done = subprocess.run(
            [os.path.join(VENV, "bin", "python"), os.path.join(HERE, "perfetto_rows.py"), path],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        told = json.loads(done.stdout)
        self.assertEqual((told["open"], told["unknown_fields"]), (0, 0))
        return told

    def chrome(self, job, *options):
        path = os.path.join(self.folder.name, "out.json")
        self.lull("export", job, "-o", path, *options)
        with open(path, encoding="utf-8") as file:
            return json.load(file)["traceEvents"]

    def check(self, job):
        """Counts and sums are those of the JSON, and of `lull gaps`."""
        told, chrome, gaps = self.read(job), self.chrome(job), self.ask("gaps", job)
        ours, theirs = collections.Counter(), collections.Counter()
        for row in told["rows"]:
            if row["track"] == "wasted by syncs":
                continue
            category = row["category"][0] if row["category"] else "lull_untraced"
            ours[category, "rows"] += 1
            ours[category, "ns"] += row["ns"]
        for event in chrome:
            if event["ph"] == "X":
                theirs[event["cat"], "rows"] += 1
                theirs[event["cat"], "ns"] += round(event["dur"] * 1000)
        self.assertEqual(ours, theirs)
        gpu = gaps["gpu"]
        self.assertEqual(ours["kernel", "rows"], gpu["kernels"] + gpu["graphs"])
        self.assertEqual(ours["gpu_memcpy", "rows"], gpu["copies"])
        self.assertEqual(ours["gpu_memset", "rows"], gpu["memsets"])
        self.assertAlmostEqual(ours["lull_idle", "ns"] / 1e6, gpu["idle_ms"], delta=1e-5)
        by_cause = collections.Counter()
        for row in told["rows"]:
            if row["track"] == "idle, by cause":
                by_cause[row["name"]] += row["ns"]
        for cause in gaps["causes"]:
            self.assertAlmostEqual(by_cause[cause["cause"]] / 1e6, cause["total_ms"],
                                   delta=1e-5, msg=cause["cause"])
        wasted = sum(row["ns"] for row in told["rows"] if row["track"] == "wasted by syncs")
        self.assertEqual(wasted, by_cause["sync"])
        self.assertEqual(told["flows_to"], len({
            e["id"] for e in chrome if e["ph"] == "f"}))
        self.assertEqual(told["flows_whole"], len(
            {e["id"] for e in chrome if e["ph"] == "f"} &
            {e["id"] for e in chrome if e["ph"] == "s"}))
        return told

    def test_a_story_is_told(self):
        events = STORY + [
            x("user_annotation", "ProfilerStep#4", 0, 1000),
            x("user_annotation", "ProfilerStep#5", 1000, 2000),
            {"ph": "i", "s": "t", "name": "[memory]", "pid": 4000, "tid": 4000, "ts": 50,
             "args": {"Addr": 4096, "Bytes": 512, "Device Type": 1, "Device Id": 0}}]
        job = self.job_of(self.write("story.json", trace(events, distributedInfo={"rank": 3})))
        told = self.check(job)
        self.assertEqual(told["flows_whole"], 3)
        self.assertEqual({"1", "6"}, told["clocks"].keys())
        base = 1_751_410_836_000_000_000
        rows = {row["name"]: row for row in told["rows"]}
        self.assertEqual((rows["first"]["start"] - rows["step 4"]["start"], rows["first"]["ns"],
                          rows["first"]["track"], rows["first"]["above"]),
                         (20_000, 100_000, "stream 7", "GPU 0 Some GPU"))
        self.assertEqual(told["clocks"]["1"] // 1_000_000_000, base // 1_000_000_000)
        self.assertEqual(rows["first"]["args"]["grid"], "8 x 1 x 1")
        sync = [row for row in told["rows"] if row["track"] == "wasted by syncs"]
        self.assertEqual(sync[0]["args"]["culprit"], "train.py:30 log")
        self.assertEqual(told["counters"]["live tensors"][-1][1], 512)
        self.assertIn("busy", told["counters"])
        # The call within the operator that has the line.
        call = [row for row in told["rows"] if row["name"] == "cudaStreamSynchronize"]
        self.assertEqual([row["depth"] for row in call], [1])

    def test_processes_of_a_job_do_not_meet(self):
        told = self.check(self.job_of(nsys_export(os.path.join(self.folder.name,
                                                               "two.sqlite"))))
        processes = [track for track in told["tracks"] if track["kind"] == "process"]
        self.assertEqual(len(processes), 2)

    def test_a_range_is_what_begins_in_it(self):
        job = self.job_of(self.write("range.json", trace(STORY)))
        told = self.read(job, "--since", "1ms", "--until", "1.5ms")
        self.assertEqual([row["name"] for row in told["rows"] if row["category"] == ["kernel"]],
                         ["second"])

    @import_test.real("tracelens/h100_owlv2.json.gz", "kineto/v100_resnet50_workers_0.json.gz",
                      "tracelens/mi300_ddp_resnet18.json.gz", "tracelens/b200_eager.json.gz",
                      "hta/a100_nccl.json.gz", "nsys/h100_2gpu_1s.sqlite")
    def test_real_traces(self):
        for name in ("tracelens/h100_owlv2.json.gz", "kineto/v100_resnet50_workers_0.json.gz",
                     "tracelens/mi300_ddp_resnet18.json.gz", "tracelens/b200_eager.json.gz",
                     "hta/a100_nccl.json.gz", "nsys/h100_2gpu_1s.sqlite"):
            with self.subTest(name):
                self.check(self.job_of(os.path.join(TRACES, name)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + (sys.argv[1:] or ["-v"]))
