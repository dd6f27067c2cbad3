#!/usr/bin/env python3
"""Random trainings of eight ranks on the simulated NCCL, one of which is late for a known cause:
`lull ranks` names the rank, the cause and its line, and what it cost the others.

    nccl_random_test.py [--count N] [--first SEED]

What it cost is known from the device's own log: of each collective that followed a pause, how
long each other rank waited for this one alone. Of 100 programs 99 have to be told right, with
the cost within 2 % of that. Where ranks share processors the late one may have been held up
otherwise, too: what the pause itself explains of that is right as well. A program follows from
its seed alone: one that failed is run again with
--first SEED --count 1. The kernels of all ranks lie on one clock, and ranks need a processor
only to launch: where one lacked it in a step that was not planned, that is told beside."""

import argparse
import json
import os
import sys
import tempfile

import guest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PUPPETS = os.path.join(ROOT, "tests", "puppets")
sys.path[:0] = [PUPPETS, os.path.join(ROOT, "tests", "sim"), os.path.join(ROOT, "tools", "demo_job")]
import checks  # noqa: E402
import expected  # noqa: E402
import nccl_random  # noqa: E402
import truth  # noqa: E402

RANKS = 8
# Cause and, where lull tells one, what stands for its line (expected.py).
TOLD = {"sleep": ("sleep", "sleep"), "gc": ("gc", None), "lock": ("lock", "lock"),
        "read": ("io", "read"), "code": ("host_code", "code"), "kernels": ("gpu", None)}


def true_cost_ms(log, plan, pauses):
    """What the seven others waited for the late one alone, in the collectives after its pauses: of
    that as much as the pause lasted (without a processor its cause did not act), and all of it."""
    collectives = [sorted(each, key=lambda one: one.start) for each in log.collectives().values()]
    least = most = 0
    for _, start, end, ready in pauses:
        after = [each for each in collectives
                 if next(one.start for one in each if one.rank == plan.late) >= start]
        first = min(after, key=lambda each: each[-1].start)
        if first[-1].rank == plan.late:
            late = first[-1].start - first[-2].start
            explained = min(late, end - start - ready)
            # Of less than half something else is the cause: it had no processor for longer.
            least += (RANKS - 1) * (explained if explained > late / 2 else 0) / 1e6
            most += (RANKS - 1) * late / 1e6
    return least, most


def run(host, seed):
    """The answer of `lull ranks`, the true cost and the pauses; the program has run under lull."""
    plan = nccl_random.Plan(seed, RANKS)
    name = f"seed-{seed}"
    with tempfile.TemporaryDirectory(prefix="lull-nccl-") as folder:
        store, log = os.path.join(folder, "store"), os.path.join(folder, "truth")
        done = guest.execute(
            [guest.LULL, "run", "--quiet", "--overhead-budget", "100", "--name", name, "--gpu",
             "continuous", "--", sys.executable, os.path.join(PUPPETS, "nccl_random.py"),
             "--store", store, "--seed", str(seed), "--ranks", str(RANKS)],
            {**host.environment, "LD_LIBRARY_PATH": os.environ["LULL_SIM"],
             "LULL_SIM_CONFIG": "kernel_us=200", "LULL_SIM_LOG": log})
        assert (done.status, done.stdout, done.stderr) == (0, "", ""), done
        with open(f"{store}.{plan.late}", encoding="utf-8") as file:
            pauses = json.load(file)["pauses"]
        cost = true_cost_ms(truth.load(log), plan, pauses)
    report = checks.query(guest.LULL, "report", name)
    told = sum(row["total_ms"] for row in report["causes"])
    assert abs(told - report["gpu"]["idle_ms"]) < 1e-4, (told, report["gpu"]["idle_ms"])
    return plan, checks.query(guest.LULL, "ranks", name), cost, pauses


def wrong(plan, answer, cost, pauses):
    """What lull told wrong; "" if nothing."""
    first = answer["ranks"][0]
    if first["rank"] != plan.late or not first["culprits"]:
        return f"rank {first['rank']}, {first['culprits']}"
    worst = first["culprits"][0]
    cause, mark = TOLD[plan.cause]
    if worst["cause"] != cause:
        return f"{worst}"
    same = [worst]
    if mark is not None:
        line = expected.site("nccl_random.py", mark)
        # Samples are of a loop of two lines: of each pause the one that has more of them.
        near = 1 if cause == "host_code" else 0
        if abs(worst["line"] - line) > near:
            return f"line {worst['line']}"
        same = [one for one in first["culprits"]
                if one["cause"] == cause and one["line"] and abs(one["line"] - line) <= near]
    told = sum(one["cost_to_others_ms"] for one in same)
    least, most = cost
    if not 0.98 * least <= told <= 1.02 * most:
        steps = sum(one["steps"] for one in same)
        lacked = [round(ready / 1e6, 2) for *_, ready in pauses]
        return f"{told:.2f} ms in {steps} of {len(pauses)} steps; without a processor: {lacked}"
    # Who lacked a processor was late for that.
    others = sum(one["cost_to_others_ms"] for row in answer["ranks"][1:] for one in row["culprits"]
                 if one["cause"] != "run_queue")
    if others > 0.05 * most:
        return f"{others:.2f} ms of other ranks"
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    host = guest.Host()
    os.environ.update(host.environment)
    failed = 0
    by_cause = {cause: [0, 0] for cause in nccl_random.CAUSES}
    try:
        for seed in range(options.first, options.first + options.count):
            plan, answer, cost, pauses = run(host, seed)
            why = wrong(plan, answer, cost, pauses)
            by_cause[plan.cause][0] += not why
            by_cause[plan.cause][1] += 1
            if why:
                failed += 1
                print(f"seed {seed}: rank {plan.late}, {plan.cause}, {cost[0]:.2f} to "
                      f"{cost[1]:.2f} ms; told: {why}", flush=True)
    finally:
        host.close()
    for cause, (right, of) in by_cause.items():
        print(f"{cause}: {right} of {of}")
    print(f"{options.count - failed} of {options.count} right")
    sys.exit(failed > 0.01 * options.count)


if __name__ == "__main__":
    main()
