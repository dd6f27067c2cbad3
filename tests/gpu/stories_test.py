#!/usr/bin/env python3
"""On a real GPU: what lull says of trainings with one known trouble each (stories.py) is what
their own stopwatches and CUDA's events say, and what torch.profiler says of the same in runs of
their own.

LULL_GPU_PYTHON  a Python with a CUDA build of PyTorch (python3); may be a command with arguments
LULL_GPU_KEEP    a folder that gets the collector's database

Ends with status 77, which ctest takes for skipped, where there is no GPU."""

import glob
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import gpu_test
from gpu_test import HERE, PYTHON, SKIPPED, checks, guest

STEPS = {"launches": 20, "garbage": 60}  # others: 100
STORIES = ("item", "sleep", "python", "loader", "malloc", "garbage", "launches", "compute",
           "copies", "side", "nan", "training", "graphs")
OTHERS = 0.02  # of what is measured twice: in two runs, or by two clocks


def steps_of(story):
    return STEPS.get(story, 100)


class Started:
    """A story that waits for its turn."""

    def __init__(self, host, name, command, turns):
        self.name = name
        self.output = tempfile.TemporaryFile("w+")
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.errors,
            env={**host.environment, "LULL_GPU_TURNS": turns})

    def finish(self):
        status = self.process.wait(timeout=600)
        with self.output, self.errors:
            self.output.seek(0)
            self.errors.seek(0)
            if status != 0:
                raise AssertionError(f"{self.name}: status {status}\n{self.errors.read()}")
            return json.loads(self.output.read().splitlines()[-1])


