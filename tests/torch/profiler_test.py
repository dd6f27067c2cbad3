#!/usr/bin/env python3
"""A training that uses torch.profiler under lull, with the CUDA build of PyTorch on the
simulated device: the profiler's traces are what they are without lull, which stands
aside meanwhile, says so, and goes on."""

import collections
import json
import os
import tempfile
import unittest

import scenario
from scenario import Scenario, TorchCase, guest, python

SESSIONS, PROFILED = 2, 20
CONFIG = "kernel_us=20"


def setUpModule():
    global host
    host = guest.Host()
    os.environ.update(host.environment)


def tearDownModule():
    host.close()


def contents(path):
    """How often what stands in a trace of torch.profiler: {(category, name): count}"""
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    return collections.Counter((event["cat"], event["name"]) for event in events
                               if event.get("ph") == "X" and "cat" in event)


class ProfiledByPyTorch(TorchCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            def traces(name):
                return [contents(os.path.join(folder, f"{name}.{session}"))
                        for session in range(SESSIONS)]

            def command(name):
                return python("profiled.py", os.path.join(folder, name),
                              "--profiled", str(PROFILED))

            config = {"LULL_SIM_CONFIG": f"{scenario.CONFIG};{CONFIG}"}
            alone = host.alone(command("alone"), env=config, timeout=900)
            if alone.status != 0:
                raise AssertionError(alone.stderr)
            cls.alone = traces("alone")
            cls.runs, cls.traces = {}, {}
            for mode in ("continuous", "window"):
                cls.runs[mode] = Scenario(host, f"profiled-{mode}", command(mode), CONFIG,
                                          gpu=mode)
                cls.traces[mode] = traces(mode)

    def test_the_trainings_run(self):
        for run in self.runs.values():
            self.assert_ran(run)
            self.assertEqual(run.done.stdout, "done\n")
            self.assert_nothing_lost(run)

    def test_the_profiler_sees_what_it_sees_without_lull(self):
        for trace in self.alone:
            kernels = sum(count for (kind, _), count in trace.items() if kind == "kernel")
            self.assertGreater(kernels, 10 * PROFILED)
        for mode, traces in self.traces.items():
            for session in range(SESSIONS):
                self.assertEqual(traces[session], self.alone[session], (mode, session))

    def test_lull_says_from_when_to_when_it_stood_aside(self):
        run = self.runs["continuous"]
        spans = run.gpu["spans"]
        # Then it waits for the device to come to what it sees (docs/windows.md).
        self.assertEqual([(span["state"], span["reason"]) for span in spans],
                         [("active", "schedule")] +
                         [("yielded", "other_user"), ("warm_up", "schedule"),
                          ("active", "schedule")] * SESSIONS)
        yielded = [span["duration_ms"] for span in spans if span["state"] == "yielded"]
        self.assertAlmostEqual(run.gpu["yielded_ms"], sum(yielded), delta=1e-3)

    def test_all_but_that_is_known(self):
        run = self.runs["continuous"]
        self.assertEqual((run.gpu["records_bad"], run.gpu["records_lost"]), (0, 0))
        start = run.start_ns()
        active = [(start + span["start_ms"] * 1e6,
                   start + (span["start_ms"] + span["duration_ms"]) * 1e6)
                  for span in run.gpu["spans"] if span["state"] == "active"]
        real = sum(1 for op in run.truth.ops("kernel")
                   if any(since <= op.start < until for since, until in active))
        # What runs at the very moment at which tracing begins is not traced.
        self.assertAlmostEqual(run.gpu["kernels"], real, delta=2 * SESSIONS)
        profiled = sum(count for trace in self.traces["continuous"]
                       for (kind, _), count in trace.items() if kind == "kernel")
        missing = len(run.truth.ops("kernel")) - run.gpu["kernels"]
        self.assertGreaterEqual(missing, profiled)

    def test_lull_goes_on_after_the_profiler(self):
        for run in self.runs.values():
            last = [span for span in run.gpu["spans"] if span["state"] == "yielded"][-1]
            later = [span for span in run.gpu["spans"] if span["state"] == "active"
                     and span["start_ms"] > last["start_ms"]]
            self.assertTrue(later, run.gpu["spans"])


if __name__ == "__main__":
    unittest.main()
