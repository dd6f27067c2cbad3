#!/usr/bin/env python3
"""Guests in a hostile world: a row is a line. In each row the guest must not notice lull,
and lull must not call incomplete data complete (hostile/judge.py says how both are seen).

usage: hostile_test.py [--slow] [--only PATTERN] [--list]

Rows that this machine refuses to make are skipped, and say so.
"""

import argparse
import fnmatch
import sys
import time
import traceback

from hostile import guests, judge, surroundings

# guest, surroundings
ROWS = [
    ("c", "quiet"),
    ("c", "disk_full"),
    ("c", "disk_fills_up"),
    ("c", "runtime_removed"),
    ("c", "20_descriptors"),
    ("c", "20_descriptors_for_lull_too"),
    ("c", "address_space"),
    ("c", "no_memfd"),
    ("c", "no_proc"),
    ("c", "no_proc_for_lull_either"),
    ("c", "read_only"),
    ("c", "relay_killed"),
    ("c", "collector_killed"),
    ("c", "collector_killed_upgrading"),
    ("c", "clock_set"),
    ("c_closing", "quiet"),
    ("c_crowd", "quiet"),
    ("c_sequence", "quiet"),
    ("c_forks", "quiet"),
    ("c_vfork_chain", "quiet"),
    ("cpp", "quiet"),
    ("cpp", "disk_fills_up"),
    ("cpp", "no_proc"),
    ("python", "quiet"),
    ("python", "20_descriptors"),
    ("python", "runtime_removed"),
    ("torch_loader", "20_descriptors"),
]

# ... and every guest in all surroundings, which takes long.
SLOW_ROWS = [(program, around) for program in guests.ALL for around in surroundings.ALL
             if (program, around) not in ROWS]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slow", action="store_true", help="the rows that take long")
    parser.add_argument("--only", default="*", help="rows whose GUEST/SURROUNDINGS match")
    parser.add_argument("--list", action="store_true", help="name the rows, run none")
    arguments = parser.parse_args()
    rows = [row for row in (SLOW_ROWS if arguments.slow else ROWS)
            if fnmatch.fnmatch("/".join(row), arguments.only)]
    failed, skipped = [], []
    for program, around in rows:
        row = f"{program}/{around}"
        if arguments.list:
            print(row)
            continue
        start = time.monotonic()
        try:
            told = judge.judge(guests.ALL[program], surroundings.ALL[around])
        except surroundings.Refused as refused:
            told = f"SKIPPED, this machine refuses: {refused}"
            skipped.append(row)
        except Exception as failure:  # a row that breaks off does not end the others
            if not isinstance(failure, judge.Failure):
                traceback.print_exc()
            told = f"FAILED: {failure}"
            failed.append(row)
        print(f"{row:40} {told} [{time.monotonic() - start:.0f} s]", flush=True)
    if not arguments.list:
        print(f"{len(rows)} rows, {len(failed)} failed, {len(skipped)} skipped"
              f"{': ' if failed else ''}{', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
