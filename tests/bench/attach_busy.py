#!/usr/bin/env python3
"""Attaching to the trainer of trainer_cost.py while all processors are busy: loader workers that
compute, as many as there are processors.

    tests/bench/attach_busy.py [--rounds N] [--seconds S] [--gpu window|continuous|host] [-- OPTION...]

For each attachment: events lost, what lull says of its cost, the longest stop of a thread, device
time that was traced, and how long after the end of its time the attach was over. The step time
within the first second against the second before it stands beside. Figures are medians, and the
worst.
"""
import argparse
import bisect
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "integration")]
import guest
import trainer_cost

UNITS = {"us": 1e-3, "ms": 1, "s": 1e3}


def held(line, after):
    """How long a thread was, and what of it it waited for a processor, in ms; 0 where none was."""
    found = re.search(after + r" ([\d.]+)(us|ms|s)(?:, of which it waited ([\d.]+)(us|ms|s))?", line)
    if not found:
        return 0, 0
    time_ms = float(found.group(1)) * UNITS[found.group(2)]
    return time_ms, float(found.group(3)) * UNITS[found.group(4)] if found.group(3) else 0


class Round:
    """One attachment: what it printed, and when."""

    def __init__(self, lull, pid, name, arguments, environment):
        self.began_ns = time.monotonic_ns()
        child = subprocess.Popen(
            [lull, "attach", str(pid), "--for", f"{arguments.seconds}s", "--gpu", arguments.gpu,
             "--name", name, *arguments.options], env=environment, stderr=subprocess.PIPE, text=True)
        self.watching_ns = None
        for line in child.stderr:
            if "no thread that ran was stopped" in line:
                self.watching_ns = time.monotonic_ns()
                self.ran_ms, ran_waited_ms = held(line, "stopped for longer than")
                self.slept_ms, slept_waited_ms = held(line, "held for up to")
                self.stop_ms, self.waited_ms = max((self.ran_ms, ran_waited_ms),
                                                   (self.slept_ms, slept_waited_ms))
        if child.wait() != 0 or self.watching_ns is None:
            raise SystemExit("attach_busy: an attach failed")
        self.ended_ns = time.monotonic_ns()
        self.late_ms = (self.ended_ns - self.watching_ns) / 1e6 - 1e3 * arguments.seconds
        done = subprocess.run([lull, "report", name, "--json"], env=environment,
                              stdout=subprocess.PIPE, check=True)
        report = json.loads(done.stdout)
        self.lost = report["losses"]["events_lost"]
        self.events = report["losses"]["events_committed"]
        self.percent = report["overhead"]["percent"]
        self.traced_ms = report["gpu"]["traced_ms"]


def first_second(ends, rounds):
    """Of each attachment: the median step of its first second against that of the one before."""
    steps = list(zip(ends, ends[1:]))
    begins = [begin for begin, _ in steps]

    def median(since, until):
        chosen = steps[bisect.bisect_left(begins, since):bisect.bisect_left(begins, until)]
        return statistics.median(end - begin for begin, end in chosen) if chosen else None

    ratios = []
    for one in rounds:
        before = median(one.began_ns - 10 ** 9, one.began_ns)
        during = median(one.watching_ns, one.watching_ns + 10 ** 9)
        if before and during:
            ratios.append(during / before)
    return ratios


def show(what, values, form="%.2f"):
    if values:
        print(("  %-52s " + form + " (worst " + form + ")") % (
            what, statistics.median(values), max(values)))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lull",
                        default=os.environ.get("LULL_BIN", os.path.join(ROOT, "build/cli/lull")))
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--gpu", default="window")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("options", nargs="*", help="after --: more options of lull attach")
    arguments = parser.parse_args()
    if not os.path.exists(trainer_cost.TORCH):
        print("attach_busy: left out, no PyTorch (tests/torch/install)")
        return
    with tempfile.TemporaryDirectory(prefix="lull-bench-") as folder:
        environment = guest.lull_environment(folder)
        out = os.path.join(folder, "out.json")
        child = subprocess.Popen(
            [os.path.join(ROOT, "tests", "torch", "run_on_sim"), "python",
             os.path.join(HERE, "trainer.py"), out, "--steps", "0", "--workers",
             str(arguments.workers)],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        rounds = []
        try:
            trainer_cost.Bench.expect(child, "warm")
            trainer_cost.Bench.go_on(child)
            for number in range(arguments.rounds):
                time.sleep(2)
                rounds.append(Round(arguments.lull, child.pid, f"busy-{number}", arguments,
                                    environment))
                one = rounds[-1]
                print(f"round {number + 1}: stop {one.stop_ms:.1f} ms, late {one.late_ms:.0f} ms, "
                      f"lost {one.lost}", file=sys.stderr, flush=True)
            child.stdin.close()  # the end of its steps
            child.wait(timeout=120)
        finally:
            child.kill()
            child.wait()
            guest.stop_collector(folder)
        with open(out) as file:
            ends = json.load(file)["ends_ns"]
    print(f"{len(rounds)} attachments of {arguments.seconds} s (--gpu {arguments.gpu}) to a "
          f"trainer with {arguments.workers} workers on {os.cpu_count()} processors")
    print(f"  events lost: {sum(one.lost for one in rounds)} of "
          f"{sum(one.events for one in rounds)}, in {sum(one.lost > 0 for one in rounds)} rounds")
    show("longest stop of a thread that ran, ms", [one.ran_ms for one in rounds])
    show("longest stop of any, ms", [one.stop_ms for one in rounds])
    show("  of it waiting for a processor, ms", [one.waited_ms for one in rounds])
    show("  and for us, ms", [one.stop_ms - one.waited_ms for one in rounds])
    show("own code, % of the busiest process (budget 1 %)", [one.percent for one in rounds])
    show("over after its time, ms", [one.late_ms for one in rounds], "%.0f")
    traced = [one.traced_ms or 0 for one in rounds]
    print(f"  device time that was traced, ms: {statistics.median(traced):.0f} "
          f"(least {min(traced):.0f})")
    show("step in the first second / in the second before", first_second(ends, rounds), "%.3f")


if __name__ == "__main__":
    sys.exit(main())
