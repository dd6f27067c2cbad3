#!/usr/bin/env python3
"""What lull costs a loop of 20 000 launches a second (budget: 0.5 %).

Three measurements, all ratios:
  hook     hooked against direct calls, alternating inside one process
  process  user + system time of the whole process with the prefix against
           without it, in turn, median of the pairs
  dormant  both again, of a job that sleeps: `lull run --dormant`
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile


def run(command, environment):
    """(last line as JSON, CPU seconds of the command itself)."""
    with tempfile.NamedTemporaryFile("r") as usage:
        result = subprocess.run(
            ["/usr/bin/env", "bash", "-c", 'TIMEFORMAT="%U %S"; { time "$@" 2>&3; } 3>&2 2>"$0"',
             usage.name] + command,
            env=environment, stdout=subprocess.PIPE, check=True, text=True)
        user, system = usage.read().split()[-2:]
    return json.loads(result.stdout.splitlines()[-1]), float(user) + float(system)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lull", required=True)
    parser.add_argument("--loop", required=True)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--work-us", type=float, default=50)
    parser.add_argument("--pairs", type=int, default=5)
    arguments = parser.parse_args()
    loop = [arguments.loop, str(arguments.rounds), str(arguments.work_us)]
    with tempfile.TemporaryDirectory(prefix="lull-bench-") as folder:
        environment = dict(os.environ, LULL_RUNTIME_DIR=f"{folder}/runtime",
                           XDG_DATA_HOME=f"{folder}/data", XDG_STATE_HOME=f"{folder}/state")
        for title, flags in (("armed", []), ("dormant", ["--dormant"])):
            measure(title, [arguments.lull, "run", "--quiet", *flags, "--"], loop, environment,
                    arguments.pairs)


def measure(title, prefix, loop, environment, pairs):
    hook_ratios, process_ratios = [], []
    for pair in range(pairs):
        inner = ["/usr/bin/env", "bash", "-c", 'TIMEFORMAT="%U %S"; time "$@"', "bash"] + loop

        def with_lull():
            hooked = subprocess.run(prefix + inner, env=environment, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, check=True, text=True)
            return (json.loads(hooked.stdout.splitlines()[-1]),
                    sum(float(x) for x in hooked.stderr.split()[-2:]))

        # Which comes first changes, so that a machine that gets slower favours neither.
        if pair % 2 == 0:
            (figures, cpu), (plain, plain_cpu) = with_lull(), run(loop, environment)
        else:
            (plain, plain_cpu), (figures, cpu) = run(loop, environment), with_lull()
        hook_ratios.append(figures["ratio_median"])
        # Both loops do the same number of instructions after calibration;
        # the ratio of CPU time per launch takes a different calibration out.
        process_ratios.append(cpu / plain_cpu)
        print(f"{title}: {figures['launches_per_second']:.0f} launches/s: hooked/direct "
              f"{figures['ratio_median']:.5f} [{figures['ratio_q1']:.5f}, "
              f"{figures['ratio_q3']:.5f}] (without lull {plain['ratio_median']:.5f}), "
              f"process with/without {cpu / plain_cpu:.4f}", flush=True)
    print(f"{title}: hooked/direct, median of {pairs}: {statistics.median(hook_ratios):.5f}")
    print(f"{title}: process CPU with/without, median of {pairs}: "
          f"{statistics.median(process_ratios):.4f} "
          f"({min(process_ratios):.3f} to {max(process_ratios):.3f})", flush=True)


if __name__ == "__main__":
    sys.exit(main())
