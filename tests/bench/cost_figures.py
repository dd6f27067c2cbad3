"""The arithmetic of trainer_cost.py: medians of paired ratios with bootstrap intervals, and what
processes have used."""
import os
import random
import statistics

TICK = os.sysconf("SC_CLK_TCK")


def interval(values, statistic=statistics.median, resamples=4000, seed=1):
    """(statistic, low, high): 95 % by the bootstrap over the pairs. With fewer than six pairs no
    interval can be told, and both ends are None."""
    told = statistic(values)
    if len(values) < 6:
        return told, None, None
    draw = random.Random(seed)
    drawn = sorted(statistic(draw.choices(values, k=len(values))) for _ in range(resamples))
    return told, drawn[int(0.025 * resamples)], drawn[int(0.975 * resamples) - 1]


def words(figure, form="%.4f"):
    told, low, high = figure
    if low is None:
        return (form + " (too few pairs)") % told
    return (form + " [" + form + ", " + form + "]") % (told, low, high)


class Processes:
    """lull's own processes below a folder of state: what they have used so far. Those that end in
    between are missing from a difference."""

    def __init__(self, binaries, folder):
        self.binaries = {os.path.realpath(path) for path in binaries}
        self.folder = folder.encode()

    def _is_ours(self, pid):
        try:
            if os.path.realpath(f"/proc/{pid}/exe") not in self.binaries:
                return False
            with open(f"/proc/{pid}/environ", "rb") as file:
                if self.folder in file.read():
                    return True
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                return self.folder in file.read()
        except OSError:
            return False

    def pids(self):
        parents = {}
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    with open(f"/proc/{name}/stat", "rb") as file:
                        parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
                except OSError:
                    continue
        ours = {pid for pid in parents if self._is_ours(pid)}
        # A reader of symbols starts with an empty environment.
        for pid, parent in parents.items():
            if parent in ours and os.path.realpath(f"/proc/{pid}/exe") in self.binaries:
                ours.add(pid)
        return ours

    def used(self):
        """{pid: (CPU seconds, context switches)}"""
        return {pid: (cpu_seconds(pid), switches(pid)) for pid in self.pids()}


def cpu_seconds(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK
    except OSError:
        return 0.0


def switches(pid):
    total = 0
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/status") as file:
                total += sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)
    except OSError:
        pass
    return total


def difference(before, after):
    """Of two answers of used(): (CPU seconds, context switches) in between."""
    cpu = sum(after[pid][0] - before.get(pid, (0, 0))[0] for pid in after)
    turns = sum(after[pid][1] - before.get(pid, (0, 0))[1] for pid in after)
    return cpu, turns
