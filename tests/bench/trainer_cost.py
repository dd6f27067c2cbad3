#!/usr/bin/env python3
"""What lull costs a real eager trainer (CUDA PyTorch on the simulated device), on the wall clock.

    tests/bench/trainer_cost.py [--rounds N] [--steps N] [--cores job=0,1 lull=2] ...

needs tests/torch/install and a build. Each round runs the trainer once in each mode, in an order
that changes from round to round: `none`, `host`, `window` (the default of lull), `continuous`,
`profiler` (torch.profiler, wait 20, warmup 1, active 5). A figure is the median, over the rounds,
of the ratio to `none` of the same round, with its 95 % interval by the bootstrap over rounds. On a
machine that is not quiet the ratios of time say little; processor time, waits and preemptions
of the job, and processor time and context switches of lull's processes, are disturbed less and
stand beside them.

--loader adds a trainer whose batches come from two workers that compute; --loop adds the loop of
launches of launch_loop.py. --cores names processors: of the job and of lull's own processes.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "integration")]
import cost_figures
import guest

TORCH = os.path.join(
    os.environ.get("LULL_TORCH_VENV") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "lull", "torch-venv"),
    "lull-requirements")
# "-sampled": with --sample-steps.
MODES = ("none", "host", "host-sampled", "window", "window-sampled", "continuous", "profiler")
UNTRACED = ("none", "profiler")


def cores(text):
    who, _, which = text.partition("=")
    if who not in ("job", "lull") or not which:
        raise argparse.ArgumentTypeError("job=0,1 or lull=2")
    return who, which


def pinned(command, which):
    return ["taskset", "-c", which, *command] if which else list(command)


class Bench:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.on = dict(arguments.cores)
        self.folder = folder
        self.environment = guest.lull_environment(folder)
        if arguments.sim_config:
            self.environment["LULL_SIM_CONFIG"] = "zero_reads_kib=4;" + arguments.sim_config
        self.processes = cost_figures.Processes(
            [arguments.lull, os.path.join(os.path.dirname(arguments.lull), "lulld"),
             arguments.lulld], folder)
        self.jobs = 0

    def command(self, mode, job):
        """`job` as it is run in a mode, and the name that lull knows it by."""
        job = pinned(job, self.on.get("job"))
        if mode in UNTRACED:
            return job, None
        self.jobs += 1
        name = f"{mode}-{self.jobs}"
        gpu, _, sampled = mode.partition("-")
        prefix = [self.arguments.lull, "run", "--quiet", "--name", name, "--gpu", gpu]
        if sampled:
            prefix.append("--sample-steps")
        if self.arguments.budget is not None:
            prefix += ["--overhead-budget", str(self.arguments.budget)]
        return pinned([*prefix, "--", *job], self.on.get("lull")), name

    def train(self, mode, workers):
        out = os.path.join(self.folder, "out.json")
        job = [os.path.join(ROOT, "tests", "torch", "run_on_sim"), "python",
               os.path.join(HERE, "trainer.py"), out, "--steps", str(self.arguments.steps),
               "--warm-up", str(self.arguments.warm_up), "--workers", str(workers)]
        if mode == "profiler":
            job.append("--profiler")
        command, name = self.command(mode, job)
        child = subprocess.Popen(command, env=self.environment, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        try:
            self.expect(child, "warm")
            before = self.processes.used()
            self.go_on(child)
            self.expect(child, "done")
            after = self.processes.used()
            self.go_on(child)
            if child.wait(timeout=120) != 0:
                raise SystemExit(f"trainer_cost: the trainer failed ({mode})")
        finally:
            child.kill()
            child.wait()
        with open(out) as file:
            seen = json.load(file)
        steps = [b - a for a, b in zip(seen["ends_ns"], seen["ends_ns"][1:])]
        cpu, turns = cost_figures.difference(before, after)
        count = len(steps)
        run = {"mean_ms": sum(steps) / count / 1e6, "median_ms": statistics.median(steps) / 1e6,
               "job_cpu_ms": seen["cpu_s"] / count * 1e3, "waits": seen["waits"] / count,
               "preemptions": seen["preemptions"] / count,
               "lull_cpu_ms": cpu / count * 1e3, "lull_switches": turns / count}
        if name is not None:
            run.update(self.told(name))
        return run

    @staticmethod
    def expect(child, word):
        line = child.stdout.readline()
        if line.strip() != word:
            raise SystemExit(f"trainer_cost: the trainer said {line!r} in place of {word!r}")

    @staticmethod
    def go_on(child):
        child.stdin.write("\n")
        child.stdin.flush()

    def told(self, name):
        """What lull says of its own cost, and of losses."""
        done = subprocess.run([self.arguments.lull, "report", name, "--json"],
                              env=self.environment, stdout=subprocess.PIPE, check=True)
        report = json.loads(done.stdout)
        return {"overhead": report["overhead"], "lost": report["losses"]["events_lost"],
                "events": report["losses"]["events_committed"]}

    def loop(self, mode):
        job = [self.arguments.loop, str(self.arguments.loop_rounds), "50"]
        command, _ = self.command(mode, job)
        done = subprocess.run(command, env=self.environment, stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout.splitlines()[-1])["ratio_median"]


def ratios(rounds, mode, what):
    return [run[mode][what] / run["none"][what] for run in rounds if run["none"][what] > 0]


def show(title, rounds, modes):
    print(f"\n{title}: {len(rounds)} rounds, step without lull "
          f"{statistics.median(run['none']['mean_ms'] for run in rounds):.2f} ms in the mean, "
          f"{statistics.median(run['none']['job_cpu_ms'] for run in rounds):.2f} ms of processor")
    print("  mode        step time (mean)            step time (median)          "
          "processor time of the job   waits  preempted  lull: CPU/step  switches/step")
    for mode in modes:
        if mode == "none":
            continue
        shown = [cost_figures.words(cost_figures.interval(ratios(rounds, mode, what)))
                 for what in ("mean_ms", "median_ms", "job_cpu_ms")]
        middle = {what: statistics.median(run[mode][what] for run in rounds)
                  for what in ("waits", "preemptions", "lull_cpu_ms", "lull_switches")}
        print("  %-10s  %-26s  %-26s  %-26s  %5.1f  %9.1f  %11.3f ms  %13.2f" % (
            mode, *shown, middle["waits"], middle["preemptions"], middle["lull_cpu_ms"],
            middle["lull_switches"]))
    for mode in modes:
        if mode not in UNTRACED:
            show_told(mode, rounds)


def show_told(mode, rounds):
    told = [run[mode]["overhead"] for run in rounds]
    lost = sum(run[mode]["lost"] for run in rounds)
    print(f"  lull says of {mode}: in its own code "
          f"{statistics.median(one['percent'] for one in told):.2f} % (median); "
          f"{lost} of {sum(run[mode]['events'] for run in rounds)} events lost")
    claims = [run[mode]["overhead"]["step_cost"]["paid"] for run in rounds
              if (run[mode]["overhead"].get("step_cost") or {}).get("paid")]
    if claims:
        print("    on the wall clock, of which steps between windows are not: "
              "%+.2f %% (%+.2f to %+.2f %%; medians of %d reports)" % (
                  *(statistics.median(claim[key] for claim in claims)
                    for key in ("percent", "low_percent", "high_percent")), len(claims)))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    build = os.path.join(ROOT, "build")
    parser.add_argument("--lull", default=os.environ.get("LULL_BIN", f"{build}/cli/lull"))
    parser.add_argument("--lulld", default=f"{build}/daemon/collector/lulld")
    parser.add_argument("--loop-binary", dest="loop", default=f"{build}/tests/bench/launch_loop")
    parser.add_argument("--loop", dest="with_loop", action="store_true")
    parser.add_argument("--loop-rounds", type=int, default=200)
    parser.add_argument("--loader", action="store_true")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--warm-up", type=int, default=20,
                        help="steps that do not count; sampling of steps takes some 15 s")
    parser.add_argument("--modes", nargs="+", choices=MODES[1:], default=list(MODES[1:]))
    parser.add_argument("--budget", type=float, help="--overhead-budget of every run")
    parser.add_argument("--sim-config", default="", help="of the simulated device")
    parser.add_argument("--cores", nargs="+", type=cores, default=[])
    parser.add_argument("--json", help="a file for all figures of all runs")
    arguments = parser.parse_args()
    if not os.path.exists(TORCH):
        print("trainer_cost: left out, no PyTorch (tests/torch/install)")
        return
    modes = ["none", *arguments.modes]
    places = ", ".join(f"{who} on {which}" for who, which in arguments.cores) or "no pinning"
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} before we began; {places}",
          flush=True)
    with tempfile.TemporaryDirectory(prefix="lull-bench-") as folder:
        bench = Bench(arguments, folder)
        results = {}
        try:
            for title, workers in (("trainer", 0), ("trainer with a loader", 2)):
                if workers and not arguments.loader:
                    continue
                results[title] = []
                try:
                    for number in range(arguments.rounds):
                        turn = modes[number % len(modes):] + modes[:number % len(modes)]
                        results[title].append({mode: bench.train(mode, workers) for mode in turn})
                        print(f"{title}, round {number + 1}: " + ", ".join(
                            f"{mode} {results[title][-1][mode]['mean_ms']:.2f} ms"
                            for mode in modes), file=sys.stderr, flush=True)
                finally:  # Ctrl-C: of the rounds so far
                    if results[title]:
                        show(title, results[title], modes)
            if arguments.with_loop:
                show_loop(bench, modes, arguments.rounds)
        finally:
            guest.stop_collector(folder)
        if arguments.json:
            with open(arguments.json, "w") as file:
                json.dump(results, file)


def show_loop(bench, modes, rounds):
    runs = [{mode: bench.loop(mode) for mode in modes if mode != "profiler"}
            for _ in range(rounds)]
    print("\nloop of launches, hooked against direct calls in one process")
    for mode in runs[0]:
        print("  %-10s  %s" % (mode, cost_figures.words(
            cost_figures.interval([run[mode] for run in runs]), "%.5f")))


if __name__ == "__main__":
    sys.exit(main())
