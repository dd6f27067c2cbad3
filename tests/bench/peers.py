#!/usr/bin/env python3
"""lull beside the profilers that people use for the same questions (docs/peers.md): py-spy and
scalene for the lines in which time goes, torch.profiler for the loader, and what each of them
and memray cost the program. Prints the tables of that page. No test: it judges nothing.

usage: peers.py [lines|cost|loader ...]

LULL_BIN and LULL_SIM as for the tests. The profilers come from PyPI into a folder of their own,
LULL_PROFILERS (~/.cache/lull/profilers); LULL_PYTHON names an interpreter with PyTorch.
LULL_SECONDS: how much work a run has (15). LULL_ROUNDS: runs of each (3).
"""

import collections
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PUPPETS = os.path.join(ROOT, "tests", "puppets")
sys.path.insert(0, PUPPETS)
import expected

LULL = os.environ.get("LULL_BIN", "lull")
SIM = os.environ["LULL_SIM"]
SECONDS = float(os.environ.get("LULL_SECONDS", "15"))
ROUNDS = int(os.environ.get("LULL_ROUNDS", "3"))
PROFILERS = os.environ.get("LULL_PROFILERS", os.path.expanduser("~/.cache/lull/profilers"))
REQUIREMENTS = os.path.join(HERE, "peers.txt")
PYTHON = os.path.join(PROFILERS, "bin", "python")
PROGRAM = os.path.join(PUPPETS, "truth_lines.py")
NAMES = ("statistics", "nap", "decode", "augment", "fetch", "collate", "encode", "store")
CALLEES = {"encode": ("twice",)}  # on a line of their own
ASLEEP = ("nap", "fetch", "store")
LINES = {expected.site("truth_lines.py", part): name
         for name in NAMES for part in (name, *CALLEES.get(name, ()))}
TORCH_PROFILER = """
import json, runpy, sys
import torch.profiler
kinds = [torch.profiler.ProfilerActivity.CPU]
program, sys.argv = sys.argv[1], sys.argv[1:]
with torch.profiler.profile(activities=kinds) as profiled:
    runpy.run_path(program, run_name="__main__")
print(json.dumps([[e.key, e.count, e.cpu_time_total] for e in profiled.key_averages()]))
"""


def install():
    stamp = os.path.join(PROFILERS, "lull-requirements")  # written last
    with open(REQUIREMENTS) as file:
        wanted = file.read()
    if os.path.exists(stamp):
        with open(stamp) as file:
            if file.read() == wanted:
                return
    subprocess.run([sys.executable, "-m", "venv", "--clear", PROFILERS], check=True)
    subprocess.run([PYTHON, "-m", "pip", "--disable-pip-version-check", "install", "--quiet",
                    "--requirement", REQUIREMENTS], check=True)
    with open(stamp, "w") as file:
        file.write(wanted)


