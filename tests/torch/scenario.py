"""One script of this folder on the simulated device under `lull run`: what lull says
of it, and what really happened."""

import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "integration"), os.path.join(ROOT, "tests", "sim"),
                os.path.join(ROOT, "tools", "demo_job")]
import checks
import guest
import idle
import truth

ON_SIM = os.path.join(HERE, "run_on_sim")
# What is read back is zero: kernels compute nothing, and programs decide on it.
CONFIG = "zero_reads_kib=4"


def python(script, *arguments):
    return [ON_SIM, "python", os.path.join(HERE, script), *arguments]


class Scenario:
    # The budget of 100 % is for exactness: on a busy machine the default would thin stacks.
    def __init__(self, host, name, command, config="", budget="100", gpu="continuous"):
        self.host, self.name = host, name
        with tempfile.TemporaryDirectory(prefix="lull-truth-") as folder:
            log = os.path.join(folder, "truth")
            self.done = guest.execute(
                [guest.LULL, "run", "--quiet", "--gpu", gpu, "--overhead-budget", budget,
                 "--name", name, "--", *command],
                {**host.environment, "LULL_SIM_LOG": log,
                 "LULL_SIM_CONFIG": f"{CONFIG};{config}"}, timeout=900)
            self.truth = truth.load(log)
        self.syncs, self.allocs, self.gaps, self.kernels = (
            self.ask(verb) for verb in ("syncs", "allocs", "gaps", "kernels"))
        self.gpu = self.gaps["gpu"]

    def ask(self, verb, *options):
        return checks.query(guest.LULL, verb, self.name, *options)

    def start_ns(self):
        return self.host.start_ns(self.name)

    def wasted_ms(self, calls):
        """What these calls cost, by the ground truth."""
        if not hasattr(self, "_wasted"):
            self._wasted = idle.Idle(self.truth).wasted()
        return sum(self._wasted.get(call.correlation, 0) for call in calls) / 1e6

    def kernels_of(self, name):
        """The rows of the kernels with `name` in their names."""
        return [row for row in self.kernels["kernels"] if name in row["name"]]

    def sync_rows(self, file, line):
        """{api: row} of what synchronised at a line; `file` is the end of its path."""
        return {row["api"]: row for row in self.syncs["sync_points"]
                if row["site"]["line"] == line and row["site"]["file"].endswith(file)}

    def sites(self):
        """{(file name, line)} of everything that synchronised."""
        return {(os.path.basename(row["site"]["file"]), row["site"]["line"])
                for row in self.syncs["sync_points"]}

    def copies(self, direction, pageable=None):
        """The program's calls of cudaMemcpyAsync in a direction ("DtoH"), in order."""
        wanted = {op.correlation for op in self.truth.ops("copy") if op.copy == direction
                  and (pageable is None or op.pageable == pageable)}
        return [call for call in self.truth.calls("cudaMemcpyAsync")
                if call.correlation in wanted]

    def syncs_after(self, direction, pageable=None):
        """The synchronisations that follow such copies on their threads, in order."""
        copies = {call.correlation for call in self.copies(direction, pageable)}
        found, last = [], {}
        for call in self.truth.calls():
            if call.name == "cudaMemcpyAsync":
                last[call.tid] = call.correlation
            elif call.name == "cudaStreamSynchronize":
                if last.pop(call.tid, None) in copies:
                    found.append(call)
        return found


class TorchCase(unittest.TestCase):
    maxDiff = None

    def assert_ran(self, run):
        self.assertEqual(run.done.status, 0, run.done.stderr)

    def assert_nothing_lost(self, run):
        losses = run.syncs["losses"]
        self.assertEqual(losses["events_lost"], 0, losses)
        self.assertEqual(losses["events_committed"], losses["events_stored"])

    def assert_blocked(self, row, calls):
        """`row` tells the time of `calls`, within 2 % and 10 microseconds a call."""
        real = milliseconds(calls)
        self.assertLessEqual(abs(row["blocked_ms"] - real), 0.02 * real + 0.01 * len(calls),
                             f"really {real} ms: {row}")

    def assert_wasted(self, run, rows, calls):
        """`rows` tell together what `calls` cost, within 2 % and 5 microseconds a call."""
        real = run.wasted_ms(calls)
        self.assertGreater(real, 0)
        told = sum(row["wasted_ms"] for row in rows)
        self.assertLessEqual(abs(told - real), 0.02 * real + 0.005 * len(calls),
                             f"told {told} ms, really {real} ms")

    def assert_gpu_truth(self, run):
        """Every operation of the device is known, and all its idle time has a cause."""
        self.assertIsNone(run.gpu["missing"])
        for what in ("cupti_dropped", "records_lost", "records_bad", "late_operations"):
            self.assertEqual(run.gpu[what], 0, what)
        for what, kind in (("kernels", "kernel"), ("copies", "copy"), ("memsets", "memset")):
            self.assertEqual(run.gpu[what], len(run.truth.ops(kind)), what)
        busy = run.truth.busy() / 1e6
        self.assertAlmostEqual(run.gpu["busy_ms"], busy, delta=0.001 * busy)
        causes = sum(row["total_ms"] for row in run.gaps["causes"])
        self.assertAlmostEqual(causes, run.gpu["idle_ms"], delta=1e-3)
        self.assertEqual(run.gpu["unknown_ms"], 0)
        # From when tracing began until the last operation ended.
        (span,) = run.gpu["spans"]
        first = run.start_ns() + span["start_ms"] * 1e6
        real = idle.Idle(run.truth).total(first) / 1e6
        self.assertAlmostEqual(run.gpu["idle_ms"], real, delta=0.001 * real)


def installed(module):
    """The file of a module of the Python that PyTorch is installed in."""
    done = subprocess.run(
        [ON_SIM, "python", "-c",
         f"import importlib.util as u; print(u.find_spec('{module}').origin)"],
        stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def line_of(path, text, after=0):
    """The number of the first line of `path`, after line `after`, that contains `text`."""
    with open(path) as source:
        return next(number for number, line in enumerate(source, 1)
                    if number > after and text in line)


def site(script, name):
    return line_of(os.path.join(HERE, script), f"# SITE: {name}")


def milliseconds(calls):
    return sum(call.duration for call in calls) / 1e6
