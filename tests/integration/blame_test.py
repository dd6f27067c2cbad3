#!/usr/bin/env python3
"""Random programs on the simulated device under `lull run --gpu continuous`: idle time,
the cause of each part of it and what each sync wasted are what the ground truth says.

LULL_SEEDS programs (default 150; the slow tier runs 1000), LULL_SEED the first.
"""

import collections
import os
import sys
import tempfile
import unittest

import guest
import shares

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests", "sim"), os.path.join(ROOT, "tools", "demo_job")]
import blame_oracle
import checks
import truth

BUILT = os.environ["LULL_PUPPETS"]
SIM = os.environ["LULL_SIM"]
SEEDS = int(os.environ.get("LULL_SEEDS", "150"))
FIRST_SEED = int(os.environ.get("LULL_SEED", "1"))
SEEDS_OF_A_JOB = 50
ATTEMPTS = 4
COMMANDS = ([os.path.join(BUILT, "random_work_host12")],
            # Between liblull.so and libc, as it is in the others:
            ["sh", "-c", "LD_PRELOAD=$LD_PRELOAD:libtrue_waits.so exec \"$@\"", "sh",
             sys.executable, os.path.join(ROOT, "tests", "puppets", "random_garbage.py")],
            [os.path.join(BUILT, "random_work_host13")])

CODE = ("host_code", "launch_bound", "run_queue")
IDLE_TOLERANCE = 0.001  # of idle time
CAUSE_TOLERANCE = 0.001  # of idle time under another cause or line than it should
WASTED_TOLERANCE = 0.01  # of each sync's wasted time, over all programs
# Functions of random_garbage.py, as its log has them.
WHAT_RAN = {"compute": "compute", "litter": "nodes", "collect": "nodes",
            "<listcomp>": "nodes", "__init__": "nodes"}
SAMPLES_OF_A_SHARE = 30
HOLDS_IN_100 = 90  # intervals that hold in 95 of 100 do so at least so often
MOST_WRONG_SHARE = 0.03  # of samples, beside what chance makes of them
CLOCK_READS_NS = 100  # a call seems longer by the clock reads of its hook
WIDE_SHARE = 0.03  # of the edges of calls, waits and collections
WIDE_SHARE_OF_A_KIND = 0.2  # of those of one call, or sort of wait: its begin, its end
EDGES_OF_A_KIND = 40  # of fewer, chance makes such shares
ONE_GAP_NS = 100_000  # one gap at the edge of a rule may fall on either side


def lull_cells(gaps):
    total = collections.Counter()
    for row in gaps["gaps"]:
        # Of code itself samples name the line, where they caught it; that is tried below.
        code = row["cause"] in CODE
        key = (row["cause"], row["after" if code else "culprit"]["line"],
               row["before"]["line"], row["after"]["line"])
        total[key] += row["total_ms"] * 1e6
    return total


def sampled(gaps):
    """{(before line, after line): samples of code by what ran}; "": anything else."""
    rows = collections.defaultdict(collections.Counter)
    for row in gaps["gaps"]:
        if row["cause"] not in CODE:
            continue
        counted = rows[row["before"]["line"], row["after"]["line"]]
        for line in row["doing"]:
            counted[WHAT_RAN.get(line["function"].split(".")[-1], "")] += line["samples"]
        counted[""] += row["samples"] - sum(line["samples"] for line in row["doing"])
    return rows


def without_run_queue(found, expected):
    """Threads that are late are late in what would else be launch-bound or their own code;
    the log of the program does not know the moments."""
    total = collections.Counter()
    for (cause, *lines), ns in found.items():
        if cause != "run_queue":
            total[cause, *lines] += ns
    for (cause, *lines), ns in found.items():
        if cause == "run_queue":
            bound = ("launch_bound", *lines)
            launch_bound = min(ns, max(0, expected[bound] - total[bound]))
            total[bound] += launch_bound
            total["host_code", *lines] += ns - launch_bound
    return total


