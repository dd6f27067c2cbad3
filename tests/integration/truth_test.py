#!/usr/bin/env python3
"""Lines of which the program knows how long they took, by CPython 3.8 to 3.13 (3.14 where
there is one), in gaps of the simulated device and beside its work: `lull hot` and the
`doing` of `lull gaps` say the same shares, and their intervals hold as often as they say.

LULL_RUNS runs, spread over the interpreters, of LULL_SECONDS each, LULL_AT_ONCE at a time
(each takes 40 % of a processor; on a full machine looks come late, and what is told of lines
that compute is too low by up to half a point). From 100 runs on it is judged what 95 in 100 are to show: at
least 90 do; intervals only of runs that others on the machine did not disturb. Fewer runs
are held against what chance makes of so few samples.
"""

import collections
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import unittest

import guest
import interpreters
from shares import wilson

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PUPPETS = os.path.join(ROOT, "tests", "puppets")
sys.path[:0] = [PUPPETS, os.path.join(ROOT, "tools", "demo_job"),
                os.path.join(ROOT, "tests", "sim")]
import checks
import expected
import truth

SIM = os.environ["LULL_SIM"]
PYTHONS = sorted(interpreters.with_test_suite().items(),
                 key=lambda item: tuple(map(int, item[0].split("."))))