class Folder:
    """Where a run has its files, and lull what it remembers."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="lull-peers-")
        self.environment = {**os.environ, "LD_LIBRARY_PATH": SIM,
                            "LULL_SIM_CONFIG": "kernel_us.long_kernel=1500",
                            "XDG_STATE_HOME": self.path("state"),
                            "XDG_RUNTIME_DIR": self.path("runtime"),
                            "XDG_DATA_HOME": self.path("data")}
        os.mkdir(self.path("runtime"), 0o700)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def run(self, command):
        done = subprocess.run(command, env=self.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def lull(self, verb, name):
        return json.loads(self.run([LULL, verb, name, "--json", "--top", "0",
                                    "--phase", "all"]))


def tools(folder):
    """{tool: what stands before `python`}"""
    py_spy = [os.path.join(PROFILERS, "bin", "py-spy"), "record", "--rate", "100", "--format", "raw",
              "--output", folder.path("raw")]
    return {
        "lull": [LULL, "run", "--quiet", "--gpu", "continuous", "--name", "peer", "--", PYTHON],
        "py-spy --idle": [*py_spy, "--idle", "--", PYTHON],
        "py-spy": [*py_spy, "--", PYTHON],
        "scalene": [PYTHON, "-m", "scalene", "run", "--cpu-only", "-o", folder.path("scalene.json")],
        "memray": [PYTHON, "-m", "memray", "run", "--quiet", "--force", "--output",
                   folder.path("memray.bin")],
    }


def program(folder, pattern="fixed"):
    return [PROGRAM, folder.path("known"), str(SECONDS), "1", pattern]


def known(folder):
    with open(folder.path("known")) as file:
        return json.load(file)


def of_lull(folder):
    # With what a line calls: of a cut stack only the caller is known.
    return {row["function"]: row["total_percent"]
            for row in folder.lull("hot", "peer")["lines"]
            if row["role"] == "main" and LINES.get(row["line"]) == row["function"]}


def of_py_spy(folder):
    told = collections.Counter()
    with open(folder.path("raw")) as file:
        for stack, count in (row.rsplit(" ", 1) for row in file):
            lines = re.findall(r"truth_lines\.py:(\d+)\)", stack)
            if lines and int(lines[-1]) in LINES:  # the innermost one
                told[LINES[int(lines[-1])]] += int(count)
    return told


def of_scalene(folder):
    told = collections.Counter()
    with open(folder.path("scalene.json")) as file:
        files = json.load(file)["files"]
    for name, what in files.items():
        if name.endswith("truth_lines.py"):
            for row in what["lines"]:
                if row["lineno"] in LINES:
                    told[LINES[row["lineno"]]] += sum(
                        row[part] for part in ("n_cpu_percent_python", "n_cpu_percent_c",
                                               "n_sys_percent"))
    return told


READERS = {"lull": of_lull, "py-spy --idle": of_py_spy, "py-spy": of_py_spy,
           "scalene": of_scalene}


def shares(times, names=NAMES):
    whole = sum(times.get(name, 0) for name in names)
    return {name: 100 * times.get(name, 0) / whole for name in names}


def lines():
    """Each line's share of the time in these lines, by the program's own clock and as it is told."""
    errors, real = collections.defaultdict(list), collections.defaultdict(list)
    for _ in range(ROUNDS):
        for tool, read in READERS.items():
            folder = Folder()
            folder.run(tools(folder)[tool] + program(folder))
            spent = collections.Counter({name: sum(b - a for a, b in spans) for name, spans
                                         in known(folder)["spans"].items()})
            told, truth = shares(read(folder)), shares(spent)
            for name in NAMES:
                real[name].append(truth[name])
                errors[tool, name].append(told[name] - truth[name])
    print("\n| line | share, % |", " | ".join(READERS), "|")
    print("|---|---|" + "---|" * len(READERS))
    for name in NAMES:
        row = [f"{statistics.fmean(errors[tool, name]):+.1f}" for tool in READERS]
        what = "asleep" if name in ASLEEP else "computes"
        print(f"| {name}, {what} | {statistics.fmean(real[name]):.1f} |", " | ".join(row), "|")
    worst = [max(abs(error) for name in NAMES for error in errors[tool, name])
             for tool in READERS]
    print("| the worst of all runs | |", " | ".join(f"{one:.1f}" for one in worst), "|")


def cost():
    """The same work alone and under each of them, in turn."""
    spent = collections.defaultdict(list)
    for _ in range(ROUNDS):
        for tool in ("alone", *READERS, "memray"):
            folder = Folder()
            prefix = [PYTHON] if tool == "alone" else tools(folder)[tool]
            folder.run(prefix + program(folder))
            told = known(folder)
            spent[tool].append((told["cpu_s"], told["wall_s"]))
    print("\n| | CPU time of its thread | time |\n|---|---|---|")
    for tool, runs in spent.items():
        if tool == "alone":
            continue
        ratios = [statistics.median(run[i] / alone[i] for run, alone in
                                    zip(runs, spent["alone"])) for i in (0, 1)]
        print(f"| {tool} | {ratios[0]:.3f} | {ratios[1]:.3f} |")


def loader():
    """Time in next(), by the script's own clock and as it is told."""
    python = subprocess.run([os.path.join(ROOT, "tools", "python_with_torch")],
                            stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    print("\n| workers | lull: script | told | error | torch.profiler: script | told | error |")
    print("|---|---|---|---|---|---|---|")
    for workers in (0, 1, 3):
        told = []
        for tool in ("lull", "torch.profiler"):
            folder = Folder()
            script = [os.path.join(PUPPETS, "loader.py"), "--workers", str(workers), "--start",
                      "fork", "--file", folder.path("known")]
            if tool == "lull":
                folder.run([LULL, "run", "--quiet", "--name", "peer", "--", python, *script])
                found = sum(row["total_ms"] for row in folder.lull("waits", "peer")["host_waits"]
                            if row["kind"] == "data")
            else:
                out = folder.run([python, "-c", TORCH_PROFILER, *script])
                found = sum(us / 1e3 for key, _, us in json.loads(out.splitlines()[-1])
                            if key.startswith("enumerate(DataLoader)"))
            real = sum(b - a for a, b in known(folder)["next"]) / 1e6
            told += [f"{real:.1f} ms", f"{found:.1f} ms", f"{100 * (found - real) / real:+.2f} %"]
        print(f"| {workers} |", " | ".join(told), "|", flush=True)


def main(parts):
    install()
    with open(REQUIREMENTS) as file:
        print(file.read().replace("\n", ", ") + f"CPython {sys.version.split()[0]}")
    for part in parts or ("lines", "cost", "loader"):
        {"lines": lines, "cost": cost, "loader": loader}[part]()
        print(f"\nload {os.getloadavg()[0]:.0f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
