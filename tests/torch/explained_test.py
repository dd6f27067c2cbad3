#!/usr/bin/env python3
"""Explained idle (docs/explained_idle.md) of whole programs on the simulated device: most
of the idle time is told with the line that did the work. Prints the table of that page.

usage: explained_test.py [PROGRAM ...]    of tests/torch/explained, without .py
"""

import collections
import json
import os
import subprocess
import sys

import scenario
from scenario import guest

# What it needs beside PyTorch, and the least that is explained, in percent; 98.8 to 100
# were seen.
PROGRAMS = {
    "pictures": ("PIL", 95),
    "diary": ("numpy", 95),
    "hf_trainer": ("transformers", 95),
    "metrics": ("torchmetrics", 95),
    "lightning_loop": ("lightning", 95),
    "tokens": ("numpy", 95),
}
CODE = ("host_code", "launch_bound", "run_queue")


def has(module):
    return subprocess.run([scenario.ON_SIM, "python", "-c",
                           f"import importlib.util as u; assert u.find_spec('{module}')"],
                          stderr=subprocess.DEVNULL, check=False).returncode == 0


def run_to_the_end(host, name):
    run = scenario.Scenario(host, name, scenario.python(f"explained/{name}.py"))
    if run.done.status != 0:
        raise SystemExit(run.done.stderr)
    # On a busy machine the last events come some time after the program's end.
    guest.wait_until(lambda: run.ask("gaps")["job"]["ended"], seconds=120)


def steady_gaps(name):
    done = subprocess.run([guest.LULL, "gaps", name, "--json", "--top", "0",
                           "--phase", "steady"], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def row_of(gaps):
    """A row of the table, of the JSON of `lull gaps`."""
    gpu, rows = gaps["gpu"], gaps["gaps"]

    def share(*causes):
        total = sum(row["total_ms"] for row in rows if row["cause"] in causes)
        return f"{100 * total / gpu['idle_ms']:.1f} %"

    lines = collections.Counter()
    for row in rows:
        for line in row["doing"]:
            site = f"{os.path.basename(line['file'])}:{line['line']} {line['function']}"
            lines[site] += row["total_ms"] * line["samples"] / row["samples"]
    line = lines.most_common(1)[0][0] if lines else "-"
    return (f"{gpu['idle_ms'] / 1e3:.2f} s", share("data"), share(*CODE), share("run_queue"),
            str(sum(row["samples"] for row in rows)),
            f"{gpu['explained_percent']:.1f} %", line)


def main(names):
    host, failures = guest.Host(), 0
    os.environ.update(host.environment)
    print("| program | idle | data | code | of which without a processor | samples in code | explained "
          "| first line |")
    print("|---|---|---|---|---|---|---|---|")
    for name in names:
        needs, least = PROGRAMS[name]
        if not has(needs):
            print(f"| {name} | not run: no {needs} |", flush=True)
            continue
        run_to_the_end(host, name)
        row = row_of(steady_gaps(name))
        print("|", name, "|", " | ".join(row), "|", flush=True)
        explained = float(row[-2].split()[0])
        if explained < least:
            failures += 1
            print(f"{name}: {explained} % explained, and not {least} %", file=sys.stderr)
    host.close()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(PROGRAMS)))