RUNS = int(os.environ.get("LULL_RUNS", str(len(PYTHONS))))
SECONDS = float(os.environ.get("LULL_SECONDS", "5"))
AT_ONCE = int(os.environ.get("LULL_AT_ONCE") or max(1, len(os.sched_getaffinity(0)) // 2))
PROGRAM = os.path.join(PUPPETS, "truth_lines.py")
BESIDE_WORK = ("statistics", "nap")
IN_GAPS = ("decode", "augment", "fetch", "collate", "encode", "store", "pace")
# What else a line runs that is on a line of its own.
CALLEES = {"encode": ("twice",)}
CODE = ("host_code", "launch_bound", "run_queue")

POINTS = 2  # a line is told within so many of the truth
MOST_BIAS = 0.5  # points, of all runs together
HOLDS_IN_100 = 90  # intervals that hold in 95 of 100 do so at least so often
MOST_DELAYED = 0.05  # of a run without a processor; more is said


def line(name):
    return expected.site("truth_lines.py", name)


def overlap(spans, others):
    """Time that lies in both; each sorted, and without overlaps of its own."""
    total, i = 0, 0
    for start, end in spans:
        while i < len(others) and others[i][1] <= start:
            i += 1
        k = i
        while k < len(others) and others[k][0] < end:
            total += min(end, others[k][1]) - max(start, others[k][0])
            k += 1
    return total


class Told(object):
    """A share as lull tells it, in percent, and what it really is."""

    def __init__(self, percent, low, high, real, samples):
        self.percent, self.low, self.high = percent, low, high
        self.real, self.samples = real, samples

    def error(self):
        return self.percent - self.real

    def deviation(self):
        """Of the samples, in points."""
        return (self.real * (100 - self.real) / self.samples) ** 0.5

    def holds(self):
        return self.low <= self.real <= self.high


class Run(object):
    """One run of the program, and what lull says of it."""

    def __init__(self, host, name, python, seed, pattern):
        self.series, self.pattern = name.split("-")[0], pattern
        with tempfile.TemporaryDirectory(prefix="lull-truth-") as folder:
            log, file = (os.path.join(folder, part) for part in ("device", "spans"))
            done = guest.execute(
                [guest.LULL, "run", "--quiet", "--gpu", "continuous", "--name", name, "--",
                 python, PROGRAM, file, str(SECONDS), str(seed), pattern],
                {**host.environment, "LD_LIBRARY_PATH": SIM, "LULL_SIM_LOG": log,
                 "LULL_SIM_CONFIG": "kernel_us.long_kernel=1500"}, timeout=SECONDS + 120)
            if (done.status, done.stderr) != (0, ""):
                raise AssertionError((done.status, done.stderr))
            with open(file) as known:
                program = json.load(known)
            kernels = [(op.start, op.end) for op in truth.load(log).ops("kernel")]
        self.spans = program["spans"]
        # From a kernel to a kernel: reports begin and end with gaps that are whole.
        kernels = [one for one in kernels if one[0] > kernels[0][0] + 1e9]
        self.since, self.until = kernels[0][0], kernels[-1][0]
        self.gaps = [(a[1], b[0]) for a, b in zip(kernels, kernels[1:]) if b[0] > a[1]]
        self.delayed = program["delayed_ms"] * 1e6 / (self.until - self.since)
        self.name, self.start_ns = name, host.start_ns(name)

    def late(self):
        """Points by which the machine may have led astray whoever looks: on a full one the
        sampler gets its turn when the program sleeps. After hot()."""
        return 100 * self.samples["late"] / self.samples["taken"]

    def widened(self, percent, low, high):
        """As lull widens its own intervals for looks that came late."""
        late = self.late() / 100
        return (percent, max(0, low - late * percent),
                min(100, high + late * (100 - percent)))

    def disturbed(self):
        return self.delayed > MOST_DELAYED

    def ask(self, verb):
        return checks.query(guest.LULL, verb, self.name,
                            "--since", f"{(self.since - self.start_ns) / 1e6:.6f}ms",
                            "--until", f"{(self.until - self.start_ns) / 1e6:.6f}ms")

    def hot(self):
        """{name: Told} of the time of the main thread."""
        answer, found = self.ask("hot"), {}
        self.samples = answer["samples"]
        (role,) = answer["roles"]
        whole = [(self.since, self.until)]
        for row in answer["lines"]:
            name = row["function"]
            if name not in self.spans or row["line"] != line(name):
                continue
            found[name] = Told(row["total_percent"], row["low_percent"], row["high_percent"],
                               100 * overlap(self.spans[name], whole)
                               / (self.until - self.since), role["samples"])
        return found

    def doing(self):
        """{name: Told} of the time in which the device waited for code."""
        answer = self.ask("gaps")
        seen, rows, whole = collections.Counter(), collections.defaultdict(list), 0
        for row in answer["gaps"]:
            if row["cause"] not in CODE:
                continue
            whole += row["samples"]
            for doing in row["doing"]:
                if doing["file"].endswith("truth_lines.py"):
                    seen[doing["line"]] += doing["samples"]
                    rows[doing["line"]].append((row, doing))
        real = {name: overlap(self.spans.get(name, ()), self.gaps) for name in IN_GAPS}
        # Waits are a cause of their own.
        gaps = (sum(end - start for start, end in self.gaps)
                - overlap(self.spans["nap"], self.gaps))
        found = {}
        for name in IN_GAPS:
            if not real[name]:
                continue
            own = [line(one) for one in (name, *CALLEES.get(name, ()))]
            percent, low, high = self.widened(*wilson(sum(seen[one] for one in own), whole))
            told = [row for one in own for row in rows[one]]
            if len(told) == 1 and told[0][0]["samples"] == whole:
                # One row has it all: the interval is lull's own.
                doing = told[0][1]
                percent, low, high = (doing[f"own_{what}percent"]
                                      for what in ("", "low_", "high_"))
            found[name] = Told(percent, low, high, 100 * real[name] / gaps, whole)
        return found


class Lines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not PYTHONS:
            raise unittest.SkipTest("no CPython with its own tests here")
        cls.host = guest.Host()
        os.environ.update(cls.host.environment)
        cls.told = collections.defaultdict(list)  # (where, name) -> [(Run, Told)]
        cls.disturbed = cls.late = cls.looks = 0
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for run, found in pool.map(cls.one, range(RUNS)):
                cls.disturbed += run.disturbed()
                cls.late += run.samples["late"]
                cls.looks += run.samples["taken"]
                for key, told in found.items():
                    cls.told[key].append((run, told))
        cls.print_table()

    @classmethod
    def tearDownClass(cls):
        cls.host.close()

    @classmethod
    def one(cls, number):
        series, python = PYTHONS[number % len(PYTHONS)]
        pattern = ("random", "locked")[(number + number // len(PYTHONS)) % 2]
        run = Run(cls.host, f"{series}-{number}", python, number, pattern)
        found = {("hot", name): told for name, told in run.hot().items()}
        found.update({("gaps", name): told for name, told in run.doing().items()})
        return run, found

    @classmethod
    def print_table(cls):
        print(f"{RUNS} runs of {SECONDS:.0f} s, {AT_ONCE} at once, by "
              f"{', '.join(series for series, _ in PYTHONS)}; of {cls.disturbed} the thread "
              f"waited for a processor for more than {MOST_DELAYED:.0%}; "
              f"{cls.late / cls.looks:.1%} of the looks were late", file=sys.stderr)
        print("where line         runs  truth  within 2  holds  bias   samples of a run",
              file=sys.stderr)
        for (where, name), told in sorted(cls.told.items()):
            every = [one for _, one in told]
            print(f"{where:5} {name:11} {len(every):5} "
                  f"{sum(one.real for one in every) / len(every):6.2f} "
                  f"{sum(abs(one.error()) <= POINTS for one in every):9} "
                  f"{sum(one.holds() for one in every):6} "
                  f"{cls.bias(every):+5.2f}   {sum(one.samples for one in every) // len(every)}",
                  file=sys.stderr)
        for series, _ in PYTHONS:
            of_series = [one for told in cls.told.values() for run, one in told
                         if run.series == series]
            if of_series:
                print(f"CPython {series}: {sum(one.holds() for one in of_series)} of "
                      f"{len(of_series)} intervals hold", file=sys.stderr)

    @staticmethod
    def bias(every):
        """In points, of all samples."""
        samples = sum(one.samples for one in every)
        return sum(one.error() * one.samples for one in every) / samples

    def test_every_line_is_told(self):
        for where, names in (("hot", BESIDE_WORK + IN_GAPS), ("gaps", IN_GAPS)):
            for name in names:
                if name != "pace" or RUNS > 1:  # which the locked runs have alone
                    self.assertGreater(len(self.told[where, name]), 0, (where, name))

    def test_no_line_is_far_from_the_truth(self):
        for key, told in self.told.items():
            for run, one in told:
                self.assertLess(abs(one.error()), 0.5 + run.late() + 4.5 * one.deviation(),
                                (key, run.series, run.pattern, vars(one)))

    def test_no_line_is_told_too_high_or_too_low(self):
        if RUNS < 20:
            self.skipTest("in fewer than 20 runs a bias is not told from chance: looks at "
                          "one call of a line are not independent of each other")
        for key, told in self.told.items():
            for pattern in ("random", "locked"):
                runs = [(run, one) for run, one in told if run.pattern == pattern]
                if not runs:
                    continue
                every = [one for _, one in runs]
                late = sum(run.late() for run, _ in runs) / len(runs)
                samples = sum(one.samples for one in every)
                real = sum(one.real for one in every) / len(every)
                allowed = MOST_BIAS + late + 3.3 * (real * (100 - real) / samples) ** 0.5
                self.assertLess(abs(self.bias(every)), allowed, (key, pattern))

    def test_lines_are_within_two_points(self):
        if RUNS < 100:
            self.skipTest("fewer than 100 runs")
        for key, told in self.told.items():
            self.assertGreaterEqual(sum(abs(one.error()) <= POINTS for _, one in told),
                                    HOLDS_IN_100 / 100 * len(told), key)

    def test_as_many_intervals_hold_as_is_said(self):
        """Whoever looks late, because the machine is busy, sees what comes later, and that is
        not chance: intervals are wider by what this leaves open."""
        if RUNS - self.disturbed < 50:
            self.skipTest(f"{self.disturbed} of {RUNS} runs were disturbed")
        for key, told in self.told.items():
            quiet = [one for run, one in told if not run.disturbed()]
            if len(quiet) >= 20:
                self.assertGreaterEqual(sum(one.holds() for one in quiet),
                                        HOLDS_IN_100 / 100 * len(quiet), key)


class AsleepInStep(unittest.TestCase):
    """Ten looks a second, where nothing is traced, at steps of 10 ms in several processes
    that all begin theirs at the same moments."""

    PROCESSES = 8

    def test_steps_of_10_ms_are_not_in_step_with_the_looks(self):
        host = guest.Host()
        self.addCleanup(host.close)
        os.environ.update(host.environment)
        with tempfile.TemporaryDirectory(prefix="lull-truth-") as folder:
            files = [os.path.join(folder, str(i)) for i in range(self.PROCESSES)]
            script = " ".join(f"'{sys.executable}' '{PROGRAM}' '{file}' {3 * SECONDS} 0 asleep &"
                              for file in files) + " wait"
            done = guest.execute([guest.LULL, "run", "--quiet", "--name", "asleep", "--",
                                  "sh", "-c", script],
                                 {**host.environment, "LD_LIBRARY_PATH": SIM},
                                 timeout=3 * SECONDS + 60)
            self.assertEqual((done.status, done.stderr), (0, ""))
            spent = collections.Counter()
            for file in files:
                with open(file) as known:
                    for name, spans in json.load(known)["spans"].items():
                        spent[name] += sum(end - start for start, end in spans)
        answer = checks.query(guest.LULL, "hot", "asleep")
        samples = {row["function"]: row["samples"] for row in answer["lines"]
                   if row["function"] in spent and row["line"] == line(row["function"])}
        whole = sum(samples.values())
        self.assertGreater(whole, 10 * 3 * SECONDS * self.PROCESSES / 2)
        real = spent["early"] / sum(spent.values())
        told = samples["early"] / whole
        print(f"asleep: {real:.2%} in the first part, told {told:.2%} of {whole} samples",
              file=sys.stderr)
        late = answer["samples"]["late"] / answer["samples"]["taken"]
        self.assertLess(abs(told - real),
                        0.005 + late + 3.3 * (real * (1 - real) / whole) ** 0.5)


if __name__ == "__main__":
    unittest.main(verbosity=2)
