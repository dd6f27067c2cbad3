#!/usr/bin/env python3
"""Random mixes of a guest, a disk, limits and whoever is killed or stopped meanwhile. As in
hostile_test.py the guest must notice nothing, and no event may be missing uncounted.

usage: hostile_mixes_test.py [--seed N] [--first N] [--count N]

A mix follows from the seed and its number alone: one that failed is run again with
--seed S --first NUMBER --count 1.
"""

import argparse
import os
import random
import sys
import time
import traceback

from hostile import guests, judge, surroundings

DISKS = ["disk_full", "disk_fills_up", "read_only", "runtime_removed"]
LIMITS = ["20_descriptors", "20_descriptors_for_lull_too", "address_space", "no_memfd",
          "no_proc", "no_proc_for_lull_either"]
ACTORS = {
    "relay_stopped": surroundings.Stopped("relays", 3),
    "collector_stopped": surroundings.Stopped("collectors", 3),
    "relay_killed": surroundings.Killed("relays"),
    "collector_killed": surroundings.Killed("collectors"),
    "collector_killed_upgrading": surroundings.ALL["collector_killed_upgrading"],
    "clock_set": surroundings.ALL["clock_set"],
}


class Kills(surroundings.Surrounding):
    """One SIGKILL each, at moments that the seed chose."""
    may_lack = (surroundings.LATER, surroundings.WAITS)

    def __init__(self, moments):
        self.moments = sorted(moments)  # (seconds after the start, who)

    def during(self, world, job):
        start = time.monotonic()
        for moment, who in self.moments:
            time.sleep(max(0.0, start + moment - time.monotonic()))
            if job.poll() is not None:
                return
            surroundings.kill_all(getattr(world, who)())

    def __str__(self):
        return "+".join(f"kill_{who}@{moment:.2f}" for moment, who in self.moments)


def draw(seed, number):
    """(name of a guest, names of what surrounds it, the mix itself)"""
    choose = random.Random(f"{seed}/{number}")
    program = choose.choice(sorted(guests.ALL))
    names, parts = [], []
    for group in (DISKS, LIMITS, sorted(ACTORS)):
        if choose.random() < 0.6:
            name = choose.choice(group)
            if "disk_full" in names and name == "collector_killed_upgrading":
                name = "collector_killed"  # a database would have to be there first
            names.append(name)
            parts.append(ACTORS.get(names[-1]) or surroundings.ALL[names[-1]])
    moments = [(choose.uniform(0.1, 1.5), choose.choice(["relays", "collectors"]))
               for _ in range(choose.randrange(3))]
    if moments:
        parts.append(Kills(moments))
        names.append(str(parts[-1]))
    return program, names, surroundings.Mixed(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("LULL_SEED", "1")))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=int(os.environ.get("LULL_MIXES", "5")))
    arguments = parser.parse_args()
    failed = skipped = 0
    for number in range(arguments.first, arguments.first + arguments.count):
        program, names, mix = draw(arguments.seed, number)
        try:
            told = judge.judge(guests.ALL[program], mix)
        except surroundings.Refused as refused:
            told, skipped = f"SKIPPED, this machine refuses: {refused}", skipped + 1
        except Exception as failure:  # a mix that breaks off does not end the others
            if not isinstance(failure, judge.Failure):
                traceback.print_exc()
            told, failed = f"FAILED: {failure}", failed + 1
        print(f"mix {number} of seed {arguments.seed}: {program} in "
              f"{', '.join(names) or 'quiet'}: {told}", flush=True)
    print(f"{arguments.count} mixes of seed {arguments.seed}, {failed} failed, "
          f"{skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
