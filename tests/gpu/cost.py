#!/usr/bin/env python3
"""What lull costs a training on a GPU, on the wall clock: cost.py [--rounds N] [--ms N].

The same training runs in several processes at once, two of them without lull. One after the other,
in an order that changes from round to round, each is told to train for a stretch while the others
wait. A figure is the median over the rounds of the ratio to the first one without lull in the
same round, with its 95 % interval by the bootstrap over rounds; `again` is the second one without
lull: what the machine itself adds. A second table has what lull's reports said of the same.
A stretch should have several windows, which are 26 steps by default.

LULL_GPU_PYTHON  a Python with a CUDA build of PyTorch (python3)
LULL_BIN         lull"""

import argparse
import json
import os
import random
import shlex
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))
sys.path.insert(0, os.path.join(ROOT, "tools", "demo_job"))
import checks
import guest

PYTHON = shlex.split(os.environ.get("LULL_GPU_PYTHON", "python3"))
SAID = []  # rows of the second table
EXACT = ["--overhead-budget", "100"]
WAYS = {"alone": None, "again": None, "host": ["--gpu", "host"],
        "unsampled": ["--gpu", "host", "--no-samples"], "window": [],
        "finalized": ["--schedule", "finalize=1"],
        "continuous": ["--gpu", "continuous", *EXACT]}


class Process:
    def __init__(self, host, model, graph, way):
        lull = [] if WAYS[way] is None else [
            guest.LULL, "run", "--quiet", *WAYS[way], "--name", job_of(model, graph, way), "--"]
        self.process = subprocess.Popen(
            [*lull, *PYTHON, os.path.join(HERE, "train.py"), model, "--serve",
             *(["--graph"] if graph else [])],
            env=host.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"cost: {shlex.join(self.process.args)} ended with "
                             f"{self.process.wait()}")
        return line

    def ready(self):
        return json.loads(self._answer())

    def train(self, steps):
        print(steps, file=self.process.stdin, flush=True)
        return float(self._answer())

    def close(self):
        self.process.stdin.close()
        if self.process.wait(timeout=120) != 0:
            raise SystemExit(f"cost: a training ended with {self.process.returncode}")


def interval(ratios, seed=0):
    draw = random.Random(seed)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
    return statistics.median(ratios), medians[50], medians[-51]


def job_of(model, graph, way):
    return f"cost-{model}-{'graph' if graph else 'eager'}-{way}"


def say(model, graph, way, report):
    overhead = report["overhead"]
    steps = overhead["step_cost"] or {}

    def percent(name):
        told = steps.get(name) or {}
        if told.get("percent") is None:
            return "-"
        return "{percent:.2f} ({low_percent:.2f} to {high_percent:.2f})".format(**told)

    SAID.append(f"| {model}, {'CUDA graph' if graph else 'eager'}, {way} | "
                f"{overhead['percent']:.2f} | {steps.get('windows', 0)} | " +
                " | ".join(percent(name) for name in ("traced_longer", "paid", "between_longer")) +
                " |")


def measure(host, model, graph, ways, rounds, stretch_ms):
    """{way: (median, low, high)} and the step of the first one without lull, in ms"""
    processes = {way: Process(host, model, graph, way) for way in ways}
    about = [process.ready() for process in processes.values()][0]
    for process in processes.values():
        process.train(20)
    steps = max(5, int(stretch_ms / (processes["alone"].train(20) / 20)))
    took = {way: [] for way in ways}
    draw = random.Random(1)
    for _ in range(rounds):
        for way in draw.sample(ways, len(ways)):
            took[way].append(processes[way].train(steps))
    for process in processes.values():
        process.close()
    for way in ways:
        if WAYS[way] is not None:
            say(model, graph, way, checks.query(guest.LULL, "report", job_of(model, graph, way)))
    figures = {way: interval([mine / alone for mine, alone in zip(took[way], took["alone"])])
               for way in ways if way != "alone"}
    return about, statistics.median(took["alone"]) / steps, figures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--ms", type=float, default=1000, help="a stretch")
    parser.add_argument("--ways", default=",".join(WAYS), help="some of: %(default)s")
    parser.add_argument("--only", choices=("eager", "graph"))
    parser.add_argument("--model", choices=("resnet18", "transformer"), action="append")
    options = parser.parse_args()
    ways = ["alone"] + [way for way in options.ways.split(",") if way != "alone"]
    if unknown := set(ways) - set(WAYS):
        parser.error(f"unknown: {', '.join(unknown)}")
    host = guest.Host()
    os.environ.update(host.environment)
    print("| training | step, ms |", " | ".join(ways[1:]), "|")
    print("|---|---|" + "---|" * (len(ways) - 1))
    try:
        for model in options.model or ("resnet18", "transformer"):
            for graph in {"eager": (False,), "graph": (True,)}.get(options.only, (False, True)):
                about, step, figures = measure(host, model, graph, ways, options.rounds,
                                               options.ms)
                print(f"| {model}, {'CUDA graph' if graph else 'eager'} | {step:.3f} |",
                      " | ".join("{:.3f} ({:.3f} to {:.3f})".format(*figures[way])
                                 for way in figures), "|", flush=True)
    finally:
        host.close()
    print("\n| training | own code, % | windows | a traced step, % | paid, % | "
          "between windows, % |\n|---|---|---|---|---|---|")
    print("\n".join(SAID))
    print(f"\n{about['device']}, PyTorch {about['torch']}, CUDA {about['cuda']}")


if __name__ == "__main__":
    main()