class Job:
    """One run of some seeds: what lull says, and what the oracle says."""

    def __init__(self, host, name, command, first, count):
        with tempfile.TemporaryDirectory(prefix="lull-blame-") as folder:
            log, program_log = (os.path.join(folder, f) for f in ("truth", "program"))
            self.done = guest.execute(
                [guest.LULL, "run", "--quiet", "--gpu", "continuous", "--name", name,
                 "--overhead-budget", "100", "--",
                 *command, program_log, str(first), str(count)],
                {**host.environment, "LD_LIBRARY_PATH": f"{SIM}:{BUILT}", "LULL_SIM_LOG": log})
            if self.done.status != 0:
                raise AssertionError(self.done.stderr)
            self.oracle = blame_oracle.Oracle(truth.load(log),
                                              blame_oracle.Host(program_log))
        job_start = host.start_ns(name)
        operations = self.oracle.operations
        # From the pause after the first operation into the last, long one.
        self.since = (operations[0].end + operations[1].start) // 2
        self.until = (operations[-1].start + operations[-1].end) // 2

        def ask(verb, since, until):
            return checks.query(guest.LULL, verb, name,
                                "--since", f"{(since - job_start) / 1e6:.6f}ms",
                                "--until", f"{(until - job_start) / 1e6:.6f}ms")

        self.gaps = ask("gaps", self.since, self.until)
        self.syncs = ask("syncs", self.since, self.until)
        self.expected, self.disturbed = blame_oracle.cells(self.oracle, self.since,
                                                           self.until)
        self.done_in_gaps = blame_oracle.done(self.oracle, self.since, self.until)
        self.left_out = collections.Counter()
        for gap in self.disturbed:
            self.left_out += lull_cells(ask("gaps", *gap))
        found = lull_cells(self.gaps)
        found.subtract(self.left_out)
        self.found = without_run_queue(found, self.expected)

    def compared_ns(self):
        return sum(self.expected.values())

    def left_out_ns(self):
        return sum(b - a for a, b in self.disturbed)

    def wide_share(self):
        host = self.oracle.host
        return host.unexplained.total() / host.edges.total()

    def wide_kinds(self):
        host = self.oracle.host
        return [kind for kind, count in host.edges.items() if count >= EDGES_OF_A_KIND and
                host.unexplained[kind] > WIDE_SHARE_OF_A_KIND * count]

    def late_ns(self):
        """Of that, where a thread lacked a processor, as the kernel says."""
        spans = [span for late in self.oracle.host.late.values() for span in late]
        return sum(b - a for a, b in self.disturbed if blame_oracle.overlap(spans, a, b))