def start(host, folder):
    """(what runs under lull, what torch.profiler watches), by story"""
    told, profiled = {}, {}
    for story in STORIES:
        command = [*PYTHON, os.path.join(HERE, "stories.py"), story, "--steps"]
        told[story] = Started(
            host, story, [guest.LULL, "run", "--quiet", "--gpu", "continuous",
                          "--overhead-budget", "100", "--name", story, "--", *command,
                          str(steps_of(story))], folder)
        trace = os.path.join(folder, f"{story}.pt.trace.json.gz")
        profiled[story] = Started(host, f"{story}, profiled",
                                  [*command, str(steps_of(story) // 5), "--trace", trace], folder)
    return told, profiled


def setUpModule():
    global host, told, traces
    host = guest.Host()
    os.environ.update(host.environment)
    with tempfile.TemporaryDirectory(prefix="lull-turns-") as folder:
        running, profiled = start(host, folder)
        end = time.monotonic() + 300
        while len(glob.glob(os.path.join(folder, "ready.*"))) < 2 * len(STORIES):
            for story in (*running.values(), *profiled.values()):
                if story.process.poll():
                    story.finish()  # says why
            if time.monotonic() > end:
                raise AssertionError("not all were ready after 5 minutes")
            time.sleep(0.1)
        open(os.path.join(folder, "go"), "w").close()
        told = {name: story.finish() for name, story in running.items()}
        for story in profiled.values():
            story.finish()
        traces = {story: Trace(os.path.join(folder, f"{story}.pt.trace.json.gz"))
                  for story in STORIES}
    print(next(iter(told.values()))["device"], file=sys.stderr)


def tearDownModule():
    if keep := os.environ.get("LULL_GPU_KEEP"):
        shutil.copytree(host.environment["XDG_DATA_HOME"], keep, dirs_exist_ok=True)
        with open(os.path.join(keep, "told.json"), "w") as file:
            json.dump(told, file)
    host.close()


class Trace:
    """What torch.profiler saw of the device."""

    def __init__(self, path):
        with gzip.open(path, "rt", errors="replace") as file:
            events = json.load(file, strict=False)["traceEvents"]
        spans = {kind: [(event["ts"], event["ts"] + event["dur"]) for event in events
                        if event.get("cat") == kind]
                 for kind in ("kernel", "gpu_memcpy", "gpu_memset")}
        self.kernels, self.copies, self.memsets = (len(rows) for rows in spans.values())
        self.busy_ms = union([span for rows in spans.values() for span in rows]) / 1e3


def union(spans):
    total, reach = 0, float("-inf")
    for start, end in sorted(spans):
        total += max(0, end - max(start, reach))
        reach = max(reach, end)
    return total


class Told(unittest.TestCase):
    maxDiff = None

    def ask(self, story, verb, *options):
        """Of the steps that count."""
        start_ns, run = host.start_ns(story), told[story]
        return checks.query(guest.LULL, verb, story, *options,
                            "--since", f"{(run['begin_ns'] - start_ns) / 1e6:.6f}ms",
                            "--until", f"{(run['end_ns'] - start_ns) / 1e6:.6f}ms")

    def gaps(self, story):
        """({cause: ms}, what is said of the device, rows)"""
        gaps = self.ask(story, "gaps")
        return {row["cause"]: row["total_ms"] for row in gaps["causes"]}, gaps["gpu"], gaps["gaps"]

    def at(self, rows, site, of="site"):
        """Those at a line of stories.py."""
        line = line_of(site)
        return [row for row in rows if row[of] and row[of]["line"] == line and
                os.path.basename(row[of]["file"]) == "stories.py"]

    def assert_close(self, is_told, known, share=OTHERS, more=0.0):
        self.assertLessEqual(abs(is_told - known), share * known + more, (is_told, known))

    def assert_first(self, causes, cause):
        self.assertEqual(max(causes, key=causes.get), cause, causes)


def line_of(site):
    with open(os.path.join(HERE, "stories.py")) as source:
        return next(number for number, line in enumerate(source, 1)
                    if line.rstrip().endswith("# SITE: " + site))


class Device(Told):
    def test_every_operation_is_there_and_lasts_as_long_as_for_torch_profiler(self):
        for story in STORIES:
            with self.subTest(story):
                _, gpu, _ = self.gaps(story)
                self.assertIsNone(gpu["missing"])
                for what in ("cupti_dropped", "records_lost", "records_bad", "late_operations"):
                    self.assertEqual(gpu[what], 0, what)
                trace = traces[story]
                if story == "graphs":  # torch.profiler sees their nodes, lull the whole of them
                    self.assertEqual(gpu["graphs"], steps_of(story))
                else:
                    for what in ("kernels", "memsets", "copies"):
                        self.assertEqual(gpu[what], 5 * getattr(trace, what), what)
                self.assertAlmostEqual(gpu["busy_ms"] + gpu["idle_ms"], gpu["traced_ms"],
                                       delta=1e-3)
                # The way to the device varies from run to run where memory is pageable.
                share = 0.1 if story == "copies" else OTHERS
                if story != "graphs":  # what is between the nodes of one is busy for lull
                    self.assert_close(gpu["busy_ms"], 5 * trace.busy_ms, share)

    def test_idle_time_is_that_of_events(self):
        for story in ("sleep", "python", "loader", "malloc", "garbage"):
            with self.subTest(story):
                _, gpu, _ = self.gaps(story)
                # Between two launches of a step, and at both ends of the range, there is more.
                more = 0.06 * steps_of(story)
                self.assertGreater(gpu["idle_ms"], 0.98 * told[story]["gap_ms"])
                self.assertLess(gpu["idle_ms"], 1.02 * told[story]["gap_ms"] + more)

    def test_the_first_causes(self):
        for story, cause in (("item", "sync"), ("sleep", "host_wait"), ("python", "host_code"),
                             ("loader", "data_wait"), ("garbage", "gc")):
            with self.subTest(story):
                self.assert_first(self.gaps(story)[0], cause)

    def test_verdicts(self):
        for story, verdict in (("item", "sync"), ("sleep", "host"), ("loader", "data"),
                               ("launches", "launch"), ("training", "launch"),
                               ("compute", "compute")):
            with self.subTest(story):
                causes, gpu, _ = self.gaps(story)
                self.assertEqual(gpu["verdict"], verdict, causes)


class Lines(Told):
    def test_a_sleep_costs_what_it_takes(self):
        (row,) = self.at([row for row in self.gaps("sleep")[2] if row["cause"] == "host_wait"],
                         "sleep", "culprit")
        self.assert_close(row["total_ms"], told["sleep"]["stopwatch_ms"])

    def test_python_between_two_launches_has_its_line(self):
        row = max((row for row in self.gaps("python")[2] if row["cause"] == "host_code"),
                  key=lambda row: row["total_ms"])
        self.assertEqual(row["doing"][0]["line"], line_of("python"), row["doing"])
        self.assert_close(row["total_ms"], told["python"]["stopwatch_ms"], 0.05)

    def test_data_costs_what_it_takes_and_the_data_sets_line_is_told(self):
        rows = self.at([row for row in self.gaps("loader")[2] if row["cause"] == "data_wait"],
                       "loader", "culprit")
        self.assert_close(sum(row["total_ms"] for row in rows), told["loader"]["stopwatch_ms"])
        self.assertIn(line_of("sample"), [line["line"] for row in rows for line in row["doing"]])

    def test_collections_of_garbage_cost_what_they_take(self):
        rows = self.at([row for row in self.gaps("garbage")[2] if row["cause"] == "gc"], "gc",
                       "culprit")
        self.assert_close(sum(row["total_ms"] for row in rows), told["garbage"]["stopwatch_ms"])

    def test_the_allocator_costs_what_it_takes(self):
        rows = [row for row in self.gaps("malloc")[2] if row["cause"] == "allocator"]
        of_lines = self.at(rows, "free", "culprit") + self.at(rows, "malloc", "culprit")
        self.assertEqual(len({row["culprit"]["line"] for row in of_lines}), 2)
        self.assertLess(sum(row["total_ms"] for row in of_lines), told["malloc"]["stopwatch_ms"])
        self.assertGreater(sum(row["total_ms"] for row in of_lines),
                           0.7 * told["malloc"]["stopwatch_ms"])


class Syncs(Told):
    def rows(self, story, site):
        return self.at(self.ask(story, "syncs")["sync_points"], site)

    def test_values_read_back_block_for_as_long_as_the_program_says(self):
        for story, site in (("item", "item"), ("nan", "nan"), ("compute", "behind"),
                            ("copies", "pageable")):
            with self.subTest(story):
                rows = self.rows(story, site)
                calls = max(row["calls"] for row in rows)
                self.assertEqual(calls, told[story]["calls"])
                # What PyTorch does around the call is the stopwatch's alone.
                self.assert_close(sum(row["blocked_ms"] for row in rows),
                                  told[story]["stopwatch_ms"], 0.02, 0.08 * calls)

    def test_work_that_the_gpu_does_meanwhile_is_needed(self):
        (row,) = [row for row in self.rows("item", "item") if row["blocked_ms"] > 10]
        self.assertGreater(row["needed_ms"], 0.9 * row["blocked_ms"])

    def test_a_copy_of_pinned_memory_blocks_nobody(self):
        self.assertEqual(self.rows("copies", "pinned"), [])

    def test_the_first_nan_has_its_line(self):
        (first,) = checks.query(guest.LULL, "report", "nan")["non_finite"]
        self.assertEqual((first["site"]["line"], first["value"]), (line_of("nan"), "nan"))


if __name__ == "__main__":
    if reason := gpu_test.why_not():
        print(f"no GPU to test on: {reason}", file=sys.stderr)
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
