#!/usr/bin/env python3
"""usage: print_comparison.py LULL JOB1 RESULT1 JOB3 RESULT3

Prints the two runs of the demo side by side, then lull's numbers beside the
script's own. Exit status 1 if they disagree.
"""

import json
import sys
from pathlib import Path

import checks


def table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        print("  " + "   ".join(cells).rstrip())


def main():
    lull, jobs = sys.argv[1], (sys.argv[2], sys.argv[4])
    results = [json.loads(Path(path).read_text()) for path in (sys.argv[3], sys.argv[5])]

    print("\nOne worker against three, as lull reports it")
    waits = [checks.data_wait_ms(lull, job) for job in jobs]
    shares = [f"{wait / (result['train_s'] * 10):.0f} %" for wait, result in zip(waits, results)]
    table([("", "1 worker", "3 workers"),
           ("training took, s", *(f"{result['train_s']:.2f}" for result in results)),
           ("waiting for data, s", *(f"{wait / 1e3:.2f}" for wait in waits)),
           ("share of the training", *shares)])
    if waits[1] >= waits[0]:
        print("  (no gain here: the processors are too few, or busy with other programs)")
    good = True

    for job, result in zip(jobs, results):
        print(f"\n{job}: lull beside the script's own stopwatch")
        rows = checks.compare(lull, job, result)
        table([("", "script", "lull", "")] +
              [(what, ours, theirs, "ok" if ok else "DIFFERS") for what, ours, theirs, ok in rows])
        good = good and all(row[3] for row in rows)

    print("\ndemo:", "all checks passed" if good else "CHECKS FAILED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
