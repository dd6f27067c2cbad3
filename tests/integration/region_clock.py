"""Each region as `lull export` has it, to the nanosecond, against what the program noted of
it: (before, start, end, after, here). These are CLOCK_MONOTONIC just before the call that
begins the region, just within the region, at its end, and just after the call that ends it;
and whether the thread that began the region ended it.

A region begins somewhere in the one call and ends somewhere in the other, so the truth lies
between the two stopwatches of a program, and what is told has to lie there, too. How far
it is from either is printed: that is the time of PyTorch's or NVTX's own code around the
moment at which they tell whoever listens."""

import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile

import guest

ROUNDING_NS = 1  # times are written in us, to the nanosecond
FOREVER_NS = 1 << 60


def exported(job, job_start_ns, environment):
    """{name: [(begin, end)]} of what the threads that began them ended, on the program's clock.
    Steps and waits for data are in it, too."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        subprocess.run([guest.LULL, "export", job, "-o", path], env=environment, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    found = collections.defaultdict(list)
    for event in events:
        if event.get("cat") == "user_annotation":
            begin = job_start_ns + round(1e3 * event["ts"])
            found[event["name"]].append((begin, begin + round(1e3 * event["dur"])))
    return found


class Distances:
    """Of one program's regions: how far what is told is from each of the two stopwatches."""

    def __init__(self):
        self.within, self.around = [], []  # ns, of each region

    def add(self, noted, told):
        _, start, end, *_ = noted
        before, after = noted[0], noted[3]
        begin, over = told
        self.within.append((over - begin) - (end - start))
        self.around.append((after - before) - (over - begin))

    def nearest(self, share):
        """ns within which that share of the regions lies, of both stopwatches."""
        far = sorted(max(pair) for pair in zip(self.within, self.around))
        return far[max(0, int(share * len(far)) - 1)]

    def print(self, title):
        if not self.within:
            return
        print(f"{title}: {len(self.within)} regions, told longer than the stopwatch within by "
              f"{statistics.median(self.within) / 1e3:.1f} us and shorter than the one around by "
              f"{statistics.median(self.around) / 1e3:.1f} us (medians); within "
              f"{self.nearest(.5) / 1e3:.1f} us of both in half of them, "
              f"{self.nearest(.95) / 1e3:.1f} in 95 of 100", file=sys.stderr)


def compare(test, script, found):
    """`script`: {path: [noted]}. Fails `test` where a region does not lie between the two
    stopwatches."""
    by_name = collections.defaultdict(list)
    for path, noted in script.items():
        by_name[path.split("/")[-1]] += [tuple(one) for one in noted if one[4]]
    distances = Distances()
    for name, noted in by_name.items():
        told = sorted(found[name])
        test.assertEqual(len(told), len(noted), name)
        for one, (begin, over) in zip(sorted(noted), told):
            before, start, end, after, _ = one
            test.assertTrue(before - ROUNDING_NS <= begin <= start + ROUNDING_NS,
                            (name, "begin", begin - before, start - begin))
            test.assertTrue(end - ROUNDING_NS <= over <= after + ROUNDING_NS,
                            (name, "end", over - end, after - over))
            if after - before < FOREVER_NS:  # else the program had no clock
                distances.add(one, (begin, over))
    return distances