class RandomPrograms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        cls.addClassCleanup(cls.host.close)
        os.environ.update(cls.host.environment)
        cls.jobs = []
        for number, first in enumerate(range(FIRST_SEED, FIRST_SEED + SEEDS, SEEDS_OF_A_JOB)):
            count = min(SEEDS_OF_A_JOB, FIRST_SEED + SEEDS - first)
            command = COMMANDS[number % len(COMMANDS)]
            name = f"{os.path.basename(command[-1])}-{first}"
            # On a crowded machine most gaps are disturbed: then there is nothing to see.
            for attempt in range(ATTEMPTS):
                job = Job(cls.host, f"{name}-{attempt}", command, first, count)
                if job.late_ns() <= job.compared_ns():
                    break
                # Not of a slow hook, which leaves little to compare, too.
                if job.wide_kinds() or job.wide_share() > WIDE_SHARE:
                    raise AssertionError(f"{name}: {job.wide_share():.1%} of all moments are "
                                         f"noted late, most of {job.wide_kinds()}")
            else:
                raise unittest.SkipTest(
                    f"too many others on this machine: {ATTEMPTS} times more than half of "
                    f"{name} was disturbed")
            cls.jobs.append(job)

    def test_idle_time_is_that_of_the_device(self):
        for job in self.jobs:
            expected = sum(min(b, job.until) - max(a, job.since)
                           for a, b, *_ in job.oracle.gaps()
                           if b > job.since and a < job.until)
            self.assertGreater(expected, 0)
            self.assertAlmostEqual(job.gaps["gpu"]["idle_ms"] * 1e6, expected,
                                   delta=IDLE_TOLERANCE * expected)

    def test_causes_and_lines_are_right(self):
        wrong, idle = collections.Counter(), 0
        for job in self.jobs:
            idle += sum(job.expected.values())
            for key in job.expected.keys() | job.found.keys():
                wrong[key] += abs(job.expected[key] - job.found[key]) / 2
        worst = "\n".join(f"{ns / 1e6:9.3f} ms {key}" for key, ns in wrong.most_common(15))
        share = sum(wrong.values()) / idle
        print(f"{idle / 1e6:.1f} ms of idle time, {share:.3%} told wrong", file=sys.stderr)
        self.assertLess(share, CAUSE_TOLERANCE, worst)

    def test_samples_say_what_was_done_in_the_gaps(self):
        expected, found, samples = collections.Counter(), collections.Counter(), 0
        for job in self.jobs:
            if not job.oracle.host.ran:  # no Python
                for row in job.gaps["gaps"]:
                    self.assertEqual(row["doing"], [], row)
                continue
            for done in job.done_in_gaps.values():
                expected += done
            for counted in sampled(job.gaps).values():
                samples += sum(counted.values())
                found += counted
        total = sum(expected.values())
        print(f"{samples} samples in {total / 1e6:.0f} ms of code: {dict(found)}, "
              f"expected {dict(expected)}", file=sys.stderr)
        self.assertGreater(samples, 50)
        for what in ("compute", "nodes"):
            share = expected[what] / total
            deviation = (share * (1 - share) / samples) ** 0.5
            self.assertAlmostEqual(found[what] / samples, share,
                                   delta=MOST_WRONG_SHARE + 3.3 * deviation, msg=what)

    def test_shares_of_rows_are_within_their_intervals(self):
        holds = intervals = 0
        for job in self.jobs:
            counted = sampled(job.gaps)
            for key, done in job.done_in_gaps.items():
                looks, whole = sum(counted[key].values()), sum(done.values())
                if looks < SAMPLES_OF_A_SHARE:  # reports tell no share then
                    continue
                for what in ("compute", "nodes"):
                    _, low, high = shares.wilson(counted[key][what], looks)
                    intervals += 1
                    holds += low <= 100 * done[what] / whole <= high
        if intervals == 0:
            self.skipTest("too few programs for a row with shares")
        print(f"{holds} of {intervals} intervals hold", file=sys.stderr)
        least = HOLDS_IN_100 / 100
        allowed = least * intervals
        if intervals < 100:  # what chance makes of so few
            allowed -= 3.3 * (least * (1 - least) * intervals) ** 0.5
        self.assertGreaterEqual(holds, allowed)

    def test_no_more_time_lacked_a_processor_than_the_kernel_says(self):
        for job in self.jobs:
            told = sum(row["total_ms"] for row in job.gaps["causes"]
                       if row["cause"] == "run_queue")
            self.assertLessEqual(told * 1e6, job.oracle.host.delays_ns)

    def test_few_moments_are_noted_late(self):
        """Those are left out, whatever the reason: a hook that is slow would hide there."""
        for job in self.jobs:
            print(f"{job.wide_share():.2%} of {job.oracle.host.edges.total()} edges are wide, "
                  f"{job.left_out_ns() / 1e6:.1f} ms left out", file=sys.stderr)
            self.assertLess(job.wide_share(), WIDE_SHARE)
            self.assertEqual(job.wide_kinds(), [])

    def test_causes_sum_to_the_idle_time(self):
        for job in self.jobs:
            causes = sum(row["total_ms"] for row in job.gaps["causes"])
            self.assertAlmostEqual(causes, job.gaps["gpu"]["idle_ms"], delta=1e-6)

    def test_nothing_is_unknown_or_late(self):
        for job in self.jobs:
            self.assertEqual(job.gaps["gpu"]["unknown_ms"], 0)
            self.assertEqual(job.gaps["gpu"]["late_operations"], 0)
            self.assertEqual(job.gaps["losses"]["events_lost"], 0)

    def test_wasted_time_of_each_sync_is_right(self):
        expected, found, calls = (collections.Counter() for _ in range(3))
        for job in self.jobs:
            for (cause, culprit, _, _), ns in job.expected.items():
                if cause == "sync":
                    expected[culprit] += ns
            for (cause, culprit, _, _), ns in job.left_out.items():
                if cause == "sync":
                    found[culprit] -= ns
            for row in job.syncs["sync_points"]:
                found[row["site"]["line"]] += (row["wasted_ms"] or 0) * 1e6
                calls[row["site"]["line"]] += row["calls"]
        for line in expected.keys() | found.keys():
            self.assertAlmostEqual(found[line], expected[line], msg=f"line {line}",
                                   delta=WASTED_TOLERANCE * expected[line] + ONE_GAP_NS
                                   + CLOCK_READS_NS * calls[line])


if __name__ == "__main__":
    unittest.main(verbosity=2)
